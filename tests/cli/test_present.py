"""Progress on a terminal, and where there is none."""

from rollart.cli.present import step_progress, told_progress


def test_without_a_terminal_there_is_no_bar_and_lines_are_plain(capfd):
    with told_progress("a run") as (progress, tell):
        assert progress is None
        tell("step 1/2: reward [a] 0.50")
    found = capfd.readouterr()
    assert (found.out, found.err) == ("", "step 1/2: reward [a] 0.50\n")


def test_on_a_terminal_lines_stand_above_the_bar(capfd, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    with told_progress("a run") as (progress, tell):
        assert progress is not None
        tell("step 1/2: reward [a] 0.50")
        progress(1, 2)
    found = capfd.readouterr()
    assert found.out == ""
    assert "step 1/2: reward [a] 0.50" in found.err


def test_a_bar_alone_needs_a_terminal(capfd):
    with step_progress("a run") as progress:
        assert progress is None
    assert capfd.readouterr().err == ""
