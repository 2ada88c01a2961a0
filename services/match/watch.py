"""Watches: the commits of one match for one viewer, from any sequence, each once and in order.

A watch holds no queue: it is a place in the match's own list of commits. What a slow watcher costs
is therefore bounded by nature; it is cut off all the same, because it would show its user an old
game as if it were current.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

import grpc.aio

from diceledger.match.v1 import match_pb2
from services.common.errors import REASONS, ApiError, Locale, parse_error, refuse
from services.common.prompts_wire import actions_to_wire, prompt_to_wire
from services.match.live_match import LiveMatch
from services.match.partition import PartitionOwner
from services.match.wire import LIVE, encode_own, unwrap_watch_response

_logger = logging.getLogger(__name__)

_UNREAD_MAX: Final = 32
# What the transport says when the other process is not there, or is just ending.
_UNREACHABLE: Final = frozenset(
    {"CONNECTION_LOST", "CANCELLED", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "SHUTTING_DOWN"}
)


class Feed(Protocol):
    """What a stream reads from: updates as encoded `Update` messages."""

    match_id: str
    # Where the watch may be resumed.
    next_sequence: int
    # Nothing follows, once `take` gives nothing. With an error, or because the match is over.
    ended: bool
    error: ApiError | None

    def take(self, limit: int) -> list[bytes]:
        """The next updates, as many as there are now, at most `limit`."""

    def close(self) -> None:
        """The watcher is gone."""


class LocalFeed:
    """A watch of a match that this process serves."""

    def __init__(
        self,
        owner: PartitionOwner,
        match: LiveMatch,
        *,
        subject: str,
        locale: Locale,
        from_sequence: int,
        lag_max: int,
        wake: Callable[[], None],
    ) -> None:
        """`wake` is called whenever `take` may have something. ApiError when out of range."""
        self.match_id = match.match_id
        self.next_sequence = max(1, from_sequence)
        self.ended = False
        self.error: ApiError | None = None
        if self.next_sequence > match.sequence + 1:
            raise refuse(
                "SEQUENCE_OUT_OF_RANGE",
                field="from_sequence",
                metadata={"last_sequence": str(match.sequence)},
            )
        self._owner = owner
        self._match = match
        self._subject = subject
        self._locale = locale
        self._lag_max = lag_max
        self._live = self.next_sequence > match.sequence
        self.wake = wake
        match.listeners.add(self)

    def fail(self, error: Exception) -> None:
        """The match is not served here any more."""
        self.error = error if isinstance(error, ApiError) else refuse("NO_OWNER")
        self.ended = True
        self.wake()

    def take(self, limit: int) -> list[bytes]:
        """See Feed."""
        match = self._match
        if self.ended:
            return []
        if self._live and match.sequence - self.next_sequence >= self._lag_max:
            self.fail(too_slow(self.next_sequence))
            return []
        updates: list[bytes] = []
        while self.next_sequence <= match.sequence and len(updates) < limit:
            updates.append(self._update(self.next_sequence))
            self.next_sequence += 1
        if match.finished and self.next_sequence > match.sequence:
            self.ended = True
        return updates

    def _update(self, sequence: int) -> bytes:
        update = self._match.update(sequence, self._subject)
        is_newest = sequence == self._match.sequence
        self._live = self._live or is_newest
        if self._live:
            update += LIVE
        if is_newest and not self._match.finished:
            update += self._own()
        return update

    def _own(self) -> bytes:
        match = self._match
        seat = match.seats.get(self._subject, 0)
        if not seat or not match.started_at:
            return b""
        try:
            state = self._owner.session_of(match).state
        except ApiError:
            # A frozen match can still be looked at.
            return b""
        deadline_ms = match.commits[-1].deadline_ms
        prompts = [
            prompt_to_wire(state, prompt, self._locale, deadline_ms=deadline_ms)
            for prompt in match.waiting
            if prompt.seat == seat
        ]
        return encode_own(prompts, actions_to_wire(state, match.actions_of(seat), self._locale))

    def close(self) -> None:
        """See Feed."""
        self._match.listeners.discard(self)


class RemoteFeed:
    """A watch of a match that another process serves, passed on as it comes."""

    def __init__(
        self,
        match_id: str,
        from_sequence: int,
        call: "grpc.aio.UnaryStreamCall[match_pb2.WatchMatchRequest, bytes]",
        wake: Callable[[], None],
    ) -> None:
        """`call` is the other process's WatchMatch, its responses left as bytes."""
        self.match_id = match_id
        self.next_sequence = max(1, from_sequence)
        self.ended = False
        self.error: ApiError | None = None
        self._call = call
        self._wake = wake
        self._unread: deque[bytes] = deque()
        self._over: ApiError | bool = False
        self._room = asyncio.Event()
        self._pump = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            async for response in self._call:
                self._unread.append(unwrap_watch_response(response))
                self._wake()
                # Beyond this the other process feels the back-pressure, and cuts the watch off.
                while len(self._unread) >= _UNREAD_MAX:
                    self._room.clear()
                    await self._room.wait()
            self._over = True
        except grpc.aio.AioRpcError as error:
            self._over = passed_on(error)
        except Exception as error:
            # Nothing that a caller could do anything about but watch again.
            _logger.warning("a watch that was passed on failed: %r", error)
            self._over = refuse("NO_OWNER")
        self._wake()

    def take(self, limit: int) -> list[bytes]:
        """See Feed."""
        updates: list[bytes] = []
        while self._unread and len(updates) < limit:
            updates.append(self._unread.popleft())
        self.next_sequence += len(updates)
        self._room.set()
        if self._over and not self._unread:
            self.ended = True
            self.error = self._over if isinstance(self._over, ApiError) else None
        return updates

    def close(self) -> None:
        """See Feed."""
        self._pump.cancel()
        self._call.cancel()


def too_slow(next_sequence: int | None = None) -> ApiError:
    """The refusal that cuts a slow reader off; for a single watch it says where to resume."""
    metadata = {} if next_sequence is None else {"next_sequence": str(next_sequence)}
    return refuse("SLOW_WATCHER", metadata=metadata)


def passed_on(error: grpc.aio.AioRpcError) -> ApiError:
    """The error of another process of ours, for our own caller; it speaks the caller's language."""
    known = parse_error(error)
    if known.reason not in REASONS or known.reason in _UNREACHABLE:
        return refuse("NO_OWNER")
    known.message_zh = known.message
    return known
