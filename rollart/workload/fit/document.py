"""Fits a whole profile. Figures that the trace lacks come from a profile that the user names, never from nowhere."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from rollart.domain.errors import TraceError
from rollart.workload.fit.figure import Context, fit_figure
from rollart.workload.fit.level import level_factors, levelled
from rollart.workload.fit.observed import Floats, Observed, observe
from rollart.workload.fit.rates import compaction_keys, failure_keys, success_keys
from rollart.workload.fit.scores import normal_scores
from rollart.workload.profile_file import profile_from_mapping
from rollart.workload.trace import TraceTrajectory

_PER_TURN = ("observation_tokens", "output_tokens", "env_s")
_TIMES = ("env_s", "reset_s", "reward_s")
_LEAST = {"turns": 1.0, "prompt_tokens": 1.0, "output_tokens": 1.0}
_MOST_TURNS = 10_000
_PROVENANCE = {"observation_tokens": "prompt_tokens"}
"""Field of the trace that says how a figure was recorded, where it has another name."""


def fit_profile(
    trajectories: Iterable[TraceTrajectory],
    *,
    name: str,
    source: str,
    times: Mapping[str, Any] | None = None,
    context_limit_tokens: int | None = None,
) -> dict[str, Any]:
    """Document of a profile file fitted to all tasks of the trajectories.

    `source` names the trace. `context_limit_tokens` is the limit that the trace was recorded under, or cut to. `times`
    is the document of another profile, for figures of time that the trace lacks; one with a single task serves every
    task. TraceError where a task lacks some and `times` has none for it.
    """
    tasks = {}
    found = observe(trajectories)
    if not found:
        raise TraceError(f"{source}: holds no trajectory; must have at least one")
    for task, observed in found.items():
        borrowed = _task_of(times, task) if times is not None else None
        tasks[task] = {"share": observed.trajectories} | _task_keys(observed, source, borrowed, context_limit_tokens)
    document = {
        "schema": 1,
        "name": name,
        "description": f"Fitted to {source}",
        **({} if context_limit_tokens is None else {"context_limit_tokens": context_limit_tokens}),
        "tasks": tasks,
    }
    profile_from_mapping(document, f"{source}: the fitted profile")
    return document


def _task_keys(
    observed: Observed,
    source: str,
    borrowed: tuple[str, Mapping[str, Any]] | None,
    context_limit_tokens: int | None,
) -> dict[str, Any]:
    turns = observed.draws("turns")
    if not len(turns):
        raise TraceError(f"{source}: task {observed.task!r} has no trajectory that did not fail; nothing to fit")
    keys: dict[str, Any] = {"turns": fit_figure(turns, _context(observed, "turns"), _seen(observed, "turns", source))}
    if "max" in keys["turns"]:
        keys["turns"]["max"] = min(keys["turns"]["max"], _MOST_TURNS)
    turn_scores = np.full(observed.trajectories, np.nan)
    turn_scores[turns.trajectory] = normal_scores(turns.values)
    share = float(keys["turns"].get("prompt_share", 0.0))
    for figure in ("prompt_tokens", "observation_tokens", "output_tokens", *_TIMES):
        keys[figure] = _figure_keys(observed, figure, source, borrowed, turn_scores, share)
    rates = _rate_keys(observed, f"counted in {source}")
    factors = level_factors(keys | rates, observed, context_limit_tokens)
    for figure, factor in factors.items():
        keys[figure]["source"] += f"; times {factor:.3f}, for the mean total of a trajectory"
    return levelled(keys | rates, factors)


def _rate_keys(observed: Observed, where: str) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    keys["reset_failures"] = failure_keys(observed, "reset", where)
    keys["step_failures"] = failure_keys(observed, "step", where)
    keys["success"] = success_keys(observed, where)
    compaction = compaction_keys(observed, where)
    return keys if compaction is None else keys | {"compaction": compaction}


def _figure_keys(
    observed: Observed,
    figure: str,
    source: str,
    borrowed: tuple[str, Mapping[str, Any]] | None,
    turn_scores: Floats,
    turns_prompt_share: float,
) -> dict[str, Any]:
    draws = observed.draws(figure)
    if len(draws):
        context = _context(observed, figure, turn_scores, turns_prompt_share)
        return fit_figure(draws, context, _seen(observed, figure, source))
    if figure == "observation_tokens":
        return {"quantiles": {0.5: 0.0}, "source": f"no trajectory has a second turn; {source}"}
    if borrowed is None:
        raise TraceError(f"{source}: task {observed.task!r} has no {figure}; name a profile to take it from (--times)")
    name, figures = borrowed
    own = dict(figures[figure])
    origin = own.get("source", "")
    return own | {"source": f"not in the trace; from profile {name}" + (f": {origin}" if origin else "")}


def _context(
    observed: Observed, figure: str, turn_scores: Floats | None = None, turns_prompt_share: float = 0.0
) -> Context:
    return Context(
        groups=observed.groups,
        lengths=observed.lengths,
        turn_scores=np.full(observed.trajectories, np.nan) if turn_scores is None else turn_scores,
        turns_prompt_share=turns_prompt_share,
        per_turn=figure in _PER_TURN,
        grouped=figure != "prompt_tokens",
        whole=figure not in _TIMES,
        least=_LEAST.get(figure, 0.0),
    )


def _seen(observed: Observed, figure: str, source: str) -> str:
    how = observed.provenance.get(_PROVENANCE.get(figure, figure))
    told = f" ({', '.join(sorted(how))})" if how else ""
    count = len(observed.draws(figure))
    return (
        f"{source}: {count:,} values{told} of {observed.trajectories:,} trajectories in {observed.group_count:,} groups"
    )


def _task_of(times: Mapping[str, Any], task: str) -> tuple[str, Mapping[str, Any]] | None:
    """(name of the profile, keys of the task), or None where it has no such task among several."""
    tasks = times["tasks"]
    own = tasks.get(task, next(iter(tasks.values())) if len(tasks) == 1 else None)
    return None if own is None else (str(times["name"]), own)
