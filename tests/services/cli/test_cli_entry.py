"""Ctrl-C while the program still loads is a quiet end, not a trace."""

import builtins
import subprocess
import sys
from collections.abc import Mapping, Sequence

import pytest

from services.cli import entry


def test_interrupt_while_loading_ends_quietly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 130 and not a word."""
    real_import = builtins.__import__

    def interrupted(
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002 - the signature of __import__
        locals: Mapping[str, object] | None = None,  # noqa: A002
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> object:
        if name == "services.cli.main":
            raise KeyboardInterrupt
        return real_import(name, globals, locals, fromlist, level)

    monkeypatch.setattr(builtins, "__import__", interrupted)
    with pytest.raises(SystemExit) as end:
        entry.main()
    assert end.value.code == 130
    assert capsys.readouterr() == ("", "")


def test_the_module_runs_the_program() -> None:
    """`python -m services.cli.entry` is the command `diceledger`, where that is not on the path."""
    command = [sys.executable, "-m", "services.cli.entry", "cards", "--card", "wings", "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    assert '"wings"' in done.stdout
