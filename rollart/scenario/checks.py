"""Checks across the sections of a scenario, placement aside: what no single value can tell."""

from collections.abc import Iterator

from rollart.scenario.planner_rules import planner_problems
from rollart.scenario.problems import Problem, nearest
from rollart.scenario.sections.document import ScenarioFile

_SHARE_SLACK = 1e-6


def document_problems(document: ScenarioFile) -> Iterator[Problem]:
    """What is wrong in tasks, links and steps."""
    names = [task.name for task in document.tasks]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield Problem(place="tasks", text=f"{name!r} is given {names.count(name)} times; names must differ")
    yield from _share_problems(document)
    pools = document.cluster.pools
    for index, link in enumerate(document.cluster.links):
        place = f"cluster.links.{index}.between"
        for end in link.between:
            if end not in pools:
                yield Problem(place=place, text=f"there is no pool {end!r}; {nearest(end, list(pools))}")
        if link.between[0] == link.between[1]:
            yield Problem(place=place, text="must name two different pools; a pool's own network is its fabric")
    for pool in document.calibration.engines:
        if pool not in pools:
            text = f"there is no pool {pool!r}; {nearest(pool, list(pools))}"
            yield Problem(place="calibration.engines", text=text)
    yield from planner_problems(document)
    if document.warmup_steps >= document.steps:
        text = f"{document.warmup_steps} is not allowed; must be below steps, which is {document.steps}"
        yield Problem(place="warmup_steps", text=text)


def _share_problems(document: ScenarioFile) -> Iterator[Problem]:
    shares = [task.share for task in document.tasks if task.share is not None]
    if not shares:
        return
    if len(shares) < len(document.tasks):
        missing = next(task.name for task in document.tasks if task.share is None)
        yield Problem(place=f"tasks.{missing}.share", text="is missing; either all tasks have a share or none")
    elif abs(sum(shares) - 1.0) > _SHARE_SLACK:
        yield Problem(place="tasks", text=f"the shares add up to {sum(shares):.6g}; must be 1")
