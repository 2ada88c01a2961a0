"""Time limits: when the open prompts of a match are answered by their defaults.

The deadline stands in the header of the match's newest commit, so whoever takes the partition over
knows it. It is a wall-clock time; once armed, a timer runs on the process's own monotonic clock.
"""

import asyncio
import time
from collections.abc import Callable

from services.match.limits import ANSWER_TIMEOUT_S_MAX


class Timers:
    """The deadlines of one partition's matches. Nothing is due before `start`."""

    def __init__(self, due: Callable[[str, int], None]) -> None:
        """`due` is called in the loop with the match whose time is over, and the deadline."""
        self._due = due
        self._deadlines: dict[str, int] = {}
        self._armed: dict[str, asyncio.TimerHandle] = {}
        self._running = False
        # Loop time before which nothing is due.
        self._grace_ends = 0.0

    def note(self, match_id: str, deadline_ms: int) -> None:
        """The newest commit of the match has this deadline; 0: none."""
        if deadline_ms:
            self._deadlines[match_id] = deadline_ms
            if self._running:
                self._arm(match_id, 0.0)
        elif match_id in self._deadlines:
            del self._deadlines[match_id]
            self._disarm(match_id)

    def start(self, grace_s: float) -> None:
        """This process serves the partition now; nothing is due within the next `grace_s`."""
        self._running = True
        self.postpone(grace_s)
        for match_id in self._deadlines:
            self._arm(match_id, 0.0)

    def postpone(self, grace_s: float) -> None:
        """Answers could not be taken: nothing is due within the next `grace_s`."""
        self._grace_ends = asyncio.get_running_loop().time() + grace_s

    def stop(self) -> None:
        """The partition is not served any more."""
        self._running = False
        for match_id in tuple(self._armed):
            self._disarm(match_id)

    def again(self, match_id: str, delay_s: float) -> None:
        """What was due could not be done: try again later."""
        if self._running and match_id in self._deadlines:
            self._arm(match_id, delay_s)

    def _arm(self, match_id: str, delay_low_s: float) -> None:
        self._disarm(match_id)
        left_s = self._deadlines[match_id] / 1000 - time.time()
        delay_s = max(delay_low_s, min(left_s, ANSWER_TIMEOUT_S_MAX))
        loop = asyncio.get_running_loop()
        self._armed[match_id] = loop.call_later(delay_s, self._ring, match_id)

    def _disarm(self, match_id: str) -> None:
        handle = self._armed.pop(match_id, None)
        if handle is not None:
            handle.cancel()

    def _ring(self, match_id: str) -> None:
        self._armed.pop(match_id, None)
        grace_s = self._grace_ends - asyncio.get_running_loop().time()
        if grace_s > 0:
            self._arm(match_id, grace_s)
        else:
            self._due(match_id, self._deadlines[match_id])
