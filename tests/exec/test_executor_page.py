"""The example of docs/executor.md works."""

import re
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = CHECKOUT / "docs/executor.md"


def test_the_example_runs(tmp_path, monkeypatch, capsys):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiments").symlink_to(CHECKOUT / "experiments")
    exec(compile(code, str(PAGE), "exec"), {"__name__": "example"})
    assert capsys.readouterr().out.splitlines() == ["exec True", "True"]


def test_every_file_that_the_page_names_is_there():
    text = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| ((?:`[a-z_/.]+`(?:, )?)+) \|", text, re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`([a-z_]+\.py|[a-z]+/)`", row)]
    assert len(named) > 10
    assert [name for name in named if not (CHECKOUT / "rollart/exec" / name).exists()] == []
