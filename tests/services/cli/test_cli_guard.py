"""Whatever goes wrong: one sentence, an exit code, no trace."""

import errno
from pathlib import Path

import pytest

from services.cli.main_guard import CommandFailed, guarded
from services.common.errors import StartupError, refuse


def _raising(error: BaseException) -> int:
    def run() -> None:
        raise error

    return guarded(run)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (CommandFailed("There is no such thing."), "There is no such thing."),
        (StartupError("The port is in use."), "The port is in use."),
        (refuse("MATCH_NOT_FOUND"), "There is no such match. (MATCH_NOT_FOUND)"),
        (FileNotFoundError(errno.ENOENT, "No such file", "x.dlmatch"), "No such file: x.dlmatch"),
        (ExceptionGroup("tasks", [StartupError("Redis ended.")]), "Redis ended."),
    ],
)
def test_known_failures_become_one_sentence(
    error: BaseException, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _raising(error) == 1
    shown = capsys.readouterr()
    assert shown.err.strip() == f"diceledger: {sentence}"
    assert shown.out == ""


def test_an_unexpected_failure_is_an_incident_with_a_private_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    assert _raising(ZeroDivisionError("division by zero")) == 1
    shown = capsys.readouterr().err
    (file,) = tmp_path.iterdir()
    assert str(file) in shown.replace("\n", "")
    assert "Traceback" not in shown
    assert "ZeroDivisionError" in file.read_text()
    assert file.stat().st_mode & 0o077 == 0


def test_ctrl_c_and_exit_codes_are_kept(capsys: pytest.CaptureFixture[str]) -> None:
    assert _raising(KeyboardInterrupt()) == 130
    assert _raising(SystemExit(2)) == 2
    assert guarded(lambda: None) == 0
    assert "Stopped." in capsys.readouterr().err
