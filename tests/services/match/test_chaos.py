"""Many faults at once, drawn from a seed; then an independent checker compares history and log."""

import asyncio
import random
import time
from typing import Any

import grpc.aio
import pytest

from diceledger.match.v1 import match_pb2
from services.common.errors import ApiError, parse_error
from services.common.log.sqlite import SqliteLog
from tests.services.match.serving import (
    GAME,
    LIMITS,
    Begun,
    FaultyLog,
    Process,
    Shares,
    answering,
    begin,
    new_id,
    process,
    records,
)
from tests.support.history import RawRecord, Sent, check_history

_FAULTS = ("lose", "unknown", "late", "twice", "refuse")


class RandomFaults(FaultyLog):
    """Appends go wrong as often as `share` says, while `on`."""

    def __init__(self, inner: Any, dice: random.Random, share: float) -> None:
        super().__init__(inner, late_s=0.05)
        self.dice = dice
        self.share = share
        self.on = False
        self.injected = 0

    async def append(self, partition: int, key: bytes, value: bytes) -> int:
        if self.on and self.dice.random() < self.share:
            self.injected += 1
            (self.faults if key else self.claim_faults).append(self.dice.choice(_FAULTS))
        return await super().append(partition, key, value)


class Historian:
    """Sends commands, and writes down what was sent and what was said."""

    def __init__(self, processes: list[Process], dice: random.Random) -> None:
        self.processes = processes
        self.dice = dice
        self.history: list[Sent] = []
        self.issued: dict[str, float] = {}

    async def answer(self, subject: str, match_id: str, prompt: match_pb2.Prompt) -> None:
        """Answer a prompt, however long it takes."""
        request = answering(match_id, prompt.prompt_id, answer=prompt.default_answer)
        while True:
            where = self.dice.choice(self.processes)
            twice = self.dice.random() < 0.2
            copies = [where, self.dice.choice(self.processes)] if twice else [where]
            results = await asyncio.gather(
                *(self._send(each, subject, request, strict=not twice) for each in copies)
            )
            errors = [error for error in results if error is not None]
            if len(errors) < len(results):
                return
            if any(error.reason in ("PROMPT_CLOSED", "MATCH_FINISHED") for error in errors):
                return
            assert all(error.retryable for error in errors), errors
            if not twice and errors[0].reason == "NOT_APPLIED":
                # It must never count: ask anew, under another id.
                request.request_id = new_id()
            await asyncio.sleep(0.02)

    async def _send(
        self,
        where: Process,
        subject: str,
        request: match_pb2.SubmitAnswerRequest,
        *,
        strict: bool,
    ) -> ApiError | None:
        # Of a request that is sent again, its first time counts.
        issued = self.issued.setdefault(request.request_id, time.monotonic())
        sequence, refusal, failure = None, "", None
        copy = match_pb2.SubmitAnswerRequest()
        copy.CopyFrom(request)
        try:
            timeout = self.dice.choice((0.05, 5.0))
            response = await where.player(subject).call("SubmitAnswer", copy, timeout=timeout)
            sequence = response.receipt.sequence
        except ApiError as error:
            failure = error
            definite = not error.retryable or (error.reason == "NOT_APPLIED" and strict)
            refusal = error.reason if definite else ""
        self.history.append(
            Sent(
                subject,
                copy.match_id,
                copy.request_id,
                issued,
                time.monotonic(),
                sequence,
                refusal,
            )
        )
        return failure

    async def play(self, match: Begun, seat: int) -> list[bytes]:
        """Watch through any process and answer, to the end; the hashes that were seen."""
        subject = match.players[seat - 1].subject
        hashes: list[bytes] = []
        while True:
            player = self.dice.choice(self.processes).player(subject)
            try:
                async for update in _updates(player, match.match_id, len(hashes) + 1):
                    assert update.sequence == len(hashes) + 1
                    hashes.append(update.commit.hash)
                    for prompt in update.prompts:
                        await self.answer(subject, match.match_id, prompt)
                    if update.status == match_pb2.MATCH_STATUS_FINISHED:
                        return hashes
            except ApiError as error:
                assert error.retryable, error
            await asyncio.sleep(0.02)


async def _updates(player: Any, match_id: str, start: int) -> Any:
    call = player.watch(match_id, start)
    try:
        async for response in call:
            yield response.update
    except grpc.aio.AioRpcError as error:
        raise parse_error(error) from error
    finally:
        call.cancel()


async def _hand_round(log: Any, processes: list[Process], dice: random.Random) -> None:
    """Partitions change hands; sometimes the old owner is not told before the new one claims."""
    while True:
        await asyncio.sleep(dice.uniform(0.1, 0.4))
        partition = dice.randrange(log.partitions)
        owners = [p for p in processes if partition in p.ownership.owned]
        others: list[Process | None] = [p for p in processes if p not in owners]
        (new,) = others or [None]
        if new is None or not owners:
            continue
        new.ownership.hints[partition] = new.address
        if dice.random() < 0.5:
            await owners[0].ownership.take({partition})
            await new.ownership.give({partition})
        else:
            await new.ownership.give({partition})
            await asyncio.sleep(dice.uniform(0, 0.1))
            await owners[0].ownership.take({partition})


@pytest.mark.parametrize(
    ("seed", "played", "count"), [(1, GAME, 10), (2, GAME, 10), (3, "king_of_tokyo", 2)]
)
async def test_everything_at_once(log: SqliteLog, seed: int, played: str, count: int) -> None:
    """Faulty appends, hand-overs, zombies, duplicates, impatient callers: the log stays right."""
    dice = random.Random(seed)
    faulty = RandomFaults(log, dice, 0.15)
    hints: dict[int, str] = {}
    limits = LIMITS.__class__(
        takeover_grace_s=0.1, takeover_wait_s=0.5, reclaim_s=0.3, release_wait_s=0.5
    )
    first, second = Shares(range(log.partitions), hints), Shares((), hints)
    async with (
        process(faulty, ownership=first, limits=limits) as one,
        process(faulty, ownership=second, limits=limits) as two,
    ):
        matches = [await begin(one, (f"a{n}", f"b{n}", f"c{n}"), game=played) for n in range(count)]
        historian = Historian([one, two], dice)
        faulty.on = True
        handing = asyncio.create_task(_hand_round(log, [one, two], dice))
        plays = [historian.play(match, seat) for match in matches for seat in (1, 2, 3)]
        seen = await asyncio.wait_for(asyncio.gather(*plays), 60)
        handing.cancel()
        await asyncio.gather(handing, return_exceptions=True)
        assert one.node.healthy and two.node.healthy
        faulty.on = False
        await asyncio.sleep(0.2)
    raw = [
        RawRecord(record.partition, record.offset, record.value)
        for partition in range(log.partitions)
        for record in await records(log, partition)
    ]
    # A5 aside: the lobby's commands are not in the history.
    problems = [found for found in check_history(raw, historian.history) if "A5" not in found]
    assert problems == []
    for number in range(len(matches)):
        views = seen[3 * number : 3 * number + 3]
        assert views[0] == views[1] == views[2]
    assert faulty.injected > 3
