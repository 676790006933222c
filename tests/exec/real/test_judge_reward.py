"""Judges on engines: what they are asked, how their answers are read, and what happens when they are late or die."""

import asyncio
from functools import partial
from pathlib import Path

import pytest
import yaml

pytest.importorskip("ray")

from rollart import api
from rollart.domain.errors import ScenarioError
from rollart.domain.execution import JudgeExecution, JudgeRule
from rollart.domain.trajectory import Cause
from rollart.exec.real.engines.fleet import EngineFleet
from rollart.exec.real.engines.turn import Turn
from rollart.exec.real.episodes import Episode, Episodes, Generated
from rollart.exec.real.rewards.function import RemoteReward
from rollart.exec.real.rewards.judge import JudgeService
from rollart.exec.real.rewards.judges import judges_of
from rollart.exec.real.rewards.rules import question, score_of
from rollart.exec.real.rewards.scoring import RewardFailure
from rollart.exec.real.tokens import Characters
from rollart.scenario.sections.execution import JudgeSection
from rollart.scenario.sections.plan import EngineGroupSection
from rollart.scenario.sections.tasks import RewardSection

LAPTOP = Path(__file__).resolve().parents[3] / "experiments/scenarios/laptop.yaml"
WORDS = Characters(64)
TEN = JudgeExecution(prompt="{text}? 0-9:", full_marks=9.0)


@pytest.mark.parametrize(
    ("rule", "answer", "score"),
    [
        (JudgeRule.NUMBER, "I give 3 of 9, no: 4.5", 0.5),
        (JudgeRule.NUMBER, "9", 1.0),
        (JudgeRule.YES_NO, "No... well, yes.", 1.0),
        (JudgeRule.YES_NO, "NO", 0.0),
    ],
)
def test_the_last_word_counts(rule, answer, score):
    assert score_of(answer, JudgeExecution(prompt="{text}", rule=rule, full_marks=9.0)) == score


@pytest.mark.parametrize(
    ("rule", "answer", "message"),
    [
        (JudgeRule.NUMBER, "good", "gives no number"),
        (JudgeRule.NUMBER, "10", "gives 10; must be from 0 to 9"),
        (JudgeRule.NUMBER, "-1", "gives -1; must be from 0 to 9"),
        (JudgeRule.YES_NO, "nobody knows", "neither yes nor no"),
    ],
)
def test_an_answer_without_a_score_has_none(rule, answer, message):
    with pytest.raises(ValueError, match=message):
        score_of(answer, JudgeExecution(prompt="{text}", rule=rule, full_marks=9.0))


def test_what_an_agent_says_is_no_template():
    fields = {"task": "t", "text": "{answer}", "answer": "{text}"}
    assert question("{task}: {text} {earned} {answer}", fields) == "t: {answer} {earned} {text}"


class Engine:
    """The process of a judge: answers as it is told, or not at all."""

    def __init__(self, received, lost, says):
        self.received, self.lost, self.says = received, lost, says
        self.posted, self.closed = [], False

    def post(self, message):
        self.posted.append(message)
        if message[0] == "turn" and self.says is not None:
            asyncio.get_running_loop().call_soon(self.received, ("turn", message[1], turn(self.says)))

    def kill(self):
        """Nothing to end."""


def turn(text):
    tokens = WORDS.observation(text, first=True)
    return Turn(
        tokens=tokens,
        logprobs=[0.0] * len(tokens),
        versions=[0] * len(tokens),
        finished=True,
        cached_tokens=0,
        recomputed_tokens=0,
        preemptions=0,
        queue_s=0.0,
        prefill_s=0.0,
        decode_s=0.0,
    )


class Court:
    """Engines 1 and 2 of three judge."""

    def __init__(self, *says):
        self.engines, self.events = [], []
        self._says = says

    async def _start(self, index, _incarnation, received, lost, *, suspended):
        del suspended
        self.engines.append(Engine(received, lost, self._says[index - 1] if index else None))
        return self.engines[-1]

    async def open(self, judge=TEN, context_limit=512):
        self.fleet = EngineFleet(3, self._start, {}, Episodes(), None, None, self.events.append, print)
        await self.fleet.start()
        service = JudgeService("t", judge, WORDS, [1, 2], 4, context_limit, self.fleet)
        self.reward = RemoteReward(service, WORDS, 8)
        return self

    def score(self, text="#12", timeout_s=5.0):
        episode = Episode(task="t", group=0, start_version=0)
        episode.observe(WORDS.observation(text[:1], first=True))
        said = WORDS.observation(text[1:], first=False)
        episode.generated(Generated(tokens=said, logprobs=[0.0] * len(said), versions=[0] * len(said)))
        return self.reward.score(episode, timeout_s)


def run(work):
    return asyncio.run(work())


def test_the_judge_reads_the_dialogue_and_the_rule_its_answer():
    async def work():
        court = await Court("6", "7").open()
        assert await court.score() == pytest.approx(6 / 9)
        ((kind, number, sampling, prompt, tokens),) = court.engines[1].posted
        assert (kind, sampling, WORDS.text(prompt), tokens) == ("turn", "t", "#12? 0-9:", 4)
        assert number < 0
        assert court.events == []

    run(work)


def test_the_least_busy_judge_is_asked():
    async def work():
        court = await Court(None, None).open()
        asked = [asyncio.create_task(court.score()) for _ in range(4)]
        await asyncio.sleep(0)
        assert [len(engine.posted) for engine in court.engines] == [0, 2, 2]
        for engine in court.engines[1:]:
            for message in engine.posted:
                engine.received(("turn", message[1], turn("9")))
        assert await asyncio.gather(*asked) == [1.0] * 4

    run(work)


def test_a_long_dialogue_loses_its_beginning():
    async def work():
        court = await Court("9", "9").open(context_limit=32)
        await court.score("#" + "1" * 30 + "2" * 18)
        prompt = WORDS.text(court.engines[1].posted[0][3])
        assert len(prompt) <= 28
        assert prompt.endswith("2" * 18 + "? 0-9:")

    run(work)


@pytest.mark.parametrize("says", ["good", "10"])
def test_an_answer_without_a_score_is_a_failure(says):
    async def work():
        court = await Court(says, says).open()
        with pytest.raises(RewardFailure) as raised:
            await court.score()
        assert raised.value.cause is Cause.ERROR

    run(work)


def test_a_late_judgement_is_stopped_and_its_answer_ignored():
    async def work():
        court = await Court(None, None).open()
        with pytest.raises(RewardFailure) as raised:
            await court.score(timeout_s=0.01)
        assert raised.value.cause is Cause.TIMEOUT
        (asked, abort) = court.engines[1].posted
        assert abort == ("abort", asked[1], asked[1])
        court.engines[1].received(("aborted", asked[1], asked[1], turn("9")))
        court.engines[1].received(("turn", asked[1], turn("9")))
        assert court.events == []

    run(work)


def test_a_judge_that_dies_fails_its_judgements_and_the_other_goes_on():
    async def work():
        court = await Court(None, "9").open()
        asked = asyncio.create_task(court.score())
        await asyncio.sleep(0)
        court.engines[1].lost("killed")
        with pytest.raises(RewardFailure) as raised:
            await asked
        assert raised.value.cause is Cause.ERROR
        assert [(event.engine, event.commands) for event in court.events] == [(1, ())]
        assert await court.score() == 1.0
        court.engines[2].lost("killed")
        with pytest.raises(RewardFailure, match="no judge is up"):
            await court.score()

    run(work)


JUDGED = [
    "cluster.pools.judging={device: CPU core, count: 1, devices_per_node: 1}",
    "tasks.counting.reward={kind: engine, engine_group: judges, judge_tokens: 1}",
    "tasks.counting.execution.reward=judge",
    "tasks.counting.execution.judge={prompt: '{text}. 0-9:', full_marks: 9, allowed: ['0', '4', '9']}",
]
JUDGES = "{name: judges, pool: judging, engines: 1, role: judge, max_num_seqs: 32, block_size: 32"


def judged(tmp_path, *settings, group=JUDGES):
    """The laptop's scenario with a judge for counting."""
    path = tmp_path / "judged.yaml"
    text = LAPTOP.read_text(encoding="utf-8").replace(
        "  affinity:\n", f"    - {group}, max_num_batched_tokens: 2048, gpu_memory_utilization: 0.25}}\n  affinity:\n"
    )
    path.write_text(text, encoding="utf-8")
    return api.load_scenario(path, [*JUDGED, *settings])


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("tasks.counting.execution.reward=environment", "`judge` and kind engine go together"),
        ("tasks.counting.execution.judge=null", "tasks.counting.execution.judge: is missing"),
        ("tasks.counting.execution.judge.prompt='how many?'", "must show the judge {text} or {answer}"),
        ("execution.judge_weights={turns: smollm2}", "no such group of judges; known: judges"),
        ("tasks.FrozenLake.execution.judge={prompt: '{text}'}", "is given, and the reward is 'environment'"),
    ],
)
def test_judges_that_do_not_fit_are_named(tmp_path, setting, message):
    with pytest.raises(ScenarioError) as raised:
        judged(tmp_path, setting).execution()
    assert message in str(raised.value)


def test_a_judge_of_another_model_needs_its_weights(tmp_path):
    with pytest.raises(ScenarioError, match=r"execution.judge_weights.judges: is missing; .* with SmolLM2-135M"):
        judged(tmp_path, group=f"{JUDGES}, model: SmolLM2-135M").execution()


def test_a_question_must_leave_room(tmp_path):
    scenario = judged(tmp_path, "tasks.counting.reward.judge_tokens=506")
    judges = partial(judges_of, scenario.job(), scenario.execution(), Path("model"), WORDS, tmp_path)
    with pytest.raises(ScenarioError, match=r"question and judge_tokens take 512 tokens; must be below .* 512"):
        judges()
    with pytest.raises(ScenarioError, match="is no character of the tokenizer"):
        scenario = judged(tmp_path, "tasks.counting.execution.judge.allowed=['!']")
        judges_of(scenario.job(), scenario.execution(), Path("model"), WORDS, tmp_path)


def test_each_group_is_told_how_to_sample_for_its_tasks(tmp_path):
    scenario = judged(tmp_path)
    made = judges_of(scenario.job(), scenario.execution(), Path("model"), WORDS, tmp_path)
    sampling = made["judges"].sampling
    assert set(sampling) == {"counting"}
    assert sampling["counting"].allowed == tuple(WORDS.token(text) for text in "049")
    assert sampling["counting"].temperature == 0.0


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_run_with_a_judge_and_a_function_on_ray_serve(tmp_path):
    scenario = judged(
        tmp_path,
        "training.batch_size=32",
        "steps=2",
        "execution.cores.judging='0'",
        "tasks.FrozenLake.execution.reward=serve:tests.exec.real.grading:digits",
        "tasks.FrozenLake.execution.reward_concurrency=2",
        "cluster.serverless.keep_alive_s=5",
    )
    summary = api.run(scenario, out=tmp_path / "run").summary
    assert summary["trajectories"]["trained"] == 64
    assert summary["trajectories"]["failed"] == 0
    assert summary["logprob_gap"]["max"] < 1e-4
    # Letters are no digits, and the judge writes 0, 4 or 9 of 9.
    assert summary["reward"]["FrozenLake"]["last"] == 0.0
    assert 0.0 <= summary["reward"]["counting"]["last"] <= 1.0
    assert api.check(tmp_path / "run").ok


def test_the_scenario_in_the_documentation_has_a_judge():
    page = (LAPTOP.parents[2] / "docs/real-workers.md").read_text(encoding="utf-8")
    shown = yaml.safe_load(page.partition("**Judges**")[2].partition("```yaml\n")[2].partition("```")[0])
    (task,) = shown["tasks"]
    assert RewardSection(**task["reward"]).engine_group == "judges"
    assert JudgeSection(**task["execution"]["judge"]).rule == "number"
    (group,) = shown["placement"]["engines"]
    assert EngineGroupSection(**group).role == "judge"
    assert set(shown["execution"]["judge_weights"]) == {"judges"}
