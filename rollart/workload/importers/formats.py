"""Every foreign format that can be read, by name, and which of them a file looks like."""

from pathlib import Path

from rollart.domain.errors import TraceError
from rollart.workload.importers.areal import AReaLReader
from rollart.workload.importers.azure import AzureReader
from rollart.workload.importers.claude_code import ClaudeCodeReader
from rollart.workload.importers.codex import CodexReader
from rollart.workload.importers.compact import CompactReader
from rollart.workload.importers.format_reader import FormatReader
from rollart.workload.importers.harbor import HarborReader
from rollart.workload.importers.inspect_ai import InspectReader
from rollart.workload.importers.lmcache import LMCacheReader
from rollart.workload.importers.mini_swe_agent import MiniSweAgentReader
from rollart.workload.importers.mooncake import MooncakeReader
from rollart.workload.importers.nemo_gym import NemoGymReader
from rollart.workload.importers.openai_chat import OpenAIChatReader
from rollart.workload.importers.openhands import OpenHandsReader
from rollart.workload.importers.otel import OTelReader
from rollart.workload.importers.roll import RollReader
from rollart.workload.importers.run_log import RunLogReader
from rollart.workload.importers.sample import Sample
from rollart.workload.importers.skyrl import SkyRLReader
from rollart.workload.importers.swe_agent import SweAgentReader
from rollart.workload.importers.tau_bench import TauBenchReader
from rollart.workload.importers.verifiers import VerifiersReader
from rollart.workload.importers.verl import VerlReader

AUTO = "auto"
READERS: dict[str, type[FormatReader]] = {
    reader.format: reader
    for reader in (
        SweAgentReader,
        MiniSweAgentReader,
        OpenHandsReader,
        TauBenchReader,
        VerifiersReader,
        RollReader,
        AReaLReader,
        LMCacheReader,
        VerlReader,
        SkyRLReader,
        NemoGymReader,
        HarborReader,
        InspectReader,
        ClaudeCodeReader,
        CodexReader,
        MooncakeReader,
        AzureReader,
        OTelReader,
        CompactReader,
        OpenAIChatReader,
        RunLogReader,
    )
}
"""In the order in which `auto` asks them: the first that recognises a file reads it."""

_OWN_KEYS = ("schema", "task", "group", "turns")


def recognise(sample: Sample) -> str | None:
    """Name of the format that a file looks like; None if there is none."""
    return next((name for name, reader in READERS.items() if reader.recognises(sample)), None)


def reject_other_formats(path: Path, sample: Sample, wanted: str) -> None:
    """TraceError if the file looks like a format other than the one that was asked for."""
    if sample.has(*_OWN_KEYS):
        raise TraceError(f"{path}: this looks like a trace of RollArt, not like {wanted}; it needs no import")
    found = recognise(sample)
    if found is not None:
        raise TraceError(f"{path}: this looks like {found}, not like {wanted}; import it as {found} or auto")
    about = READERS[wanted].about
    if sample.keys or sample.is_binary or not sample.first_line.startswith(("{", "[")):
        keys = sorted(sample.keys or sample.columns)[:5]
        shown = ", ".join(keys) if keys else sample.first_line[:40] or "an archive"
        raise TraceError(f"{path}: is not a {wanted} file (it has {shown}); must be {about}")
