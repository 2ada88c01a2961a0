"""The Play stream: the same commands and watches, many matches over one stream."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc.aio
import pytest

from diceledger.match.v1 import match_pb2
from services.client import Client, Player, RandomBot, RetryPolicy, connect, play_match
from services.common.auth import Caller, make_token
from services.common.errors import from_status, parse_error
from services.common.log.sqlite import SqliteLog
from services.match.forward import Origin
from services.match.play import PlayStream
from services.match.streams import Outlet
from tests.services.match.serving import (
    GAME,
    KEY,
    LIMITS,
    FaultyLog,
    Process,
    admitted,
    answering,
    begin,
    play_out,
    process,
    size,
    until,
)


class Stream:
    """One raw Play call of a player."""

    def __init__(self, player: Any) -> None:
        self.call = player.stub.Play(metadata=player.metadata)

    async def submit(self, *arguments: str, **fields: Any) -> None:
        await self.call.write(match_pb2.PlayRequest(submit=answering(*arguments, **fields)))

    async def watch(self, match_id: str, from_sequence: int = 0) -> None:
        request = match_pb2.WatchMatchRequest(match_id=match_id, from_sequence=from_sequence)
        await self.call.write(match_pb2.PlayRequest(watch=request))

    async def unwatch(self, match_id: str) -> None:
        request = match_pb2.UnwatchMatch(match_id=match_id)
        await self.call.write(match_pb2.PlayRequest(unwatch=request))

    async def read(self) -> match_pb2.PlayResponse:
        response = await asyncio.wait_for(self.call.read(), 5)
        assert isinstance(response, match_pb2.PlayResponse), "the stream has ended"
        return response

    async def updates(self, count: int) -> list[match_pb2.Update]:
        responses = [await self.read() for _ in range(count)]
        assert all(response.WhichOneof("response") == "update" for response in responses)
        return [response.update for response in responses]

    async def ended(self) -> bool:
        return await asyncio.wait_for(self.call.read(), 5) is grpc.aio.EOF

    def cancel(self) -> None:
        self.call.cancel()


async def test_answers_and_updates(log: SqliteLog, here: Process) -> None:
    """An answer is replied to by its request id; what it caused comes as an update."""
    match = await begin(here)
    stream = Stream(match.players[0])
    await stream.watch(match.match_id)
    updates = await stream.updates(match.sequence)
    (prompt,) = updates[-1].prompts
    await stream.submit(match.match_id, prompt.prompt_id, "keep", request_id="a1")
    got = [await stream.read(), await stream.read()]
    (reply,) = [g.reply for g in got if g.WhichOneof("response") == "reply"]
    (update,) = [g.update for g in got if g.WhichOneof("response") == "update"]
    assert reply.request_id == "a1"
    assert reply.receipt.sequence == update.sequence == match.sequence + 1
    # The same request over the other way, and again over this one: one commit.
    again = await match.players[0].answer(match.match_id, prompt.prompt_id, "keep", request_id="a1")
    assert again.receipt == reply.receipt
    await stream.submit(match.match_id, prompt.prompt_id, "keep", request_id="a1")
    assert (await stream.read()).reply == reply
    stream.cancel()
    assert len((await admitted(log))[match.match_id]) == match.sequence + 1


async def test_refusals_are_replies(log: SqliteLog, here: Process) -> None:
    """What is refused is said in a reply; the stream goes on; nothing is written."""
    match = await begin(here)
    ann, bob = match.players
    (mine,) = await ann.prompts(match.match_id)
    (other,) = await bob.prompts(match.match_id)
    before = await size(log)
    stream = Stream(ann)
    cases = {
        "ILLEGAL_ANSWER": (match.match_id, mine.prompt_id, "fold"),
        "NOT_YOUR_PROMPT": (match.match_id, other.prompt_id, "keep"),
        "PROMPT_CLOSED": (match.match_id, "p77", "keep"),
        "MATCH_NOT_FOUND": ("a" * 26, "p1", "keep"),
        "BAD_MATCH_ID": ("x", "p1", "keep"),
    }
    for reason, arguments in cases.items():
        await stream.submit(*arguments, request_id=f"r.{reason}")
        reply = (await stream.read()).reply
        assert reply.request_id == f"r.{reason}"
        assert from_status(reply.error).reason == reason
    assert await size(log) == before
    await stream.submit(match.match_id, mine.prompt_id, "keep")
    assert (await stream.read()).reply.receipt.sequence == match.sequence + 1
    stream.cancel()


async def test_several_matches_on_one_stream(here: Process) -> None:
    """Updates of several matches come in order, each match by itself."""
    matches = [await begin(here, ("ann", f"b{number}")) for number in range(3)]
    stream = Stream(matches[0].players[0])
    for match in matches:
        await stream.watch(match.match_id)
    await asyncio.gather(*(play_out(match) for match in matches))
    seen: dict[str, list[int]] = {match.match_id: [] for match in matches}
    ended: dict[str, match_pb2.WatchEnded] = {}
    while len(ended) < 3:
        response = await stream.read()
        if response.WhichOneof("response") == "update":
            seen[response.update.match_id].append(response.update.sequence)
        else:
            ended[response.watch_ended.match_id] = response.watch_ended
    for match_id, sequences in seen.items():
        assert sequences == list(range(1, len(sequences) + 1))
        assert ended[match_id].next_sequence == len(sequences) + 1
        assert ended[match_id].status.code == 0
    stream.cancel()


async def test_unwatch_and_watch_again(here: Process) -> None:
    """A watch that is given up says where it may be resumed; it can be opened again."""
    match = await begin(here)
    stream = Stream(match.players[0])
    await stream.watch(match.match_id)
    await stream.updates(match.sequence)
    await stream.unwatch(match.match_id)
    ended = (await stream.read()).watch_ended
    assert (ended.next_sequence, ended.status.code) == (match.sequence + 1, 0)
    (prompt,) = await match.players[0].prompts(match.match_id)
    await match.players[0].answer(match.match_id, prompt.prompt_id, "keep")
    await stream.watch(match.match_id, ended.next_sequence)
    (update,) = await stream.updates(1)
    assert update.sequence == ended.next_sequence
    # A second watch takes the place of the first.
    await stream.watch(match.match_id, 1)
    assert [u.sequence for u in await stream.updates(3)] == [1, 2, 3]
    await stream.unwatch("b" * 26)
    stream.cancel()


async def test_watches_that_are_refused(here: Process) -> None:
    """A watch that cannot be opened ends with its reason; the stream goes on."""
    match = await begin(here)
    stream = Stream(match.players[0])
    cases = {
        "MATCH_NOT_FOUND": ("a" * 26, 1),
        "BAD_MATCH_ID": ("x", 1),
        "SEQUENCE_OUT_OF_RANGE": (match.match_id, 99),
        "BAD_SEQUENCE": (match.match_id, -1),
    }
    for reason, (match_id, sequence) in cases.items():
        await stream.watch(match_id, sequence)
        ended = (await stream.read()).watch_ended
        assert ended.match_id == match_id
        assert from_status(ended.status).reason == reason
    await stream.watch(match.match_id, match.sequence)
    assert (await stream.read()).update.sequence == match.sequence
    stream.cancel()


async def test_half_close(log: SqliteLog) -> None:
    """After the caller's last word the replies come, the watches are ended, the stream is OK."""
    faulty = FaultyLog(log)
    async with process(faulty) as here:
        match = await begin(here)
        (prompt,) = await match.players[0].prompts(match.match_id)
        stream = Stream(match.players[0])
        await stream.watch(match.match_id)
        await stream.updates(match.sequence)
        faulty.faults = ["hold"]
        await stream.submit(match.match_id, prompt.prompt_id, "keep", request_id="last")
        await stream.call.done_writing()
        ended = (await stream.read()).watch_ended
        assert (ended.status.code, ended.next_sequence) == (0, match.sequence + 1)
        faulty.release.set()
        assert (await stream.read()).reply.request_id == "last"
        assert await stream.ended()
        assert await stream.call.code() is grpc.StatusCode.OK


async def test_only_a_watch_and_half_close(here: Process) -> None:
    """A finished match can be had whole by one watch on a stream that is closed at once."""
    match = await begin(here)
    last = await play_out(match)
    stream = Stream(match.players[0])
    await stream.watch(match.match_id)
    await stream.call.done_writing()
    assert [u.sequence for u in await stream.updates(last)] == list(range(1, last + 1))
    assert (await stream.read()).watch_ended.next_sequence == last + 1
    assert await stream.ended()


async def test_an_empty_request_ends_the_stream(here: Process) -> None:
    """What is no request is refused as a whole."""
    stream = Stream(here.player("ann"))
    await stream.call.write(match_pb2.PlayRequest())
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await stream.read()
    assert parse_error(error.value).reason == "BAD_REQUEST"


async def test_answers_wait_their_turn(log: SqliteLog) -> None:
    """More answers than may be in flight are not refused: the stream is read more slowly."""
    limits = LIMITS.__class__(in_flight_per_stream=2, in_flight=4, in_flight_per_caller=2)
    async with process(log, limits=limits) as here:
        match = await begin(here)
        stream = Stream(match.players[0])
        for number in range(30):
            await stream.submit(match.match_id, "p99", "keep", request_id=f"n{number}")
        replies = [(await stream.read()).reply for _ in range(30)]
        assert {from_status(reply.error).reason for reply in replies} == {"PROMPT_CLOSED"}
        stream.cancel()


async def test_who_reads_nothing_may_send_no_more(here: Process) -> None:
    """Whatever is asked on a stream: what is not taken off our hands is bounded, and short."""
    ann = here.player("ann")
    kinds: list[Callable[[int], match_pb2.PlayRequest]] = [
        lambda n: match_pb2.PlayRequest(submit=answering("x" * 5000, "p1", request_id="y" * 5000)),
        lambda n: match_pb2.PlayRequest(watch=match_pb2.WatchMatchRequest(match_id="x" * 5000)),
        lambda n: match_pb2.PlayRequest(watch=match_pb2.WatchMatchRequest(match_id=f"{n:a>26}")),
    ]
    for kind in kinds:
        taken, written = 0, list[bytes]()

        async def requests(kind: Any = kind) -> AsyncIterator[match_pb2.PlayRequest]:
            nonlocal taken
            for number in range(1000):
                taken += 1
                yield kind(number)

        class Blocked:
            async def write(self, message: bytes, written: Any = written) -> None:
                written.append(message)
                await asyncio.Event().wait()

        caller = Caller(ann.subject, frozenset({"player"}), "Ann", 9e9)
        stream = PlayStream(here.node, Origin(caller), Outlet(Blocked()))
        running = asyncio.create_task(stream.run(requests()))
        await asyncio.sleep(0.3)
        assert 1 < taken <= LIMITS.in_flight_per_stream + 1
        assert len(written[0]) < 500
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_too_many_in_flight(log: SqliteLog) -> None:
    """Unary calls beyond the limits of caller and process are refused, safely to be repeated."""
    faulty = FaultyLog(log)
    limits = LIMITS.__class__(in_flight=3, in_flight_per_caller=2)
    async with process(faulty, limits=limits) as here:
        faulty.faults = ["hold"] * 10
        ann, bob, cid = (here.player(name) for name in ("ann", "bob", "cid"))
        waiting = [asyncio.create_task(ann.create()) for _ in range(2)]
        waiting.append(asyncio.create_task(bob.create()))
        await until(lambda: faulty.held == 3)
        for player in (ann, cid):
            with pytest.raises(Exception, match="TOO_MANY_IN_FLIGHT"):
                await player.create()
        faulty.faults = []
        faulty.release.set()
        await asyncio.gather(*waiting)
        await cid.create()


async def test_bots_play_matches(log: SqliteLog, here: Process) -> None:
    """The client's bots play both games to the end, over Play streams."""
    async with connect(here.address, policy=RetryPolicy(total_s=20)) as client:
        for game, seats in ((GAME, 3), ("king_of_tokyo", 4)):
            players = [
                Player(_client(client, f"{game}-{seat}"), RandomBot(f"{game}{seat}"), f"B{seat}")
                for seat in range(1, seats + 1)
            ]
            host = _client(client, "host")
            matches = [play_match(host, players, game, hashes=True) for _ in range(2)]
            for records in await asyncio.gather(*matches):
                commits = (await admitted(log))[records[0].match_id]
                for record in records:
                    hashes = list(record.commit_hashes.values())
                    assert hashes == [commit.hash for commit in commits]
                    acknowledged = {c.request_id for c in record.commands if c.receipt}
                    assert acknowledged
                    assert acknowledged <= {c.cause.request_id for c in commits if c.cause}


def _client(client: Client, subject: str) -> Client:
    return client.for_token(make_token(KEY, subject))
