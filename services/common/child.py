"""Child processes that cannot outlive their parent, however it ends.

A child is started through a few lines of Python that ask Linux to signal it when the parent dies
and then become the wanted program. (A hook between fork and exec would be shorter, and unsafe in
a process with gRPC threads.) Elsewhere than on Linux, children of a killed parent stay alive.
"""

import asyncio
import contextlib
import fcntl
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from services.common.errors import StartupError

# A predecessor that is just ending (its parent was killed) may hold the directory a moment longer.
_PREDECESSOR_S: Final = 10.0

_LEASH: Final = """
import ctypes, os, signal, sys
parent, number = int(sys.argv[1]), int(sys.argv[2])
if sys.platform == "linux":
    ctypes.CDLL(None, use_errno=True).prctl(1, number)
if os.getppid() != parent:
    sys.exit(1)
os.execv(sys.argv[3], sys.argv[3:])
"""


def leashed(command: Sequence[str], death_signal: signal.Signals = signal.SIGKILL) -> list[str]:
    """Return the command that runs `command` (absolute path first) until this process dies.

    The signal comes when the *thread* that starts the child ends; start children from the main
    thread.
    """
    leash = [sys.executable, "-I", "-S", "-c", _LEASH, str(os.getpid()), str(int(death_signal))]
    return [*leash, *command]


class Child:
    """A running child process, in a session of its own: Ctrl-C reaches it only through us."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        """Use `start_child`."""
        self.name = name
        self._process = process

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Exit code; negative: the signal that ended it; None while it runs."""
        return self._process.returncode

    async def wait(self) -> int:
        """Wait for its end and return the exit code."""
        return await self._process.wait()

    def send(self, number: signal.Signals) -> None:
        """Send a signal; nothing happens when it has ended already."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    async def stop(self, patience_s: float) -> int:
        """Ask it to end (SIGTERM); after `patience_s` seconds end it. Return the exit code."""
        self.send(signal.SIGCONT)  # A paused one would not hear it.
        self.send(signal.SIGTERM)
        try:
            async with asyncio.timeout(patience_s):
                return await self.wait()
        except TimeoutError:
            return await self.kill()

    async def kill(self) -> int:
        """End it at once (SIGKILL) and return the exit code."""
        self.send(signal.SIGKILL)
        return await self.wait()


class Program:
    """A program that runs as a child, and is started again after its end; tests harm it.

    Its kinds know how it is started, set `_child` then, and say how it is stopped.
    """

    _child: Child | None = None

    @property
    def pid(self) -> int:
        """Its process id, also after its end."""
        return self._started.pid

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._child is not None and self._child.returncode is None

    async def kill(self) -> None:
        """End it as a crash would (SIGKILL)."""
        await self._started.kill()

    def pause(self) -> None:
        """Freeze it (SIGSTOP): connections stay open, nothing is answered."""
        self._started.send(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on after `pause`."""
        self._started.send(signal.SIGCONT)

    async def wait(self) -> int:
        """Wait until it ends by itself; return the exit code."""
        return await self._started.wait()

    @property
    def _started(self) -> Child:
        assert self._child is not None, "not started"
        return self._child


async def locked(path: Path, taken: str) -> int:
    """A descriptor that holds the lock of a directory, for a `Program` to keep.

    StartupError, which says `taken`, when another one holds it.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    give_up = time.monotonic() + _PREDECESSOR_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            if time.monotonic() > give_up:
                os.close(descriptor)
                raise StartupError(taken) from None
            await asyncio.sleep(0.05)


async def start_child(
    name: str,
    command: Sequence[str],
    *,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    output: IO[bytes] | None = None,
    keep: Sequence[int] = (),
    death_signal: signal.Signals = signal.SIGKILL,
) -> Child:
    """Start `command` (absolute path first); its output goes to `output`, default nowhere.

    `keep` are file descriptors that the child inherits. Raises OSError.
    """
    sink = asyncio.subprocess.DEVNULL if output is None else output
    process = await asyncio.create_subprocess_exec(
        *leashed(command, death_signal),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=sink,
        stderr=sink,
        env=None if environ is None else dict(environ),
        cwd=cwd,
        pass_fds=tuple(keep),
        start_new_session=True,
    )
    return Child(name, process)
