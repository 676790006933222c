"""From a judge's words to a score, by a rule that the scenario names."""

import re

from rollart.domain.execution import JudgeExecution, JudgeRule

NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w])")
WORD = re.compile(r"\b(yes|no)\b", re.IGNORECASE)
FIELD = re.compile(r"\{(task|text|answer)\}")


def score_of(answer: str, judge: JudgeExecution) -> float:
    """The score, from 0 to 1; ValueError where the rule finds none."""
    if judge.rule is JudgeRule.YES_NO:
        return _yes_no(answer)
    return _number(answer, judge.full_marks)


def _number(answer: str, full_marks: float) -> float:
    found = NUMBER.findall(answer)
    if not found:
        raise ValueError(f"the judge gives no number: {answer[:100]!r}")
    marks = float(found[-1])
    if not 0.0 <= marks <= full_marks:
        raise ValueError(f"the judge gives {found[-1]}; must be from 0 to {full_marks:g}")
    return marks / full_marks


def _yes_no(answer: str) -> float:
    found = WORD.findall(answer)
    if not found:
        raise ValueError(f"the judge says neither yes nor no: {answer[:100]!r}")
    return float(found[-1].lower() == "yes")


def question(template: str, fields: dict[str, str]) -> str:
    """The prompt with its fields filled in; what is filled in is not looked at again."""
    return FIELD.sub(lambda match: fields[match[1]], template)
