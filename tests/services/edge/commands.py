"""Runs `diceledger` as a person would: in a process of its own, seen from outside only."""

import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMAND = (sys.executable, "-P", "-m", "services.cli.main")


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """What a failed command says, on one line; never a trace."""
        assert "Traceback" not in self.err
        assert "incident" not in self.err
        return " ".join(self.err.split())


def clean_environ(**settings: str) -> dict[str, str]:
    """This process's environment without settings, and with these."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("DICELEDGER_")}
    return kept | {f"DICELEDGER_{name}": value for name, value in settings.items()}


async def run(
    *arguments: str, environ: Mapping[str, str] | None = None, patience_s: float = 60
) -> Ended:
    """Run a command to its end."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(clean_environ() if environ is None else environ),
    )
    try:
        async with asyncio.timeout(patience_s):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


class Up:
    """A running `diceledger up --json`."""

    def __init__(self, process: asyncio.subprocess.Process, ready: dict[str, Any]) -> None:
        self.process = process
        self.ready = ready

    async def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Signal it and wait for its end."""
        self.process.send_signal(number)
        async with asyncio.timeout(60):
            return await self.process.wait()


@contextlib.asynccontextmanager
async def up(
    *arguments: str, patience_s: float = 90, said: Path | None = None
) -> AsyncIterator[Up]:
    """`diceledger up --json …` on free ports, from when it serves to the end of the block.

    `said`: the file for what it says on standard error.
    """
    errors = said.open("w+b") if said else tempfile.TemporaryFile()  # noqa: SIM115 - closed below
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *("up", "--json", "--port", "0", "--metrics-port", "0", *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=errors,
        env=clean_environ(),
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(patience_s):
            line = await process.stdout.readline()
        if not line:
            code = await process.wait()
            errors.seek(0)
            raise AssertionError(f"it ended with {code}: {errors.read().decode()}")
        yield Up(process, json.loads(line))
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            try:
                async with asyncio.timeout(30):
                    await process.wait()
            except TimeoutError:
                process.kill()
        errors.close()
