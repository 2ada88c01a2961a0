"""Writing to a stream whose reader may be slow, or gone without a word."""

import asyncio
from typing import Any, Protocol


class Writable(Protocol):
    """The part of a gRPC call that is written to."""

    async def write(self, message: Any) -> None:
        """Send one message; waits while the reader's window is full."""


class Outlet:
    """The sending side of one stream; `cut` ends a write that does not end by itself.

    Belongs to the task that made it.
    """

    def __init__(self, context: Writable) -> None:
        """`context` is the call."""
        self._context = context
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        self._since = 0.0
        self.is_cut = False

    async def write(self, message: bytes) -> None:
        """Send one message."""
        self._since = self._loop.time()
        await self._context.write(message)
        self._since = 0.0

    def check(self, stall_s: float) -> None:
        """Cut the stream off when a write has taken longer than `stall_s`."""
        if self._since and self._loop.time() - self._since > stall_s and not self.is_cut:
            self.is_cut = True
            if self._task is not None:
                self._task.cancel()

    def was_cut(self) -> bool:
        """To be asked on CancelledError: was it `cut`? Then the task is as if never cancelled."""
        if self.is_cut and self._task is not None:
            self._task.uncancel()
        return self.is_cut
