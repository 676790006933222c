from experiments.scale import SIZES, Cost, engines_for, rows, verdict
from rollart.benchmark import bench_job, trainer_devices


def cost(gpus: int, ratio: float) -> Cost:
    return Cost(
        gpus=gpus, turns=12_345, events_per_turn=2.126, us_per_turn=99.6, simpy_events_per_turn=ratio, peak_rss_mb=321.4
    )


def test_rows() -> None:
    assert rows([cost(3072, 61.25)]) == [("3,072", "12,345", "2.13", "100", "61.2", "321")]


def test_flat_within_a_factor() -> None:
    assert verdict([cost(32, 60.0), cost(128, 90.0)]).endswith("1.50 (flat within 1.5)")
    assert verdict([cost(32, 60.0), cost(128, 91.0)]).endswith("1.52 (not flat within 1.5)")


def test_sizes_are_nearly_filled() -> None:
    for gpus in SIZES:
        engines = engines_for(gpus)
        assert 0.95 * gpus <= engines + trainer_devices(engines) <= gpus


def test_the_load_of_the_benchmark_is_a_parameter() -> None:
    assert bench_job(10, 2, trajectories_per_engine=16).training.batch_size == 160
