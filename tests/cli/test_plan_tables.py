"""What `rollart plan` shows."""

from typing import Any

from rollart.cli.plan_tables import picture, show_plan


def group(name: str, pool: str, engines: int, tensor_parallel: int) -> dict[str, Any]:
    return {
        "name": name,
        "pool": pool,
        "engines": engines,
        "tensor_parallel": tensor_parallel,
        "time_shared": False,
    }


def candidate(predicted: float) -> dict[str, Any]:
    trainer = {
        "pool": "h800",
        "devices": 64,
        "tensor_parallel": 4,
        "pipeline_parallel": 2,
        "context_parallel": 1,
    }
    engines = [group("h800-tp4", "h800", 8, 4), group("h20-tp1", "h20", 31, 1)]
    use = {"busy": 0.5, "bottleneck": "engines"}
    return {
        "predicted": predicted,
        "bottleneck": "rollout",
        "simulated": {"mean": 200.0, "p50": 190.0, "p90": 220.0},
        "behind": 0.0,
        "plan": {"trainer": trainer, "engines": engines, "affinity": {"math": ["h20-tp1"], "code": ["h800-tp4"]}},
        "pools": {
            "h800": {"training": 64, "rollout": 32, "idle": 0, **use},
            "h20": {"training": 0, "rollout": 31, "idle": 1, **use},
        },
    }


def report(**changes: Any) -> dict[str, Any]:
    return {
        "status": "optimal",
        "objective": "step_time",
        **candidate(180.0),
        "bound": 178.2,
        "gap": 0.01,
        "floor": 150.0,
        "wall_s": 1.25,
        "binding": ["H800: all 96 are taken"],
        "judged": {
            "clear": True,
            "equally_good": 0,
            "out_of_time": False,
            "simulated": 7,
            "remembered": 4,
            "wall_s": 61.0,
        },
        "sensitivity": None,
        "alternatives": [candidate(185.0) | {"behind": 0.05}],
        **changes,
    }


def test_the_picture_says_who_runs_where() -> None:
    assert list(picture(report())) == [
        "h800  " + "T" * 32 + "a" * 16,
        "h20   " + "b" * 16 + ".",
        "      T trains, . is idle; a letter is 2 devices",
        "      a h800-tp4 (8 x TP 4): code",
        "      b h20-tp1 (31 x TP 1): math",
    ]


def test_without_affinity_every_task_goes_anywhere() -> None:
    shown = report()
    shown["plan"]["affinity"] = {}
    assert list(picture(shown))[-1].endswith("(31 x TP 1): every task")


def test_the_report_has_reasons_and_proof(capsys: Any) -> None:
    show_plan(report())
    printed = capsys.readouterr().out
    assert "h800 x 64 (4x2x1)" in printed
    assert "5.0 %" in printed
    assert printed.endswith(
        "a step waits for rollout\n"
        "binding: H800: all 96 are taken\n"
        "the ranking is clear: 7 simulations and 4 remembered, 61 s\n"
        "optimal: bound 178.2, gap 1.00 %, floor 150 (75 % of the simulated), solved in 1.2 s\n"
    )


def test_the_sensitivity_table_has_changes_against_the_plan(capsys: Any) -> None:
    effect = {"variation": "one more node", "predicted": 162.0, "kept": 200.0, "replanned": 190.0}
    table = {
        "predicted": 180.0,
        "simulated": 200.0,
        "effects": [effect],
        "drifts": [effect | {"output_scale": 2.0}],
        "plan_again": {"shorter": 0.5, "longer": None},
    }
    show_plan(report(sensitivity=table))
    printed = capsys.readouterr().out
    assert "162 (-10.0 %)" in printed
    assert "190 (-5.0 %)" in printed
    assert "plan again when outputs are 0.5 times as long" in printed


def test_a_plan_that_was_not_simulated_has_no_figures(capsys: Any) -> None:
    bare = report(simulated=None, judged=None)
    bare["alternatives"] = []
    show_plan(bare)
    assert "floor 150, solved" in capsys.readouterr().out
