"""What the read models must hold, computed without the projector: fold by redacted fold."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from redis.asyncio import Redis

from engine import MatchState, Seat, empty_state, encode_state, evolve, fold, redact
from services.common.log.port import Log, Position
from services.common.views import Views, Watermark
from tests.services.projector.recording import Recording


def views_of(redis: Redis, log: Log) -> Views:
    """The read models of a log."""
    return Views(redis, log.log_id, log.partitions)


def expected_state(recording: Recording, viewer: int, sequence: int = 0) -> MatchState:
    """The state of one viewer after `sequence` (0: the newest), fact by fact."""
    commits = recording.commits[: sequence or len(recording.commits)]
    facts = [fact for commit in commits for fact in commit.facts()]
    if commits[-1].final:
        return fold(facts)
    state = empty_state()
    for fact in facts:
        state = evolve(state, redact(fact, Seat(viewer) if viewer else None))
    return state


async def soon(condition: Callable[[], Awaitable[bool]], timeout: float = 5) -> None:
    """Wait until the condition holds; TimeoutError when it does not."""
    async with asyncio.timeout(timeout):
        while not await condition():  # noqa: ASYNC110 - looked at from outside
            await asyncio.sleep(0.01)


async def caught_up(views: Views, log: Log, timeout: float = 10) -> None:
    """Wait until the views hold all of the log."""
    for partition in range(log.partitions):
        end = await log.end_offset(partition)
        await views.wait_for(Position(partition, end - 1), timeout)

    async def complete() -> bool:
        return all(mark and not mark.rebuilding for mark in (await marks(views)).values())

    await soon(complete, timeout)


async def marks(views: Views) -> dict[int, Watermark | None]:
    """All watermarks."""
    return await views.watermarks(range(views.partitions))


async def assert_equal(views: Views, recordings: Iterable[Recording]) -> None:
    """Every match is in Redis as every viewer may see it, and in the lists."""
    wanted = list(recordings)
    for recording in wanted:
        row = await views.read_match(recording.match_id)
        assert row is not None
        last = recording.commits[-1]
        assert (row.sequence, row.hash) == (last.sequence, last.hash)
        assert row.offset == recording.offsets[-1]
        whole = recording.session.state
        assert row.status == row.summary.status == whole.status
        assert row.summary.created_ms == recording.commits[0].recorded_at_ms
        for viewer in range(whole.seats + 1):
            assert row.state(viewer) == encode_state(expected_state(recording, viewer)), viewer
        asked = {prompt.seat for prompt in whole.prompts}
        assert {seat.seat for seat in row.summary.seats if seat.asked} == asked
    listed = await views.list_matches(page_size=200)
    newest_first = sorted(
        wanted, key=lambda r: (r.commits[0].recorded_at_ms, r.match_id), reverse=True
    )
    assert [each.match_id for each in listed.matches] == [r.match_id for r in newest_first]


async def dump(redis: Redis) -> dict[bytes, object]:
    """Everything that is in Redis, but for the rebuilding target of the watermarks."""
    found: dict[bytes, object] = {}
    async for key in redis.scan_iter():
        kind = await redis.type(key)
        if kind == b"hash":
            value = await redis.hgetall(key)
            if key.endswith(b":watermark"):
                value.pop(b"target")
            found[key] = value
        elif kind == b"zset":
            found[key] = await redis.zrange(key, 0, -1, withscores=True)
        else:
            found[key] = await redis.smembers(key)
    return found
