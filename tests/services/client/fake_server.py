"""A match service of one scripted match, with the failures that a client must live with.

Several servers may share one `FakeMatch`, as processes share a log.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, cast

import grpc
import grpc.aio

from diceledger.match.v1 import match_pb2, match_pb2_grpc
from engine import (
    ActionTaken,
    Answer,
    Answered,
    AnyGame,
    Fact,
    MatchCreated,
    MatchEnded,
    Option,
    Prompt,
    Prompted,
    PromptId,
    PromptsWithdrawn,
    Seat,
)
from services.common.commits import Cause, ParsedCommit, Ruleset, make_commit
from services.common.errors import ApiError, abort, refuse, to_status
from services.common.prompts_wire import answer_from_wire, prompt_to_wire
from services.common.redaction import redact_commit
from tests.engine.high_roll import HIGH_ROLL

MATCH = "a" * 26
PLAYER = Seat(1)
ACTION = "use:1"


def question(number: int) -> Prompt:
    """Question `number` of the scripted match."""
    return Prompt(
        id=PromptId(f"p{number}"),
        seat=PLAYER,
        kind="swap",
        low=1,
        high=1,
        options=(Option("yes"), Option("no")),
        default=Answer(picks=("no",)),
    )


@dataclass
class FakeMatch:
    """The log of one match: a question, an answer, the next question … and the end. An action
    withdraws the question and puts the next one.
    """

    questions: int = 5
    # How often the player may still act.
    offers: int = 0
    commits: list[ParsedCommit] = field(default_factory=list)
    # Request id -> sequence: a repeated request gets the first reply.
    seen: dict[str, int] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    asked: int = 0

    def open(self) -> None:
        """Write the first commit, with the first question."""
        created = MatchCreated(
            match_id=MATCH,
            game="test_high_roll",
            revision=1,
            expansions=(),
            options=(),
            seats=1,
            host="host",
            commitment=b"c" * 32,
            key_id="k",
            answer_timeout_s=0,
        )
        self.append([created, self._next()], Cause(request_id="create", actor="host"))

    def _next(self) -> Fact:
        if self.asked == self.questions:
            return MatchEnded(winners=(PLAYER,), reason="done")
        self.asked += 1
        return Prompted(seat=PLAYER, prompt=question(self.asked))

    def answer(self, request: match_pb2.SubmitAnswerRequest) -> match_pb2.Receipt:
        """Take an answer over; ApiError PROMPT_CLOSED when it is not for the open question."""
        if request.request_id not in self.seen:
            if request.prompt_id != f"p{self.asked}" or self.is_finished:
                raise refuse("PROMPT_CLOSED")
            answered = Answered(
                seat=PLAYER,
                prompt_id=PromptId(request.prompt_id),
                answer=answer_from_wire(request.answer),
            )
            cause = Cause(request_id=request.request_id, actor="player", seat=1)
            self.append([answered, self._next()], cause)
            self.seen[request.request_id] = len(self.commits)
        return match_pb2.Receipt(match_id=MATCH, sequence=self.seen[request.request_id])

    def take(self, request: match_pb2.TakeActionRequest) -> match_pb2.Receipt:
        """Take an action; ApiError ACTION_NOT_OFFERED when it is not offered (any more)."""
        if request.request_id not in self.seen:
            if request.action != ACTION or not self.offers or self.is_finished:
                raise refuse("ACTION_NOT_OFFERED")
            self.offers -= 1
            self.questions += 1
            gone = PromptsWithdrawn(prompt_ids=(PromptId(f"p{self.asked}"),))
            cause = Cause(request_id=request.request_id, actor="player", seat=1, command="action")
            self.append([ActionTaken(PLAYER, request.action), gone, self._next()], cause)
            self.seen[request.request_id] = len(self.commits)
        return match_pb2.Receipt(match_id=MATCH, sequence=self.seen[request.request_id])

    @property
    def is_finished(self) -> bool:
        return bool(self.commits) and self.commits[-1].final

    def append(self, facts: list[Fact], cause: Cause) -> None:
        """Write one commit."""
        last = self.commits[-1] if self.commits else None
        commit = make_commit(
            log_id="log",
            partition=0,
            writer="fake",
            epoch=1,
            match_id=MATCH,
            sequence=len(self.commits) + 1,
            first_fact=0 if last is None else last.first_fact + last.fact_count,
            facts=facts,
            cause=cause,
            previous_hash=b"" if last is None else last.hash,
            ruleset=Ruleset(game="test_high_roll"),
            final=isinstance(facts[-1], MatchEnded),
        )
        self.commits.append(commit)
        self.changed.set()
        self.changed = asyncio.Event()

    def update(self, sequence: int) -> match_pb2.Update:
        """Commit `sequence` as the player sees it."""
        is_newest = sequence == len(self.commits)
        is_open = is_newest and not self.is_finished
        prompts = (
            [prompt_to_wire(cast("AnyGame", HIGH_ROLL), question(self.asked))] if is_open else []
        )
        return match_pb2.Update(
            match_id=MATCH,
            sequence=sequence,
            commit=redact_commit(self.commits[sequence - 1], PLAYER),
            prompts=prompts,
            live=is_newest,
            actions=[match_pb2.Action(action=ACTION, subject="use:wand", label="use the wand")]
            if is_open and self.offers
            else [],
        )


class _OneAtATime:
    """A stream is written to by one task at a time only, and no write may be cancelled."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._lock = asyncio.Lock()

    async def write(self, response: match_pb2.PlayResponse) -> None:
        await asyncio.shield(asyncio.create_task(self._write(response)))

    async def _write(self, response: match_pb2.PlayResponse) -> None:
        async with self._lock:
            await self._context.write(response)


class FakeServer(match_pb2_grpc.MatchServiceServicer):
    """One process that serves the match; its attributes script its failures."""

    def __init__(self, match: FakeMatch) -> None:
        self.match = match
        self.address = ""
        # Streams end with UNAVAILABLE after so many updates, as often as said.
        self.cut_after = 0
        self.cuts = 0
        # Answers that are taken over, but whose replies are lost with the stream.
        self.lost_replies = 0
        # Answers that are refused with these first.
        self.refusals: list[ApiError] = []
        # Answers without any reply at all.
        self.silent = False
        # Change one byte of the commit with this sequence.
        self.forged = 0
        self.submits: list[str] = []
        self.calls = 0
        self._server: grpc.aio.Server | None = None

    async def start(self, port: int = 0) -> str:
        """Listen on a port of the loopback interface and return the address."""
        self._server = grpc.aio.server()
        match_pb2_grpc.add_MatchServiceServicer_to_server(self, self._server)
        number = self._server.add_insecure_port(f"127.0.0.1:{port}")
        await self._server.start()
        self.address = f"127.0.0.1:{number}"
        return self.address

    async def stop(self) -> None:
        """Stop at once."""
        if self._server is not None:
            await self._server.stop(0)

    def _submit(
        self, request: match_pb2.SubmitAnswerRequest | match_pb2.TakeActionRequest
    ) -> match_pb2.Receipt:
        self.submits.append(request.request_id)
        if self.refusals:
            raise self.refusals.pop(0)
        if isinstance(request, match_pb2.TakeActionRequest):
            return self.match.take(request)
        return self.match.answer(request)

    def _seen(self, sequence: int) -> match_pb2.Update:
        update = self.match.update(sequence)
        if sequence == self.forged:
            forged = hashlib.sha256(b"forged").digest()
            update.commit.facts[0].salt = forged[:16]
        return update

    async def CreateMatch(self, request: Any, context: Any) -> Any:  # noqa: N802 - gRPC's name
        self.calls += 1
        if self.refusals:
            await abort(context, self.refusals.pop(0))
        receipt = match_pb2.Receipt(match_id=MATCH, sequence=1, position="0:0")
        return match_pb2.CreateMatchResponse(match_id=MATCH, receipt=receipt)

    async def SubmitAnswer(self, request: Any, context: Any) -> Any:  # noqa: N802
        return match_pb2.SubmitAnswerResponse(receipt=await self._replied(request, context))

    async def TakeAction(self, request: Any, context: Any) -> Any:  # noqa: N802
        return match_pb2.TakeActionResponse(receipt=await self._replied(request, context))

    async def _replied(self, request: Any, context: Any) -> match_pb2.Receipt:
        try:
            receipt = self._submit(request)
        except ApiError as error:
            await abort(context, error)
        if self.lost_replies:
            self.lost_replies -= 1
            await abort(context, refuse("SHUTTING_DOWN"))
        return receipt

    async def WatchMatch(self, request: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802
        sent = 0
        async for update in self._updates(max(1, request.from_sequence)):
            yield match_pb2.WatchMatchResponse(update=update)
            sent += 1
            if self.cuts and sent == self.cut_after:
                self.cuts -= 1
                await abort(context, refuse("SHUTTING_DOWN"))

    async def _updates(self, sequence: int) -> AsyncIterator[match_pb2.Update]:
        while True:
            changed = self.match.changed
            while sequence <= len(self.match.commits):
                update = self._seen(sequence)
                sequence += 1
                yield update
            if self.match.is_finished:
                return
            await changed.wait()

    async def Play(self, request_iterator: Any, context: Any) -> None:  # type: ignore[override]  # noqa: N802 - writes by itself
        context = _OneAtATime(context)
        tasks: set[asyncio.Task[None]] = set()
        watches: dict[str, asyncio.Task[None]] = {}
        self.calls += 1
        try:
            async for request in request_iterator:
                match request.WhichOneof("request"):
                    case "submit" if not self.silent:
                        if not await self._play_submit(request.submit, context):
                            return
                    case "take" if not self.silent:
                        if not await self._play_submit(request.take, context):
                            return
                    case "watch":
                        task = asyncio.create_task(self._play_watch(request.watch, context))
                        watches[request.watch.match_id] = task
                        tasks.add(task)
                    case "unwatch":
                        watches.pop(request.unwatch.match_id).cancel()
                        await self._play_ended(request.unwatch.match_id, context)
        finally:
            for task in tasks:
                task.cancel()

    async def _play_submit(
        self, submit: match_pb2.SubmitAnswerRequest | match_pb2.TakeActionRequest, context: Any
    ) -> bool:
        reply = match_pb2.PlayReply(request_id=submit.request_id)
        try:
            reply.receipt.CopyFrom(self._submit(submit))
        except ApiError as error:
            reply.error.CopyFrom(to_status(error))
        if self.lost_replies:
            self.lost_replies -= 1
            return False
        await context.write(match_pb2.PlayResponse(reply=reply))
        return True

    async def _play_watch(self, watch: match_pb2.WatchMatchRequest, context: Any) -> None:
        sent = 0
        async for update in self._updates(max(1, watch.from_sequence)):
            await context.write(match_pb2.PlayResponse(update=update))
            sent += 1
            if self.cuts and sent == self.cut_after:
                self.cuts -= 1
                await self._play_ended(watch.match_id, context, refuse("SLOW_WATCHER"))
                return
        await self._play_ended(watch.match_id, context)

    async def _play_ended(self, match_id: str, context: Any, error: ApiError | None = None) -> None:
        ended = match_pb2.WatchEnded(match_id=match_id)
        if error is not None:
            ended.status.CopyFrom(to_status(error))
        await context.write(match_pb2.PlayResponse(watch_ended=ended))


def fake_server(match: FakeMatch) -> FakeServer:
    """A server that is not started yet."""
    return FakeServer(match)  # type: ignore[abstract]  # all other calls are UNIMPLEMENTED
