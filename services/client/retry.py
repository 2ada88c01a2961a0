"""When a call is tried again, and how long to wait before: jittered, bounded, never for ever."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from grpc import StatusCode

from services.common.errors import ApiError

T = TypeVar("T")

_LOST = frozenset({StatusCode.UNAVAILABLE, StatusCode.DEADLINE_EXCEEDED})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Bounds of patience, all in seconds.

    `total_s` after a call of the program, or its last success, no further attempt is made;
    `attempt_s` is for one attempt, after which another address is tried; waits between attempts are
    drawn between zero and a bound that doubles from `first_wait_s` to `longest_wait_s`.
    """

    total_s: float = 60.0
    attempt_s: float = 5.0
    first_wait_s: float = 0.05
    longest_wait_s: float = 1.0
    # Hears of every failure that is followed by another attempt: for logs and figures.
    on_failure: Callable[[ApiError], None] | None = None

    def tell(self, error: ApiError) -> None:
        """Another attempt will follow `error`."""
        if self.on_failure is not None:
            self.on_failure(error)


def is_retriable(error: ApiError) -> bool:
    """Whether the same request may be sent again with the same request id.

    Either nothing happened, or what happened is answered again. Beside the reasons that say so,
    every loss of the connection counts, whoever reports it.
    """
    return error.retryable or error.code in _LOST


@dataclass(slots=True)
class Patience:
    """One run of attempts under a policy: counts them and says how long to wait."""

    policy: RetryPolicy
    _random: random.Random = field(default_factory=random.Random)
    _since: float | None = field(default_factory=time.monotonic)
    _bound_s: float = 0.0

    def restart(self) -> None:
        """Something went well: the patience counts anew, from the next failure on."""
        self._since = None
        self._bound_s = 0.0

    @property
    def left_s(self) -> float:
        """Seconds until the patience is over."""
        spent = 0.0 if self._since is None else time.monotonic() - self._since
        return self.policy.total_s - spent

    async def pause(self, error: ApiError) -> None:
        """Wait before the next attempt; raise `error` when the patience is over."""
        if self._since is None:
            self._since = time.monotonic()
        if self.left_s <= 0:
            raise error
        self.policy.tell(error)
        doubled = max(self.policy.first_wait_s, self._bound_s * 2)
        self._bound_s = min(self.policy.longest_wait_s, doubled)
        # Jitter only spreads the load; nothing secret depends on it.
        await asyncio.sleep(min(self._random.uniform(0, self._bound_s), self.left_s))


async def retrying(
    policy: RetryPolicy,
    attempt: Callable[[float], Awaitable[T]],
    failed: Callable[[ApiError], None],
) -> T:
    """Call `attempt(seconds)` until it succeeds, is refused for good, or the patience is over.

    `failed` hears of every failure that is followed by another attempt. Raises the last ApiError.
    """
    patience = Patience(policy)
    while True:
        try:
            return await attempt(policy.attempt_s)
        except ApiError as error:
            if not is_retriable(error):
                raise
            failed(error)
            await patience.pause(error)
