"""The fast path: one two-way stream that carries the answers and updates of many matches.

    async with client.play() as stream:
        receipt = await stream.submit(match_id, prompt_id, answer)
        async for update in stream.watch(match_id):
            ...

When the stream is lost it is opened again, to the next address; answers and actions without a reply
are sent again with the same request ids, and every watch goes on where it was.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self, TypeAlias

import grpc.aio

from diceledger.match.v1 import match_pb2, match_pb2_grpc
from engine import Answer
from services.client.calls import Caller
from services.client.pledges import Pledges
from services.client.receipts import Receipt, receipt_from_wire
from services.client.requests import new_request_id
from services.client.retry import Patience, is_retriable
from services.client.updates import MatchUpdate, UpdateReader
from services.common.errors import ApiError, from_status, parse_error, refuse
from services.common.prompts_wire import answer_to_wire

# A watcher that falls this far behind is taken off the stream until it has caught up, so that one
# slow reader neither grows without bound nor holds up the replies of the others.
_INBOX_MAX = 256
_INBOX_LOW = 32
_WATCHDOG_S = 0.5
# What the library itself makes of a write that crosses the end of the stream; the server's own
# words are lost then, and come again with the next attempt.
_WROTE_TOO_LATE = "Internal error from Core"


_Call: TypeAlias = "grpc.aio.StreamStreamCall[match_pb2.PlayRequest, match_pb2.PlayResponse]"


@dataclass(slots=True, eq=False)
class _Pending:
    """A submitted answer, or an action, that has no final reply yet."""

    request: match_pb2.PlayRequest
    reply: asyncio.Future[Receipt]
    patience: Patience
    sent_at: float = 0.0


@dataclass(slots=True, eq=False)
class _Watch:
    """One watched match: what has come in and not been read yet, and where to go on."""

    match_id: str
    next_sequence: int
    inbox: deque[match_pb2.Update | ApiError] = field(default_factory=deque)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    # The server sends this watch; `is_parked`: we asked it to stop because the inbox is full.
    is_open: bool = False
    is_parked: bool = False
    patience: Patience | None = None

    def put(self, item: match_pb2.Update | ApiError) -> None:
        self.inbox.append(item)
        self.arrived.set()


class PlayStream:
    """One `Play` stream of one caller; an async context manager."""

    def __init__(
        self, caller: Caller[match_pb2_grpc.MatchServiceAsyncStub], pledges: Pledges
    ) -> None:
        self._caller = caller
        self._pledges = pledges
        self._pending: dict[str, _Pending] = {}
        self._watches: dict[str, _Watch] = {}
        self._outbox: asyncio.Queue[match_pb2.PlayRequest] | None = None
        self._chores: set[asyncio.Task[None]] = set()
        self._runner: asyncio.Task[None] | None = None
        self._failure: ApiError | None = None
        # How often the stream was opened: more than one means that it was lost in between.
        self.connections = 0

    async def __aenter__(self) -> Self:
        self._runner = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        tasks = [*self._chores]
        if self._runner is not None:
            tasks.append(self._runner)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._give_up(refuse("CONNECTION_LOST", "The client was closed."))

    async def submit(
        self, match_id: str, prompt_id: str, answer: Answer, *, request_id: str | None = None
    ) -> Receipt:
        """Answer a prompt; return once the answer is in the log.

        Raises ApiError: the refusal, or the last failure when the policy's time is over (then the
        outcome is unknown, and the same request id may be used again).
        """
        submit = match_pb2.SubmitAnswerRequest(
            request_id=request_id or new_request_id(),
            match_id=match_id,
            prompt_id=prompt_id,
            answer=answer_to_wire(answer),
        )
        return await self._command(submit.request_id, match_pb2.PlayRequest(submit=submit))

    async def take_action(
        self, match_id: str, action: str, *, request_id: str | None = None
    ) -> Receipt:
        """Do what the seat may do at any time; return once it is in the log.

        Raises ApiError, as `submit`.
        """
        take = match_pb2.TakeActionRequest(
            request_id=request_id or new_request_id(), match_id=match_id, action=action
        )
        return await self._command(take.request_id, match_pb2.PlayRequest(take=take))

    async def _command(self, request_id: str, request: match_pb2.PlayRequest) -> Receipt:
        if self._failure is not None:
            raise self._failure
        assert request_id not in self._pending, "this request is under way already"
        reply: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        pending = _Pending(request, reply, Patience(self._caller.policy))
        self._pending[request_id] = pending
        self._send_command(pending)
        try:
            return await reply
        finally:
            self._pending.pop(request_id, None)

    async def watch(
        self, match_id: str, from_sequence: int = 1, *, fold: bool = False
    ) -> AsyncIterator[MatchUpdate]:
        """The match's commits from `from_sequence` to its end; one watch per match and stream.

        As `Client.watch`. Raises ApiError and ChainBroken.
        """
        assert match_id not in self._watches, "this stream watches the match already"
        reader = UpdateReader(match_id, from_sequence, fold=fold)
        observer = self._pledges.observe(match_id, from_sequence)
        watch = _Watch(match_id, reader.next_sequence)
        self._watches[match_id] = watch
        if self._failure is not None:
            watch.put(self._failure)
        self._open_watch(watch)
        try:
            while not reader.is_finished:
                item = await self._next(watch)
                if isinstance(item, ApiError):
                    raise item
                update = reader.read(item)
                if update is not None:
                    await observer.saw(update)
                    yield update
        finally:
            del self._watches[match_id]
            if watch.is_open and not reader.is_finished:
                self._send_unwatch(match_id)

    async def _next(self, watch: _Watch) -> match_pb2.Update | ApiError:
        while not watch.inbox:
            watch.arrived.clear()
            await watch.arrived.wait()
        item = watch.inbox.popleft()
        if watch.is_parked and not watch.is_open and len(watch.inbox) <= _INBOX_LOW:
            self._open_watch(watch)
        return item

    # -- sending ---------------------------------------------------------------------------------

    def _send(self, request: match_pb2.PlayRequest) -> bool:
        if self._outbox is None:
            return False
        self._outbox.put_nowait(request)
        return True

    def _send_command(self, pending: _Pending) -> None:
        # Without a connection it waits in `_pending`, and goes out with the next one.
        if self._send(pending.request):
            pending.sent_at = time.monotonic()

    def _send_unwatch(self, match_id: str) -> None:
        self._send(match_pb2.PlayRequest(unwatch=match_pb2.UnwatchMatch(match_id=match_id)))

    def _open_watch(self, watch: _Watch) -> None:
        wanted = match_pb2.WatchMatchRequest(
            match_id=watch.match_id, from_sequence=watch.next_sequence
        )
        watch.is_parked = False
        watch.is_open = self._send(match_pb2.PlayRequest(watch=wanted))

    # -- the connection --------------------------------------------------------------------------

    async def _run(self) -> None:
        patience = Patience(self._caller.policy)
        while True:
            address = self._caller.channels.address
            try:
                await self._converse(address, patience)
                failure = refuse("CONNECTION_LOST", "The stream ended early.")
            except ApiError as error:
                failure = error
            except OSError as error:
                failure = refuse("TOKEN_MISSING", f"The token cannot be read: {error}")
            if not is_retriable(failure):
                self._give_up(failure)
                return
            self._caller.channels.avoid(address)
            self._expire()
            try:
                await patience.pause(failure)
            except ApiError:
                self._give_up(failure)
                return

    async def _converse(self, address: str, patience: Patience) -> None:
        """Open the stream, send what is due, handle what comes, until the stream is lost."""
        metadata = await self._caller.credentials.metadata()
        outbox: asyncio.Queue[match_pb2.PlayRequest] = asyncio.Queue()
        self._outbox = outbox
        self.connections += 1
        for watch in self._watches.values():
            watch.is_open = False
            if len(watch.inbox) <= _INBOX_LOW:
                self._open_watch(watch)
            else:
                watch.is_parked = True
        for pending in self._pending.values():
            self._send_command(pending)
        call = self._caller.stub(address).Play(metadata=metadata)
        silence = asyncio.Event()
        helpers = [
            asyncio.create_task(_write_all(call, outbox)),
            asyncio.create_task(self._guard(call, silence)),
        ]
        try:
            async for response in call:
                patience.restart()
                self._handle(response)
        except grpc.aio.AioRpcError as error:
            if error.details() == _WROTE_TOO_LATE:
                raise refuse("CONNECTION_LOST", "The stream ended while writing.") from error
            raise parse_error(error) from error
        except asyncio.CancelledError:
            # Cancelled by our own watchdog, or from outside.
            if silence.is_set():
                raise refuse("DEADLINE_EXCEEDED", "The server does not reply.") from None
            raise
        finally:
            self._outbox = None
            call.cancel()
            for helper in helpers:
                helper.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)

    async def _guard(
        self,
        call: _Call,
        silence: asyncio.Event,
    ) -> None:
        """Cut the stream off when a command has waited for its reply too long."""
        while True:
            await asyncio.sleep(_WATCHDOG_S)
            self._expire()
            oldest = time.monotonic() - self._caller.policy.attempt_s
            if any(0 < pending.sent_at < oldest for pending in self._pending.values()):
                silence.set()
                call.cancel()
                return

    # -- receiving -------------------------------------------------------------------------------

    def _handle(self, response: match_pb2.PlayResponse) -> None:
        match response.WhichOneof("response"):
            case "reply":
                self._on_reply(response.reply)
            case "update":
                self._on_update(response.update)
            case "watch_ended":
                self._on_watch_ended(response.watch_ended)
            case _:
                # Newer servers may say more; what is not understood is not for this client.
                pass

    def _on_reply(self, reply: match_pb2.PlayReply) -> None:
        pending = self._pending.get(reply.request_id)
        if pending is None or pending.reply.done():
            return
        if reply.WhichOneof("outcome") == "receipt":
            pending.reply.set_result(receipt_from_wire(reply.receipt))
            return
        error = from_status(reply.error)
        if not is_retriable(error):
            pending.reply.set_exception(error)
            return
        pending.sent_at = 0.0
        self._chore(self._resend(pending, error))

    async def _resend(self, pending: _Pending, error: ApiError) -> None:
        try:
            await pending.patience.pause(error)
        except ApiError as last:
            if not pending.reply.done():
                pending.reply.set_exception(last)
            return
        if not pending.reply.done() and not pending.sent_at:
            self._send_command(pending)

    def _on_update(self, update: match_pb2.Update) -> None:
        watch = self._watches.get(update.match_id)
        if watch is None or watch.is_parked or update.sequence < watch.next_sequence:
            return
        watch.next_sequence = update.sequence + 1
        watch.patience = None
        watch.put(update)
        if len(watch.inbox) >= _INBOX_MAX:
            watch.is_parked = True
            self._send_unwatch(update.match_id)

    def _on_watch_ended(self, ended: match_pb2.WatchEnded) -> None:
        watch = self._watches.get(ended.match_id)
        if watch is None:
            return
        watch.is_open = False
        if watch.is_parked:
            if len(watch.inbox) <= _INBOX_LOW:
                self._open_watch(watch)
            return
        # Status 0 without the final commit belongs to a watch that we gave up and opened again.
        error = from_status(ended.status) if ended.status.code else refuse("CONNECTION_LOST")
        if is_retriable(error):
            self._chore(self._rewatch(watch, error))
        else:
            watch.put(error)

    async def _rewatch(self, watch: _Watch, error: ApiError) -> None:
        if watch.patience is None:
            watch.patience = Patience(self._caller.policy)
        try:
            await watch.patience.pause(error)
        except ApiError as last:
            watch.put(last)
            return
        if self._watches.get(watch.match_id) is watch and not watch.is_open:
            self._open_watch(watch)

    # -- ends ------------------------------------------------------------------------------------

    def _chore(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)

    def _expire(self) -> None:
        late = refuse("DEADLINE_EXCEEDED", "No reply; whether the command counts is not known.")
        for pending in self._pending.values():
            if pending.patience.left_s <= 0 and not pending.reply.done():
                pending.reply.set_exception(late)

    def _give_up(self, failure: ApiError) -> None:
        self._failure = failure
        for pending in self._pending.values():
            if not pending.reply.done():
                pending.reply.set_exception(failure)
        for watch in self._watches.values():
            watch.put(failure)


async def _write_all(call: _Call, outbox: asyncio.Queue[match_pb2.PlayRequest]) -> None:
    """Write what is put into the outbox, in order; that the stream is lost is the reader's news."""
    try:
        while True:
            await call.write(await outbox.get())
    except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
        return
