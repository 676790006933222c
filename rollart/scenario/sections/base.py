"""What all sections share: strictness, and the kinds of values."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

CEILING = 1e15
"""Technical bound of every number; far above any real figure, so that unit conversions stay finite."""
COUNT_CEILING = 1_000_000_000


class Section(BaseModel):
    """A mapping of a scenario file: unknown keys and values of another type are refused, nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


Positive = Annotated[float, Field(gt=0, le=CEILING)]
NonNegative = Annotated[float, Field(ge=0, le=CEILING)]
Share = Annotated[float, Field(gt=0, le=1)]
Count = Annotated[int, Field(ge=1, le=COUNT_CEILING)]
Parallel = Annotated[int, Field(ge=1, le=65536)]
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_+ -]*$"
TITLE_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$"
PATTERN_WORDS = {
    NAME_PATTERN: "a name of letters, digits, spaces and _ + -",
    TITLE_PATTERN: "a name of letters, digits and _ . + -",
}
Name = Annotated[str, Field(min_length=1, max_length=64, pattern=NAME_PATTERN)]
"""Names of pools, tasks and engine groups; without dots, which separate the keys of `--set`."""
Title = Annotated[str, Field(min_length=1, max_length=64, pattern=TITLE_PATTERN)]
"""Name of a scenario, which also names its folder of results."""
FileName = Annotated[str, Field(min_length=1, max_length=4096)]
