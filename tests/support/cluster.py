"""The distributed set-up as tests use it: quick to notice a lost process, checked as a whole."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from redis.asyncio import Redis

from diceledger.match.v1 import match_pb2
from engine import MatchState, state_hash
from services.cli.supervisor import Distributed, Member, distributed
from services.client import Client, seat_viewer
from tests.support.arena import Arena, Played
from tests.support.history import check_history
from tests.support.rawlog import kafka_records

SESSION_TIMEOUT_S = 3.0


@contextlib.asynccontextmanager
async def cluster(data: Path, kafka: str, topic: str) -> AsyncIterator[Distributed]:
    """Two match processes, a projector and a replay process on the given broker."""
    settings = {"DICELEDGER_SESSION_TIMEOUT_MS": str(int(SESSION_TIMEOUT_S * 1000))}
    async with distributed(data, kafka=kafka, topic=topic, settings=settings) as running:
        yield running


async def freeze(member: Member) -> None:
    """Let a process stand still for longer than its session lasts."""
    member.pause()
    try:
        await asyncio.sleep(SESSION_TIMEOUT_S + 3)
    finally:
        member.resume()


def arena_on(running: Distributed) -> Arena:
    """The six bots, on this set-up."""
    return Arena(running.addresses, running.token, replay_address=running.replay_address)


async def check_all(running: Distributed, arena: Arena, played: Sequence[Played]) -> None:
    """Everything that must hold after matches, whatever happened in between.

    The log against what the clients were told; for each match and seat: every state that the
    client folded against the replay's; read model against fold; the server's own verification.
    """
    records = await asyncio.to_thread(kafka_records, running.kafka, running.topic)
    assert check_history(records, arena.sent) == []
    for match in played:
        await check_match(arena, match)


async def check_match(arena: Arena, match: Played) -> None:
    """One match: what its players saw, what the log says, what queries say."""
    assert all(record.state is not None for record in match.records)
    first = match.records[0]
    assert all(record.commit_hashes == first.commit_hashes for record in match.records)
    for record in match.records:
        if record.state_hashes:
            await _check_seat(arena, match, record.seat)
    whole = await _whole(arena.host, match.match_id)
    await _check_read_model(arena, match, whole)
    report = await arena.arbiter.replays.verify(match.match_id)
    assert report.passed, report
    assert report.state_hash == state_hash(whole)
    assert report.last_sequence == max(first.commit_hashes)


async def _check_seat(arena: Arena, match: Played, seat: int) -> None:
    """The replay's state at every sequence is the player's own fold; at the end all is open."""
    record = match.records[seat - 1]
    last = max(record.commit_hashes)
    replayed = arena.arbiter.replays.stream(match.match_id, viewer=seat_viewer(seat))
    seen = {each.sequence: each.state_hash async for each in replayed}
    assert sorted(seen) == sorted(record.state_hashes) == list(range(1, last + 1))
    differing = [n for n in range(1, last) if seen[n] != record.state_hashes[n]]
    assert differing == []


async def _whole(client: Client, match_id: str) -> MatchState:
    """The client's own fold of the opened match, watched from the start after its end."""
    state: MatchState | None = None
    async for update in client.watch(match_id, fold=True):
        state = update.state
    assert state is not None
    assert state.status == "finished"
    return state


async def _check_read_model(arena: Arena, match: Played, whole: MatchState) -> None:
    """Redis holds, for everybody, the fold of the whole match."""
    receipts = [c.receipt for record in match.records for c in record.commands if c.receipt]
    last = max(receipts, key=lambda receipt: receipt.sequence)
    assert last.sequence == max(match.records[0].commit_hashes), "whose was the last command?"
    for client in (arena.host, arena.player(1).client):
        shown = await client.get(match.match_id, position=last.position)
        assert shown.summary.sequence == last.sequence
        assert shown.summary.status == match_pb2.MATCH_STATUS_FINISHED
        assert shown.state_hash == state_hash(whole)
        assert list(shown.summary.winners) == list(whole.winners)


async def flush_redis(running: Distributed) -> None:
    """FLUSHALL, as an operator by mistake."""
    redis = Redis.from_url(running.redis_server.url)
    try:
        await redis.flushall()
    finally:
        await redis.aclose()
