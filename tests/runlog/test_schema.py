from rollart.domain.commands import COMMANDS, GenerateTurn, TrainBatch
from rollart.domain.events import EVENTS, EngineLost, EnvironmentFailed
from rollart.domain.trajectory import Cause
from rollart.runlog.answers import ANSWERS
from rollart.runlog.samples import SAMPLES
from rollart.runlog.schema import KIND_OF, KINDS, Form, Side, union_columns
from rollart.runlog.stages import STAGE_OF


def test_every_record_of_the_protocol_has_a_kind() -> None:
    assert [kind.type for kind in KINDS] == [*EVENTS, *COMMANDS, *SAMPLES]
    assert {kind.side for kind in KINDS} == set(Side)
    assert len({kind.name for kind in KINDS}) == len(KINDS)


def test_list_fields_have_columns_of_their_own() -> None:
    columns = union_columns()
    assert columns["context_tokens"] is Form.INT
    assert columns["context_tokens_list"] is Form.INT_LIST
    assert KIND_OF[TrainBatch].field("context_tokens").column == "context_tokens_list"
    assert KIND_OF[EngineLost].field("commands").form is Form.INT_LIST


def test_optional_and_enum_fields_are_recognised() -> None:
    assert KIND_OF[GenerateTurn].field("prefill_engine").form is Form.OPTIONAL_INT
    assert KIND_OF[EnvironmentFailed].field("cause").enum is Cause


def test_columns_of_records_do_not_hide_the_leading_ones() -> None:
    assert not {"seq", "time_s", "record", "kind", "cause_seq"} & set(union_columns())


def test_each_answered_command_has_a_stage_and_answers() -> None:
    assert set(STAGE_OF) == set(ANSWERS)
