import pytest

from rollart.domain.errors import InputError
from rollart.running.executor_part import STAMP, executor_module

ABSENT = "rollart_part_that_is_nowhere"


def made_by_a_makefile(folder, recipe):
    environment = folder / ".venv"
    environment.mkdir()
    (environment / STAMP).touch()
    (folder / "Makefile").write_text(f"setup-exec:\n\t{recipe}\n", encoding="utf-8")
    return environment


def test_what_is_there_is_imported(tmp_path):
    assert executor_module("json", environment=tmp_path).dumps([1]) == "[1]"


def test_an_environment_of_somebody_else_is_left_alone(tmp_path):
    with pytest.raises(InputError, match=f"run: {ABSENT} is not installed"):
        executor_module(ABSENT, environment=tmp_path)


def test_the_makefile_of_a_checkout_adds_what_is_missing(tmp_path, monkeypatch, capfd):
    monkeypatch.syspath_prepend(tmp_path / "packages")
    environment = made_by_a_makefile(tmp_path, f"mkdir packages && echo 'found = 7' > packages/{ABSENT}.py")
    assert executor_module(ABSENT, environment=environment).found == 7
    said = capfd.readouterr()
    assert said.out == ""
    assert "make setup-exec adds the executor's packages" in said.err


def test_a_makefile_that_fails_is_one_line(tmp_path, capfd):
    environment = made_by_a_makefile(tmp_path, "exit 3")
    with pytest.raises(InputError, match="make setup-exec failed in"):
        executor_module(f"{ABSENT}_either", environment=environment)
    capfd.readouterr()
