"""SGLang's rules by hand: prompts go first, in iterations of their own."""

from math import inf

import pytest

from rollart.costs.interface import LinearPiece
from rollart.domain.errors import InputError, InvariantError
from rollart.serving import Engine, EngineConfig, Request, Role


class Seconds:
    """One second for an iteration that decodes, ten for one of prompts."""

    kv_capacity_tokens = 0
    kv_bytes_per_token = 0.0
    weight_bytes = 0.0

    def __init__(self):
        self.mixed = []

    def decode(self, *_):
        return LinearPiece(1.0, 0.0, inf)

    def mixed_s(self, batch, context_tokens, chunks):
        self.mixed.append((batch, context_tokens, list(chunks)))
        return 10.0


def engine(costs, **settings):
    limits = {"max_num_seqs": 8, "max_num_batched_tokens": 100, "kv_blocks": 1000, **settings}
    return Engine(EngineConfig(block_size=1, scheduler="sglang", **limits), costs)


def request(number, context=50, output=5, **more):
    return Request(request_id=number, chain=number, context_tokens=context, output_tokens=output, **more)


def finish(subject):
    done = []
    while subject.next_wake < inf:
        done += subject.advance(subject.next_wake)
    return done


def test_decoding_stands_still_while_a_prompt_is_computed():
    costs = Seconds()
    subject = engine(costs)
    subject.submit(request(1), 0.0)
    subject.advance(10.0)
    subject.advance(11.0)
    subject.submit(request(2), 11.5)
    done = {completion.request_id: completion for completion in finish(subject)}
    # The second prompt starts at 12 and takes ten seconds of the first one's decoding.
    assert done[1].time_s == 10.0 + 4 + 10.0
    assert done[2].first_token_s == 22.0 - 11.5
    assert costs.mixed == [(0, 0, [(50, 0)]), (0, 0, [(50, 0)])]


def test_a_long_prompt_holds_decoding_up_until_it_is_whole():
    costs = Seconds()
    subject = engine(costs)
    subject.submit(request(1, context=20, output=3), 0.0)
    subject.submit(request(2, context=250, output=1), 0.0)
    done = {completion.request_id: completion for completion in finish(subject)}
    assert costs.mixed == [(0, 0, [(20, 0), (80, 0)]), (0, 0, [(100, 80)]), (0, 0, [(70, 180)])]
    assert done[2].time_s == 30.0
    assert done[1].time_s == 32.0
    assert subject.usage(40.0).decode_tokens == 2


def test_tokens_made_do_not_count_an_iteration_of_prompts():
    subject = engine(Seconds())
    subject.submit(request(1), 0.0)
    subject.advance(11.0)
    subject.submit(request(2), 11.0)
    subject.advance(12.0)
    assert subject.abort(1, 21.9) == 3


def test_admission_leaves_room_for_the_output():
    """Of 100 tokens of KV the first may need 60; prompt and output of the second would be 55."""
    subject = engine(Seconds(), kv_blocks=100)
    subject.submit(request(1, context=50, output=11), 0.0)
    subject.submit(request(2, context=45, output=11), 0.0)
    done = {completion.request_id: completion for completion in finish(subject)}
    assert done[1].time_s == 20.0
    assert done[2].queue_s == 20.0


def test_what_brings_kv_is_refused():
    subject = engine(Seconds())
    subject.submit(request(1, role=Role.DECODE), 0.0)
    with pytest.raises(InvariantError, match="brings KV"):
        subject.advance(0.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scheduler": "orca"}, "scheduler 'orca' is not known; one of: vllm, sglang"),
        ({"scheduler": "sglang", "block_size": 16}, "block_size is 16"),
        ({"prefix_tokens": 24}, "prefix_tokens is 24; it must be 0 or a multiple of block_size 16"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        EngineConfig(max_num_seqs=1, max_num_batched_tokens=1, kv_blocks=1, **settings)
