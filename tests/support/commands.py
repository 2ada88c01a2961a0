"""The command `diceledger` as a subprocess, as a person or a script runs it."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

_START_S = 60.0


def run(
    *arguments: str | Path,
    cwd: Path,
    timeout_s: float = 120,
    environ: dict[str, str] | None = None,
    stdin: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; its output is text, without a terminal."""
    return subprocess.run(
        command(*arguments),
        cwd=cwd,
        env=clean_environ() | (environ or {}),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def command(*arguments: str | Path) -> list[str]:
    """The command line, with this interpreter."""
    return [sys.executable, "-P", "-m", "services.cli.main", *(str(each) for each in arguments)]


def clean_environ() -> dict[str, str]:
    """The environment without settings of this project, and plain text on any machine."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("DICELEDGER_")}
    return kept | {"PYTHONUNBUFFERED": "1", "NO_COLOR": "1", "COLUMNS": "100"}


def read_until(process: "subprocess.Popen[str]", words: str) -> None:
    """Read what a command that is under way prints, up to a line with these words."""
    assert process.stdout is not None
    line = ""
    while words not in line:
        line = process.stdout.readline()
        assert line, "it ended too early"


class Up:
    """A running `diceledger up`."""

    def __init__(self, process: asyncio.subprocess.Process, ready: dict[str, Any]) -> None:
        self.process = process
        self.address: str = ready["address"]

    @property
    def port(self) -> int:
        """Where it listens on 127.0.0.1."""
        return int(self.address.rpartition(":")[2])

    async def kill(self) -> None:
        """End it as a crash would."""
        self.process.kill()
        await self.process.wait()

    async def stop(self) -> int:
        """End it in order; return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return await self.process.wait()


@contextlib.asynccontextmanager
async def up(data: Path, *, port: int = 0) -> AsyncIterator[Up]:
    """`diceledger up` on a directory, for the length of the block."""
    process = await asyncio.create_subprocess_exec(
        *command("up", "--data", data, "--port", str(port), "--metrics-port", "0", "--json"),
        env=clean_environ(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=None,
    )
    try:
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), _START_S)
        assert line, "it ended before it was ready"
        yield Up(process, json.loads(line))
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
