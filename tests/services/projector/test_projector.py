"""The read models equal the fold of the log, whatever happens to Redis and to the projector."""

import asyncio
from dataclasses import replace
from itertools import islice

import pytest
from redis.asyncio import Redis

from engine.core.game import AnyGame
from services.common.log.port import partition_of
from services.common.log.sqlite import SqliteLog
from services.common.metrics import Metrics
from services.common.redis_server import RedisServer
from services.common.redis_store import connect_redis
from services.common.views import (
    Batch,
    Views,
    ViewsRebuilding,
    ViewsUnavailable,
    Watermark,
)
from services.projector import Projector
from services.projector import partition as partition_module
from tests.services.projector.checking import assert_equal, caught_up, dump, views_of
from tests.services.projector.recording import Recorder, match_id_of
from tests.services.projector.running import figure, projecting, row_of

pytestmark = pytest.mark.usefixtures("game")


async def test_views_equal_the_fold_after_every_commit(
    log: SqliteLog, redis: Redis, recorder: Recorder, game: AnyGame
) -> None:
    views = views_of(redis, log)
    async with projecting(log, redis):
        match = await recorder.create("one", game.id, 3)
        await recorder.start(match)
        while await recorder.answer(match):
            await caught_up(views, log)
            await assert_equal(views, [match])
    assert match.session.state.status == "finished"


async def test_many_matches_of_all_kinds(
    log: SqliteLog, redis: Redis, recorder: Recorder, game: AnyGame
) -> None:
    async with projecting(log, redis) as (_, metrics):
        for number in range(12):
            match = await recorder.create(f"m{number}", game.id, 2 + number % 4)
            if number % 3:
                await recorder.play(match, answers=100_000 if number % 2 else 3)
        views = views_of(redis, log)
        await caught_up(views, log)
        await assert_equal(views, recorder.matches.values())
        commits = sum(len(m.commits) for m in recorder.matches.values())
        claims = len(recorder.epochs)
        name = "diceledger_projection_commits_total"
        assert figure(metrics, name, projection="views") == commits + claims
        running = await views.list_matches(status="running", page_size=2)
        assert all(each.status == "running" for each in running.matches)
        mine = await views.list_matches(player="player-5", page_size=200)
        seated = [m for m in recorder.matches.values() if m.session.state.seats >= 5]
        assert len(mine.matches) == len(seated) > 0


async def test_a_started_projector_goes_on_from_the_watermark(
    log: SqliteLog, redis: Redis, recorder: Recorder, game: AnyGame
) -> None:
    views = views_of(redis, log)
    matches = [await recorder.create(f"m{n}", game.id, 3) for n in range(4)]
    async with projecting(log, redis):
        await caught_up(views, log)
    await recorder.play(matches[0])
    await recorder.play(matches[1], 2)
    await recorder.whole("later", game.id, 2)
    async with projecting(log, redis) as (_, metrics):
        await caught_up(views, log)
        await assert_equal(views, recorder.matches.values())
        assert not figure(
            metrics, "diceledger_projection_rebuilds_total", projection="views", cause="missing"
        )


async def test_flushall_is_noticed_without_new_commits(
    log: SqliteLog, redis: Redis, recorder: Recorder, game: AnyGame
) -> None:
    views = views_of(redis, log)
    for number in range(6):
        await recorder.play(await recorder.create(f"m{number}", game.id, 3), number * 2)
    async with projecting(log, redis) as (_, metrics):
        await caught_up(views, log)
        before = await dump(redis)
        for _ in range(3):
            await redis.flushall()
            await caught_up(views, log, timeout=5)
            await assert_equal(views, recorder.matches.values())
            assert await dump(redis) == before
        rebuilt = figure(
            metrics, "diceledger_projection_rebuilds_total", projection="views", cause="missing"
        )
        assert rebuilt >= 6


async def test_flushall_in_the_middle_of_play(
    log: SqliteLog, redis: Redis, recorder: Recorder, game: AnyGame
) -> None:
    views = views_of(redis, log)
    async with projecting(log, redis):
        matches = [await recorder.create(f"m{n}", game.id, 3) for n in range(6)]
        for number, match in enumerate(matches):
            await recorder.play(match, 4)
            if number % 2:
                await redis.flushall()
        await caught_up(views, log)
        await assert_equal(views, matches)


async def test_a_missing_view_is_told_from_an_unknown_match(
    log: SqliteLog, redis: Redis, recorder: Recorder, game: AnyGame
) -> None:
    views = views_of(redis, log)
    match = await recorder.create("one", game.id, 2)
    with pytest.raises(ViewsRebuilding):
        await views.read_match(match.match_id)
    with pytest.raises(ViewsRebuilding):
        await views.list_matches()
    async with projecting(log, redis):
        await caught_up(views, log)
        assert await views.read_match("a" * 26) is None
        await assert_equal(views, [match])
    await redis.flushall()
    with pytest.raises(ViewsRebuilding):
        await views.read_match(match.match_id)
    reset = await views.reset(match.partition, None, 5)
    assert reset.rebuilding
    with pytest.raises(ViewsRebuilding):
        await views.read_match(match.match_id)


async def test_redis_killed_and_started_again(
    log: SqliteLog, redis: Redis, server: RedisServer, recorder: Recorder, game: AnyGame
) -> None:
    views = views_of(redis, log)
    async with projecting(log, redis) as (projector, metrics):
        matches = [await recorder.create(f"m{n}", game.id, 3) for n in range(4)]
        await caught_up(views, log)
        await server.kill()
        for match in matches:
            await recorder.play(match, 5)
        with pytest.raises(ViewsUnavailable):
            await views.read_match(matches[0].match_id)
        await projector._measure()
        lags = [
            figure(
                metrics,
                "diceledger_projection_lag_records",
                projection="views",
                partition=str(partition),
            )
            for partition in recorder.epochs
        ]
        assert sum(lags) >= len(matches) * 5
        await server.start()
        await caught_up(views, log, timeout=20)
        await assert_equal(views, matches)
        await projector._measure()
        for partition in recorder.epochs:
            assert not figure(
                metrics,
                "diceledger_projection_lag_records",
                projection="views",
                partition=str(partition),
            )


async def test_redis_comes_back_with_an_older_state(
    log: SqliteLog, redis: Redis, recorder: Recorder, game: AnyGame
) -> None:
    """As after a lost second of the append-only file, or a failover to a replica that lags."""
    views = views_of(redis, log)
    async with projecting(log, redis) as (_, metrics):
        matches = [await recorder.create(f"m{n}", game.id, 3) for n in range(4)]
        await caught_up(views, log)
        older = [(key, await redis.dump(key) or b"") async for key in redis.scan_iter()]
        for match in matches:
            await recorder.play(match, 100 if match is matches[0] else 6)
        await caught_up(views, log)
        newest = await dump(redis)
        pipe = redis.pipeline(transaction=True)
        pipe.flushall()
        for key, value in older:
            pipe.restore(key, 0, value)
        await pipe.execute()
        await caught_up(views, log)
        assert await dump(redis) == newest
        await assert_equal(views, matches)
        assert figure(
            metrics, "diceledger_projection_rebuilds_total", projection="views", cause="set_back"
        )


async def test_scripts_forgotten_by_redis(
    log: SqliteLog, redis: Redis, recorder: Recorder, game: AnyGame
) -> None:
    views = views_of(redis, log)
    async with projecting(log, redis):
        match = await recorder.create("one", game.id, 2)
        await recorder.start(match)
        while await recorder.answer(match):
            await redis.script_flush()
            await caught_up(views, log)
        await assert_equal(views, [match])


async def test_projectors_racing_for_one_partition(
    log: SqliteLog, redis: Redis, recorder: Recorder, game: AnyGame
) -> None:
    views = views_of(redis, log)
    async with projecting(log, redis), projecting(log, redis), projecting(log, redis):
        for number in range(10):
            await recorder.play(await recorder.create(f"m{number}", game.id, 3), number)
            if number == 5:
                await redis.flushall()
        await caught_up(views, log)
        await assert_equal(views, recorder.matches.values())


async def test_a_stalled_projector_cannot_undo_what_another_wrote(
    log: SqliteLog,
    redis: Redis,
    recorder: Recorder,
    game: AnyGame,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One projector stops between folding and writing; it goes on after the other is far ahead."""
    views = views_of(redis, log)
    match = await recorder.create("one", game.id, 3)
    await recorder.start(match)
    async with projecting(log, redis) as (stalled, metrics):
        await caught_up(views, log)
        go_on, stopped = asyncio.Event(), asyncio.Event()
        apply = type(views).apply

        async def stall(*arguments: object) -> None:
            stopped.set()
            await go_on.wait()
            await apply(stalled._views, *arguments)  # type: ignore[arg-type]  # passed on

        monkeypatch.setattr(stalled._views, "apply", stall)
        await recorder.answer(match)
        await stopped.wait()
        async with projecting(log, redis):
            await recorder.play(match)
            await caught_up(views, log)
            newest = await dump(redis)
            go_on.set()
            await asyncio.sleep(0.3)
            assert await dump(redis) == newest
        assert figure(metrics, "diceledger_projection_conflicts_total", projection="views") == 1
        # It goes on from what the other wrote, and needs no rebuild for that.
        await recorder.whole("next", game.id, 2)
        await caught_up(views, log)
        await assert_equal(views, recorder.matches.values())


async def test_a_stalled_rebuild_cannot_undo_what_another_wrote(
    log: SqliteLog,
    redis: Redis,
    recorder: Recorder,
    game: AnyGame,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While views are rebuilt, finished matches are written before the watermark moves."""
    monkeypatch.setattr(partition_module, "_ROWS_MAX", 2)
    views = views_of(redis, log)
    for number in range(12):
        await recorder.whole(f"m{number}", game.id, 2)
    open_match = await recorder.create("open", game.id, 3)
    go_on, stopped = asyncio.Event(), asyncio.Event()
    apply = Views.apply

    async def stall(
        self: Views, partition: int, expected: Watermark | None, new: Watermark, batch: Batch
    ) -> None:
        if expected == new and not stopped.is_set():
            stopped.set()
            await go_on.wait()
        await apply(self, partition, expected, new, batch)

    with monkeypatch.context() as stalling:
        stalling.setattr(Views, "apply", stall)
        async with projecting(log, redis):
            await stopped.wait()
            async with projecting(log, redis):
                await caught_up(views, log)
                await recorder.play(open_match)
                await recorder.whole("next", game.id, 2)
                await caught_up(views, log)
                newest = await dump(redis)
                go_on.set()
                await asyncio.sleep(0.3)
                assert await dump(redis) == newest
            await recorder.whole("last", game.id, 2)
            await caught_up(views, log)
            await assert_equal(views, recorder.matches.values())


async def test_of_two_rebuilds_neither_leaves_what_is_older_than_the_watermark(
    log: SqliteLog,
    redis: Redis,
    recorder: Recorder,
    game: AnyGame,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The one that has read less writes its part last, the one that has read more completes."""
    monkeypatch.setattr(partition_module, "_ROWS_MAX", 2)
    names = (f"m{n}" for n in range(1000))
    here = (n for n in names if partition_of(match_id_of(n), log.partitions) == 0)
    matches = [await recorder.create(name, game.id, 3) for name in islice(here, 5)]
    gates = [asyncio.Event() for _ in range(3)]
    reached = [asyncio.Event() for _ in range(3)]
    apply = Views.apply
    projectors: list[Projector] = []

    async def gated(
        self: Views, partition: int, expected: Watermark | None, new: Watermark, batch: Batch
    ) -> None:
        first = self is projectors[0]._views
        if partition == 0 and expected is not None and expected.version == new.version == 1:
            completes = new.offset >= 0
            gate = 2 if first and completes else 0 if first else 1 if completes else None
            if gate is not None:
                reached[gate].set()
                await gates[gate].wait()
        await apply(self, partition, expected, new, batch)

    monkeypatch.setattr(Views, "apply", gated)

    async def rebuild_up_to(gate: int) -> None:
        projectors.append(Projector(log=log, redis=redis, metrics=Metrics("projector")))
        await projectors[-1].start()
        await reached[gate].wait()

    # The first is about to write a part, the second, which knows more, to complete.
    await rebuild_up_to(0)
    for match in matches:
        await recorder.start(match)
    await rebuild_up_to(1)
    gates[0].set()
    await reached[2].wait()
    gates[1].set()
    views = views_of(redis, log)
    await caught_up(views, log)
    gates[2].set()
    await asyncio.sleep(0.3)
    await assert_equal(views, matches)
    for projector in projectors:
        await projector.close()


async def test_a_reset_that_was_broken_off_is_begun_again(
    log: SqliteLog, redis: Redis, recorder: Recorder, game: AnyGame
) -> None:
    views = views_of(redis, log)
    await recorder.whole("one", game.id, 2)
    async with projecting(log, redis):
        await caught_up(views, log)
    (match,) = recorder.matches.values()
    stored = await views.watermark(match.partition)
    assert stored is not None
    clearing = replace(stored, offset=-1, version=0, target=stored.offset)
    # A row that this log does not explain is left over.
    left = replace(await row_of(views, match.match_id), match_id="x" * 26, offset=stored.offset)
    batch = Batch(views.keys(match.partition))
    batch.put(left)
    await views.apply(match.partition, stored, clearing, batch)
    with pytest.raises(ViewsRebuilding):
        await views.read_match(match.match_id)
    async with projecting(log, redis):
        await caught_up(views, log)
        await assert_equal(views, [match])
        assert not await redis.exists(views.keys(match.partition).match("x" * 26))


async def test_a_write_whose_reply_was_lost_is_taken_for_done(
    log: SqliteLog,
    redis: Redis,
    recorder: Recorder,
    game: AnyGame,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    views = views_of(redis, log)
    async with projecting(log, redis) as (projector, metrics):
        match = await recorder.create("one", game.id, 3)
        await caught_up(views, log)
        apply = type(views).apply
        lost = 0

        async def lose_every_other(*arguments: object) -> None:
            nonlocal lost
            await apply(projector._views, *arguments)  # type: ignore[arg-type]  # passed on
            lost += 1
            if lost % 2:
                raise ViewsUnavailable("the reply was lost")

        monkeypatch.setattr(projector._views, "apply", lose_every_other)
        await recorder.play(match)
        await caught_up(views, log)
        await asyncio.sleep(0.2)
        await assert_equal(views, [match])
        assert not figure(metrics, "diceledger_projection_conflicts_total", projection="views")
        assert lost


async def test_finished_matches_are_forgotten(
    log: SqliteLog, redis: Redis, recorder: Recorder, game: AnyGame
) -> None:
    views = views_of(redis, log)
    async with projecting(log, redis) as (projector, _):
        for number in range(5):
            await recorder.whole(f"m{number}", game.id, 2)
        open_match = await recorder.create("open", game.id, 2)
        await caught_up(views, log)
        held = [
            match_id
            for each in projector._projectors.values()
            for match_id in (*each._matches._matches, *each._matches._finished)
        ]
        assert held == [open_match.match_id]


async def test_partitions_come_and_go(
    log: SqliteLog, redis: Redis, recorder: Recorder, game: AnyGame
) -> None:
    views = views_of(redis, log)
    async with projecting(log, redis) as (projector, metrics):
        match = await recorder.create("one", game.id, 2)
        await caught_up(views, log)
        await projector._measure()
        await projector.revoked(frozenset({match.partition}))
        assert match.partition not in projector.partitions
        name = "diceledger_projection_lag_records"
        labels = {"projection": "views", "partition": str(match.partition)}
        assert metrics.registry.get_sample_value(name, labels) is None
        await recorder.play(match, 2)
        await projector.assigned(frozenset(range(log.partitions)))
        await caught_up(views, log)
        await assert_equal(views, [match])


async def test_a_second_client_sees_the_views(
    log: SqliteLog, redis: Redis, server: RedisServer, recorder: Recorder, game: AnyGame
) -> None:
    async with projecting(log, redis):
        match = await recorder.create("one", game.id, 2)
        other = connect_redis(server.url)
        try:
            views = views_of(other, log)
            await caught_up(views, log)
            await assert_equal(views, [match])
        finally:
            await other.aclose()
