"""Real files of every format that there are any of: counts and sums that were checked by hand in the files."""

from pathlib import Path
from typing import NamedTuple

import pytest

from rollart.workload.importers import ImportOptions, TraceImport
from rollart.workload.trace import TraceTrajectory


class Sums(NamedTuple):
    """Of all trajectories of a file; seconds rounded to hundredths."""

    trajectories: int
    turns: int
    sent_tokens: int
    output_tokens: int
    env_s: float
    reset_s: float
    reward_s: float
    reward: float


def sums(found: list[TraceTrajectory]) -> Sums:
    turns = [turn for one in found for turn in one.turns]
    return Sums(
        len(found),
        len(turns),
        sum(sum(one.contexts()) for one in found),
        sum(turn.output_tokens for turn in turns),
        round(sum(turn.env_s or 0.0 for turn in turns), 2),
        round(sum(one.reset_s or 0.0 for one in found), 2),
        round(sum(one.reward_s or 0.0 for one in found), 2),
        round(sum(one.reward or 0.0 for one in found), 4),
    )


NATIVE = {
    # The provider's sums in the file: 15,235 and 281 tokens.
    "inspect_ai/browser.json.gz": ("inspect", Sums(1, 5, 15_235, 281, 9.94, 1.46, 0.0, 1.0)),
    # 66 and 2; 252 and 6, three of four correct.
    "inspect_ai/log_formats.eval": ("inspect", Sums(1, 1, 66, 2, 0.0, 0.0, 0.0, 0.0)),
    "inspect_ai/log_streaming.eval": ("inspect", Sums(4, 4, 252, 6, 0.0, 0.0, 0.0, 3.0)),
    "lmcache/miniswe.063925.jsonl.gz": ("lmcache", Sums(1, 30, 132_230, 3_208, 0.0, 0.0, 0.0, 0.0)),
    "mini_swe_agent/github_issue.traj.json.gz": ("mini-swe-agent", Sums(1, 10, 12_912, 609, 0.0, 0.0, 0.0, 0.0)),
    "mini_swe_agent/local.v1.traj.json.gz": ("mini-swe-agent", Sums(1, 2, 1_360, 50, 0.0, 0.0, 0.0, 0.0)),
    # n_input_tokens 176,436 + 190,127 + 344,857 (two off by whole tokens), n_output_tokens 9,455 + 9,042 + 19,090;
    # n_episodes 12 + 17 + 17; phases minus the times of the calls.
    "nemo_gym_harbor/harbor_terminus2.example_output.jsonl.gz": (
        "nemo-gym",
        Sums(3, 46, 711_418, 37_587, 614.77, 56.74, 16.46, 1.0),
    ),
    "nemo_gym_harbor/mini_swe_agent_2.example_rollouts.jsonl.gz": (
        "nemo-gym",
        Sums(5, 62, 598_031, 34_760, 0.0, 0.0, 0.0, 1.0),
    ),
    "nemo_gym_harbor/tau2.example_rollouts.jsonl.gz": ("nemo-gym", Sums(5, 9, 65_074, 1_552, 0.0, 0.0, 0.0, 5.0)),
    # 23 + 33 + 49 answers with counts; the other two of 34 + 50 latencies were retried.
    "openhands/output.jsonl.gz": ("openhands", Sums(3, 105, 1_913_342, 13_341, 295.35, 0.0, 0.0, 0.0)),
    "swe_agent/marshmallow-1867.function_calling.traj.gz": (
        "swe-agent",
        Sums(1, 13, 59_993, 993, 4.48, 0.0, 0.0, 0.0),
    ),
    # tokens_sent 122,612 and tokens_received 1,369; 157,229 of the other (its received ones are without tool calls).
    "swe_agent/pydicom-1458.v0.traj.gz": ("swe-agent", Sums(1, 12, 122_615, 1_369, 0.0, 0.0, 0.0, 0.0)),
    "swe_agent/swe-smith.pandas_53856.traj.gz": ("swe-agent", Sums(1, 17, 157_229, 2_792, 8.8, 0.0, 0.0, 0.0)),
    "tau_bench/gpt-4o-airline.first20.json.gz": ("tau-bench", Sums(20, 285, 821_995, 20_077, 0.0, 0.0, 0.0, 4.0)),
    # Ten answers: 32,272 + 35,740 + ... + 48,305 sent; steps of 19.29 + 12.69 + 21.47 + 0.15 + 16.11 + ... s.
    "tracelab_claude_codex/claude.session.jsonl.gz": (
        "claude-code",
        Sums(1, 10, 418_193, 9_423, 72.54, 0.0, 0.0, 0.0),
    ),
    # The last total in the file: 95,819 and 1,912.
    "tracelab_claude_codex/codex.session.jsonl.gz": ("codex", Sums(1, 9, 95_819, 1_912, 6.38, 0.0, 0.0, 0.0)),
}


@pytest.mark.parametrize("name", NATIVE)
def test_native_files(public_traces: Path, name: str) -> None:
    format_name, wanted = NATIVE[name]
    job = TraceImport([public_traces / "native_samples" / name], ImportOptions(format="auto", strict=True))
    assert (sums(list(job)), dict(job.formats)) == (wanted, {format_name: 1})


def test_the_claude_and_codex_turns_one_by_one(public_traces: Path) -> None:
    folder = public_traces / "native_samples/tracelab_claude_codex"
    claude, codex = TraceImport([folder], ImportOptions(format="auto", strict=True))
    assert claude.contexts() == [32272, 35740, 38592, 41131, 41589, 42876, 44901, 45279, 47508, 48305]
    assert [None if turn.env_s is None else round(turn.env_s, 3) for turn in claude.turns] == [
        *(19.291, 12.688, 21.467, 0.145, None),
        *(16.113, 2.521, 0.13, 0.187, None),
    ]
    assert codex.contexts() == [9324, 9917, 10058, 10152, 10472, 10436, 11636, 11727, 12097]
    assert [turn.output_tokens for turn in codex.turns] == [444, 94, 59, 233, 294, 262, 198, 279, 49]
    assert [None if turn.env_s is None else round(turn.env_s, 3) for turn in codex.turns] == [
        *(1.162, 4.99, 0.002, 0.133, None, 0.054, None, 0.04, None)
    ]


def test_the_same_runs_in_two_formats_agree(public_traces: Path) -> None:
    native = TraceImport([public_traces / "native_samples/openhands"], ImportOptions(format="openhands"))
    compact = TraceImport([public_traces / "openhands/openhands.compact.jsonl.gz"], ImportOptions(format="compact"))
    assert sums(list(native)) == sums(list(compact))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "trajectories", "turns", "sent_tokens", "output_tokens"),
    [
        ("azure_llm_2023/AzureLLMInferenceTrace_code.csv.gz", 8_819, 8_819, 18_059_974, 245_896),
        ("azure_llm_2023/AzureLLMInferenceTrace_conv.csv.gz", 19_366, 19_366, 22_361_870, 4_088_665),
        ("mooncake/conversation_trace.jsonl.gz", 6_975, 12_031, 144_793_823, 4_122_048),
        ("mooncake/synthetic_trace.jsonl.gz", 3_320, 3_993, 61_194_628, 595_432),
        ("intercode/intercode.compact.jsonl.gz", 16_409, 90_811, 34_898_474, 2_562_812),
        ("nemo_gym/nemo_gym_rollouts.compact.jsonl.gz", 683, 1_648, 7_836_952, 966_075),
        ("tau_bench/gpt-4o-airline.json.gz", 200, 2_454, 6_777_214, 157_746),
    ],
)
def test_large_files(
    public_traces: Path, name: str, trajectories: int, turns: int, sent_tokens: int, output_tokens: int
) -> None:
    found = sums(list(TraceImport([public_traces / name], ImportOptions(format="auto", strict=True))))
    assert found[:4] == (trajectories, turns, sent_tokens, output_tokens)
