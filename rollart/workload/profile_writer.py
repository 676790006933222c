"""Writes the document of a profile as YAML that reads back as it was."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from rollart.workload.profile_file import profile_from_mapping
from rollart.workload.whole_output import replacing

_LINE_LENGTH = 118


def write_profile(path: Path, document: Mapping[str, Any]) -> None:
    """Write a checked profile; TraceError if it is none, OutputError if the file cannot be written."""
    profile_from_mapping(document, str(path))
    text = yaml.safe_dump(
        dict(document), sort_keys=False, default_flow_style=None, width=_LINE_LENGTH, allow_unicode=True
    )
    with replacing(path) as file:
        file.write(text.encode())
