"""Experiments import what they share as scripts do: from their own folder."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "experiments"))
