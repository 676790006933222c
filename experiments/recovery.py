"""How long a run takes to recover from what dies, hangs or fails, on real processes.

    .venv/bin/python experiments/recovery.py --repetitions 10

One real run of `laptop.yaml` (batch 32) in which, one after the other, an engine, an environment process and the
trainer are killed with -9, an environment hangs (its time-out is 10 s, and no other episode is there to take its
place), and a reward call fails (it is made again after 1 s); then a run whose driver is killed with -9 and started
again with `--resume`, again and again. Times count from the fault: *noticed*, when the controller learns of it,
*recovered*, when

    engine           the engine's next incarnation has generated a turn
    environments     every episode of the process that died is in its first turn again, or over
    trainer          a version is trained that was not there before (a checkpoint is written every second step)
    hung environment the episode is in its first turn again
    failed reward    the trajectory is scored
    driver           the first step behind the resumption has ended

Writes experiments/results/recovery.json; times that are there stay, and only what is missing to the repetitions is
brought about (--again begins anew).
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from chaos import Chaos, Fault, Finished, Times, watched
from faulty import FlakyReward

from rollart import api
from rollart.cli.present import show_table
from rollart.exec.execute import execute
from rollart.exec.real.engines.remains import descendants
from rollart.running.reals import real_crew

ROOT = Path(__file__).resolve().parents[1]
LAPTOP = ROOT / "experiments/scenarios/laptop.yaml"
RESULT = ROOT / "experiments/results/recovery.json"
SMALL = ["training.batch_size=32"]
RECOVERY = "policy.recovery={checkpoint_every: 2, step_timeout_s: 10.0}"
PATIENT = [
    "policy.staleness={bound: 1000}",
    "policy.admission={lookahead: 1, redundant_groups: 0.0}",
    "policy.group={redundant_members: 0}",
]
"""Every episode is needed and none grows too old: else one that hangs is given up before its time-out."""
DRIVER = "driver"
MANY = 100_000
"""Steps of a run that is ended when all faults are over."""
KILL_AT, APART = 3, 2
"""Step at which the driver dies for the first time, and steps between two deaths."""


def kill(name: str) -> None:
    """Kill -9 the first process of this name, which is its title, below this one."""
    for pid, _ in descendants(os.getpid()):
        if Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").startswith(f"ray::{name}"):
            os.kill(pid, signal.SIGKILL)
            return
    raise RuntimeError(f"there is no process {name}")


def faults_of(flag: Path, reward: FlakyReward) -> dict[Fault, Callable[[], None]]:
    """How each fault is brought about."""
    return {
        Fault.ENGINE: lambda: kill("EngineProcess"),
        Fault.ENVIRONMENTS: lambda: kill("EnvironmentHost"),
        Fault.TRAINER: lambda: kill("TrainerProcess"),
        Fault.HANG: flag.touch,
        Fault.REWARD: reward.fail,
    }


def workers_die(kinds: Sequence[Fault], more: Sequence[str], times: Times) -> None:
    """Add the times of these faults, in this order."""
    reward = FlakyReward()
    with tempfile.TemporaryDirectory(prefix="rollart-recovery-") as name:
        folder = Path(name)
        hanging = {"environment": "frozenlake", "flag": str(folder / "hang")}
        settings = [
            *SMALL,
            *PATIENT,
            *more,
            RECOVERY,
            f"steps={MANY}",
            "tasks.FrozenLake.execution.environment='faulty:Hanging'",
            f"tasks.FrozenLake.execution.arguments={json.dumps(hanging)}",
            "tasks.FrozenLake.execution.processes=2",
            f"tasks.counting.execution.reward='{reward.url}'",
        ]
        scenario = api.load_scenario(LAPTOP, settings)
        cause = faults_of(folder / "hang", reward)
        chaos = Chaos([(kind, cause[kind]) for kind in kinds], times)
        job = scenario.job()
        try:
            with real_crew(scenario, job, folder, None) as crew:
                execute(job, watched(crew, chaos))
        except Finished:
            return
        finally:
            reward.close()
    raise RuntimeError("the run ended before all faults were over")


def driver_dies(repetitions: int, more: Sequence[str], times: Times) -> None:
    """Add the times from the death of the driver to the end of the first step after `--resume`."""
    steps = KILL_AT + APART * repetitions
    with tempfile.TemporaryDirectory(prefix="rollart-recovery-") as folder:
        command = [
            sys.executable,
            __file__,
            "--drive",
            folder,
            "--steps",
            str(steps),
            *(f"--set={each}" for each in more),
        ]
        died_s, last = 0.0, KILL_AT
        for life in range(repetitions + 1):
            process = subprocess.Popen([*command, *(["--resume"] if life else [])], stdout=subprocess.PIPE, text=True)
            assert process.stdout is not None
            first = True
            for line in process.stdout:
                if not line.startswith("step "):
                    continue
                if first and life:
                    times[DRIVER].append((None, time.monotonic() - died_s))
                    print(f"driver: {times[DRIVER][-1][1]:.1f} s", flush=True)
                first = False
                if life < repetitions and int(line.split()[1]) >= last:
                    process.kill()
                    died_s, last = time.monotonic(), int(line.split()[1]) + APART
                    break
            process.wait()


def drive(folder: Path, steps: int, more: Sequence[str], *, resume: bool) -> None:
    """The run whose driver is killed; says when a step has ended."""

    def progress(version: int, _: int) -> None:
        print(f"step {version}", flush=True)

    scenario = api.load_scenario(LAPTOP, [*SMALL, *more, RECOVERY, f"steps={steps}"])
    api.run(scenario, out=folder / "run", progress=progress, resume=resume)


def figures(times: Times) -> dict[str, Any]:
    """By fault: how often, and the median and the ends of both times in seconds."""
    found: dict[str, Any] = {}
    for kind, each in times.items():
        if not each:
            continue
        noticed = [one for one, _ in each if one is not None]
        recovered = [one for _, one in each]
        found[kind] = {
            "count": len(each),
            "noticed_s": median(noticed) if noticed else None,
            "recovered_s": median(recovered),
            "least_s": min(recovered),
            "most_s": max(recovered),
        }
    return found


def bring_about(faults: Sequence[str], repetitions: int, more: Sequence[str], times: Times) -> None:
    """Add what is missing to so many times of each fault."""
    kinds = [kind for n in range(repetitions) for kind in Fault if kind in faults and len(times[kind]) <= n]
    if kinds:
        workers_die(kinds, more, times)
    missing = repetitions - len(times[DRIVER])
    if DRIVER in faults and missing > 0:
        driver_dies(missing, more, times)


def main() -> None:
    """Bring the faults about, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--repetitions", type=int, default=1)
    parser.add_argument("--faults", nargs="+", default=[*Fault, DRIVER], choices=[*Fault, DRIVER])
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--set", dest="settings", action="append", default=[], help="KEY=VALUE, for all runs")
    parser.add_argument("--drive", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--steps", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--resume", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.drive is not None:
        drive(options.drive, options.steps, options.settings, resume=options.resume)
        return
    times: Times = defaultdict(list)
    if RESULT.is_file() and not options.again:
        times |= json.loads(RESULT.read_text())["times_s"]
    try:
        bring_about(options.faults, options.repetitions, options.settings, times)
    finally:
        found = figures(times)
        result = {
            "version": api.code_version(),
            "cores": len(os.sched_getaffinity(0)),
            "faults": found,
            "times_s": times,
        }
        RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    rows = [
        (
            kind,
            str(each["count"]),
            "" if each["noticed_s"] is None else f"{each['noticed_s']:.2f}",
            f"{each['recovered_s']:.1f}",
            f"{each['least_s']:.1f}-{each['most_s']:.1f}",
        )
        for kind, each in found.items()
    ]
    show_table("Time to recover, seconds", ("fault", "times", "noticed", "recovered", "range"), rows)


if __name__ == "__main__":
    main()
