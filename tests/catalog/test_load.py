import pytest

from rollart.catalog.load import devices, devices_with, models, models_with
from rollart.domain.errors import InputError

FIGURE_FIELDS = {
    "memory_bytes",
    "memory_bandwidth_bytes_per_s",
    "flops_per_s",
    "device_link_bytes_per_s",
    "host_link_bytes_per_s",
    "price_per_hour",
}


def test_the_devices_of_the_paper():
    h20, h800 = devices()["H20"], devices()["H800"]
    assert (h20.flops_per_s["bf16"], h20.memory_bandwidth_bytes_per_s, h20.price_per_hour) == (
        148e12,
        4e12,
        1.0,
    )
    assert (h800.flops_per_s["bf16"], h800.device_link_bytes_per_s, h800.price_per_hour) == (
        989.5e12,
        200e9,
        2.85,
    )


def test_every_figure_has_its_source():
    for name in devices():
        assert set(devices()[name].sources) == FIGURE_FIELDS, name


def test_look_up_forgives_case_and_punctuation():
    assert devices()["rtx_pro-6000"].name == "RTX PRO 6000"
    assert devices()["cpu core"].kind == "cpu"
    assert models()["llama 3.1 8b"].name == "Llama-3.1-8B"
    assert "h 800" in devices()
    assert 7 not in devices()


def test_an_unknown_name_lists_near_ones():
    with pytest.raises(InputError, match=r"^device 'H1000' is not known; did you mean H100"):
        devices()["H1000"]
    with pytest.raises(InputError, match=r"model 'Qwen3-9B' is not known; did you mean .*Qwen3-8B"):
        models()["Qwen3-9B"]
    with pytest.raises(InputError, match="device 'zzz' is not known; known: H20, H800"):
        devices()["zzz"]


def test_own_devices_and_models_are_added_and_win():
    mine = devices_with(
        {"H21": {"like": "h20", "memory_bytes": "141e9"}, "h800": {"like": "H800", "price_per_hour": 2}}
    )
    assert mine["H21"].memory_bytes == 141e9
    assert mine["H21"].flops_per_s == mine["H20"].flops_per_s
    assert mine["H800"].price_per_hour == 2.0
    small = models_with({"half": {"like": "Qwen3-8B", "num_hidden_layers": 18}})
    assert small["half"].layers == 18
    assert devices()["H800"].price_per_hour == 2.85


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"like": "nope"}, "entry X: like = 'nope' is not a known name"),
        ({"like": "H20", "colour": 1}, "device X: unknown key colour; one of: device_link"),
        ({"like": "H20", "memory_bytes": "lots"}, "device X: memory_bytes must be a number, not 'lots'"),
        ({"like": "H20", "flops_per_s": 3}, "flops_per_s must map a precision to a rate, not 3"),
        ({"kind": "gpu", "flops_per_s": {"bf16": 1e12}}, "memory_bytes must be a number, not None"),
        ({"like": "H20", "devices_per_node": 1.5}, "devices_per_node must be a whole number, not 1.5"),
        ({"like": "H20", "sources": "me"}, "sources must map a field to a text, not 'me'"),
        (3, "entry 'X' must be a name with a mapping"),
    ],
)
def test_a_bad_device_names_what_is_wrong(entry, message):
    with pytest.raises(InputError, match=message):
        devices_with({"X": entry})
