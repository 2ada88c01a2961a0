"""The fast path: one two-way stream for many matches; answers in, replies and updates out.

One task writes: replies first, then what the watches have, in turns. One task reads. Answers, and
actions, take the very same way as those of SubmitAnswer and TakeAction.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from google.rpc import status_pb2

from diceledger.match.v1 import match_pb2
from services.common.auth import Caller
from services.common.errors import ApiError, incident, refuse, to_status
from services.common.metrics import Metrics
from services.match.commands import PlayerCommand, checked_match_id, read_submit, read_take
from services.match.forward import Origin
from services.match.limits import TEXT_MAX, Limits
from services.match.outcomes import Applied, Outcome
from services.match.queue import Done
from services.match.streams import Outlet
from services.match.watch import Feed
from services.match.wire import play_response

# Updates of one watch before the others, and the replies, get their turn.
_TAKE: Final = 8

RequestT = TypeVar("RequestT", match_pb2.SubmitAnswerRequest, match_pb2.TakeActionRequest)


class PlayNode(Protocol):
    """What a stream needs of the process."""

    limits: Limits
    metrics: Metrics

    def submit(self, command: PlayerCommand, origin: Origin, done: Done) -> None:
        """Take a command on; `done` hears the outcome."""

    async def open_feed(
        self, match_id: str, from_sequence: int, origin: Origin, wake: Callable[[], None]
    ) -> Feed:
        """Begin to watch. Raises ApiError."""

    def close_feed(self, feed: Feed, origin: Origin) -> None:
        """End a watch."""

    def outlet(self, context: Any) -> AbstractContextManager[Outlet]:
        """The sending side of a stream, under supervision."""


class PlayStream:
    """One Play call."""

    def __init__(self, node: PlayNode, origin: Origin, outlet: Outlet) -> None:
        self._node = node
        self._origin = origin
        self._outlet = outlet
        self._replies: deque[bytes] = deque()
        self._feeds: dict[str, Feed] = {}
        # Watches that may have something to send; a dict for its order.
        self._woken: dict[str, None] = {}
        # Watches that are being opened.
        self._opening: dict[str, asyncio.Task[None]] = {}
        self._in_flight = 0
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        # The caller has said all.
        self._is_half_closed = False
        self._failure: BaseException | None = None

    async def run(self, requests: AsyncIterator[match_pb2.PlayRequest]) -> None:
        """Serve the stream until the caller has said all and has heard all replies.

        Watches that still run then are brought up to date and ended. Raises ApiError for a request
        that cannot be understood.
        """
        reader = asyncio.create_task(self._read(requests))
        try:
            while not self._is_over():
                self._news.clear()
                await self._write_replies()
                await self._write_updates()
                if not (self._replies or self._woken or self._is_over()):
                    await self._news.wait()
            if self._failure is not None:
                raise self._failure
        finally:
            tasks = [reader, *self._opening.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for match_id in tuple(self._feeds):
                self._drop(match_id)

    def _is_over(self) -> bool:
        if self._failure is not None:
            return True
        waits = self._in_flight or self._replies or self._feeds or self._opening
        return self._is_half_closed and not waits

    # -- reading ----------------------------------------------------------------------------------

    async def _read(self, requests: AsyncIterator[match_pb2.PlayRequest]) -> None:
        try:
            async for request in requests:
                await self._handle(request)
        except ApiError as error:
            self._failure = error
        except Exception as error:
            self._failure = incident(error, "reading a Play stream")
        self._is_half_closed = True
        for match_id in self._feeds:
            self._wake(match_id)
        self._news.set()

    async def _handle(self, request: match_pb2.PlayRequest) -> None:
        # Whoever does not read the replies may not send more: that bounds both.
        while self._unsaid() >= self._node.limits.in_flight_per_stream:
            self._room.clear()
            await self._room.wait()
        match request.WhichOneof("request"):
            case "submit":
                self._command("answer", read_submit, request.submit)
            case "take":
                self._command("action", read_take, request.take)
            case "watch":
                self._watch(request.watch)
            case "unwatch":
                self._unwatch(request.unwatch.match_id)
            case _:
                raise refuse("BAD_REQUEST", "A PlayRequest holds submit, take, watch or unwatch.")

    def _unsaid(self) -> int:
        """How many requests have no answer yet that was taken off our hands."""
        return self._in_flight + len(self._opening) + len(self._replies)

    def _command(
        self, name: str, read: Callable[[RequestT, Caller], PlayerCommand], request: RequestT
    ) -> None:
        try:
            command = read(request, self._origin.caller)
        except ApiError as error:
            self._node.metrics.command(name, error.reason)
            self._reply(request.request_id, error)
            return
        self._in_flight += 1
        self._node.submit(command, self._origin, partial(self._done, request.request_id))

    def _done(self, request_id: str, outcome: Outcome) -> None:
        self._in_flight -= 1
        self._reply(request_id, outcome)

    def _reply(self, request_id: str, outcome: Outcome) -> None:
        # What the caller sent is not sent back at a length that no id has.
        reply = match_pb2.PlayReply(request_id=request_id[:TEXT_MAX])
        if isinstance(outcome, Applied):
            reply.receipt.CopyFrom(outcome.receipt())
        else:
            reply.error.CopyFrom(to_status(outcome, self._origin.locale))
        self._say(match_pb2.PlayResponse(reply=reply))

    def _say(self, response: match_pb2.PlayResponse) -> None:
        self._replies.append(response.SerializeToString())
        self._news.set()

    # -- watches ----------------------------------------------------------------------------------

    def _watch(self, request: match_pb2.WatchMatchRequest) -> None:
        match_id = request.match_id
        try:
            checked_match_id(match_id)
            from_sequence = checked_sequence(request.from_sequence)
            if len(self._feeds) + len(self._opening) >= self._node.limits.watchers_per_caller:
                raise refuse("TOO_MANY_WATCHERS")
        except ApiError as error:
            self._ended(match_id, max(1, request.from_sequence), error)
            return
        # A second watch of the same match takes the place of the first.
        self._drop(match_id)
        opening = self._opening.pop(match_id, None)
        if opening is not None:
            opening.cancel()
        self._opening[match_id] = asyncio.create_task(self._open(match_id, from_sequence))

    async def _open(self, match_id: str, from_sequence: int) -> None:
        try:
            feed = await self._node.open_feed(
                match_id, from_sequence, self._origin, partial(self._wake, match_id)
            )
        except ApiError as error:
            self._opened(match_id)
            self._ended(match_id, from_sequence, error)
            return
        except Exception as error:
            self._opened(match_id)
            self._ended(match_id, from_sequence, incident(error, "opening a watch"))
            return
        self._opened(match_id)
        self._feeds[match_id] = feed
        self._wake(match_id)

    def _opened(self, match_id: str) -> None:
        if self._opening.get(match_id) is asyncio.current_task():
            del self._opening[match_id]
        self._room.set()

    def _unwatch(self, match_id: str) -> None:
        opening = self._opening.pop(match_id, None)
        if opening is not None:
            opening.cancel()
            self._ended(match_id, 1, None)
        elif match_id in self._feeds:
            next_sequence = self._feeds[match_id].next_sequence
            self._drop(match_id)
            self._ended(match_id, next_sequence, None)

    def _wake(self, match_id: str) -> None:
        self._woken[match_id] = None
        self._news.set()

    def _drop(self, match_id: str) -> None:
        feed = self._feeds.pop(match_id, None)
        self._woken.pop(match_id, None)
        if feed is not None:
            self._node.close_feed(feed, self._origin)

    def _ended(self, match_id: str, next_sequence: int, error: ApiError | None) -> None:
        status = status_pb2.Status() if error is None else to_status(error, self._origin.locale)
        ended = match_pb2.WatchEnded(
            match_id=match_id[:TEXT_MAX], next_sequence=next_sequence, status=status
        )
        self._say(match_pb2.PlayResponse(watch_ended=ended))

    # -- writing ----------------------------------------------------------------------------------

    async def _write_replies(self) -> None:
        while self._replies:
            await self._outlet.write(self._replies[0])
            self._replies.popleft()
            self._room.set()

    async def _write_updates(self) -> None:
        for match_id in tuple(self._woken):
            feed = self._feeds.get(match_id)
            if feed is None:
                self._woken.pop(match_id, None)
                continue
            updates = feed.take(_TAKE)
            for update in updates:
                await self._outlet.write(play_response(update))
            if self._feeds.get(match_id) is not feed:
                # Given up while it was being written.
                continue
            if feed.ended or (self._is_half_closed and not updates):
                self._drop(match_id)
                self._ended(match_id, feed.next_sequence, feed.error)
            elif not updates:
                self._woken.pop(match_id, None)
            if self._replies:
                await self._write_replies()


def checked_sequence(sequence: int) -> int:
    """Refuse a negative sequence."""
    if sequence < 0:
        raise refuse("BAD_SEQUENCE", field="from_sequence")
    return sequence
