"""The read models equal the fold of the log, whatever happens to Redis and to the projector."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import islice

import pytest
from redis.asyncio import Redis

from engine import Fact, MatchStarted, Seat, Step
from engine.core.game import AnyGame
from services.common.commits import Cause
from services.common.log.port import partition_of
from services.common.log.sqlite import SqliteLog
from services.common.metrics import Metrics
from services.common.redis_server import RedisServer
from services.common.redis_store import connect_redis
from services.common.viewfold import MatchFold
from services.common.views import (
    Batch,
    MatchRow,
    Views,
    ViewsRebuilding,
    ViewsUnavailable,
    Watermark,
)
from services.projector import Projector
from services.projector import partition as partition_module
from tests.engine.high_roll import PointTaken
from tests.services.projector.checking import assert_equal, caught_up, dump, soon, views_of
from tests.services.projector.recording import Recorder, match_id_of

pytestmark = pytest.mark.usefixtures("game")


def figure(metrics: Metrics, name: str, **labels: str) -> float:
    """The value of one metric; 0 when it has none."""
    return metrics.registry.get_sample_value(name, labels) or 0.0


@asynccontextmanager
async def projecting(
    log: SqliteLog, redis: Redis, look_s: float = 0.1
) -> AsyncIterator[tuple[Projector, Metrics]]:
    metrics = Metrics("projector")
    projector = Projector(log=log, redis=redis, metrics=metrics, look_s=look_s)
    await projector.start()
    try:
        yield projector, metrics
    finally:
        await projector.close()


async def stopped(projector: Projector) -> bool:
    """Whether a partition stands still."""
    return not projector.healthy


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
    for _ in range(2):
        projectors.append(Projector(log=log, redis=redis, metrics=Metrics("projector")))
        await projectors[-1].start()
        # The first is about to write a part, the second, which knows more, to complete.
        await reached[len(projectors) - 1].wait()
        for match in matches:
            await recorder.start(match) if len(projectors) == 1 else None
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


async def row_of(views: Views, match_id: str) -> MatchRow:
    row = await views.read_match(match_id)
    assert row is not None
    return row


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


async def test_a_commit_that_cannot_be_folded_parks_its_match_alone(
    log: SqliteLog, redis: Redis, recorder: Recorder, game: AnyGame
) -> None:
    views = views_of(redis, log)
    bad = await recorder.create("bad", game.id, 2)
    await recorder.start(bad)
    # A fact that no rule would give here: there is no ninth hand.
    step = Step((PointTaken(Seat(9)),), ())
    poison = bad.make(step, Cause(request_id="poison", actor="nobody"))
    await log.append(bad.partition, b"", poison.value)
    others = [await recorder.whole(f"m{n}", game.id, 3) for n in range(4)]
    async with projecting(log, redis) as (_, metrics):
        await caught_up(views, log)
        row = await views.read_match(bad.match_id)
        assert row is not None
        assert "commit 5 cannot be folded" in row.parked
        assert row.sequence == len(bad.commits) == 4
        for match in others:
            shown = await views.read_match(match.match_id)
            assert shown is not None and shown.sequence == len(match.commits) and not shown.parked
        name = "diceledger_projection_parked_matches"
        assert figure(metrics, name, projection="views", partition=str(bad.partition)) == 1


async def test_a_parked_match_is_taken_up_again_by_a_version_that_can_fold_it(
    log: SqliteLog,
    redis: Redis,
    recorder: Recorder,
    game: AnyGame,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    views = views_of(redis, log)
    match = await recorder.create("one", game.id, 2)
    await recorder.play(match, 3)
    apply = MatchFold.apply

    def fail_at_the_start(fold: MatchFold, facts: Sequence[Fact], *, final: bool) -> None:
        assert not any(isinstance(fact, MatchStarted) for fact in facts), "a defect"
        apply(fold, facts, final=final)

    with monkeypatch.context() as defect:
        defect.setattr(MatchFold, "apply", fail_at_the_start)
        async with projecting(log, redis):
            await caught_up(views, log)
            row = await views.read_match(match.match_id)
            assert row is not None and row.parked and row.sequence == 3
    async with projecting(log, redis):

        async def taken_up() -> bool:
            row = await views.read_match(match.match_id)
            return row is not None and not row.parked

        await soon(taken_up)
        await assert_equal(views, [match])


async def test_void_records_are_skipped_and_counted_once(
    log: SqliteLog, redis: Redis, recorder: Recorder, game: AnyGame
) -> None:
    views = views_of(redis, log)
    match = await recorder.create("one", game.id, 2)
    await recorder.play(match, 3)
    partition = match.partition
    # A late repetition, garbage, and what a writer without the partition appends.
    await log.append(partition, b"", match.commits[2].value)
    await log.append(partition, b"", b"\xff\xfe garbage")
    await log.append(partition, b"", b"")
    stale = match.make(
        Step(match.commits[-1].facts(), ()), Cause(request_id="late", actor="player-1")
    )
    await recorder.claim(partition, "another")
    await log.append(partition, b"", stale.value)
    await recorder.play(match)
    async with projecting(log, redis) as (_, metrics):
        await caught_up(views, log)
        await assert_equal(views, [match])
        await redis.flushall()
        await caught_up(views, log)
        await assert_equal(views, [match])
        name = "diceledger_void_records_total"
        assert figure(metrics, name, reason="WRONG_SEQUENCE") == 1
        assert figure(metrics, name, reason="MALFORMED") == 2
        assert figure(metrics, name, reason="STALE_EPOCH") == 1


async def test_a_record_of_newer_software_stops_its_partition(
    log: SqliteLog, redis: Redis, recorder: Recorder, game: AnyGame
) -> None:
    views = views_of(redis, log)
    match = await recorder.create("one", game.id, 2)
    partition = match.partition
    end = await log.append(partition, b"", b"\x08\x63")
    async with projecting(log, redis) as (projector, metrics):
        await soon(lambda: stopped(projector))
        mark = await views.watermark(partition)
        assert mark is not None and mark.offset == end - 1
        name = "diceledger_projection_stopped"
        assert figure(metrics, name, projection="views", partition=str(partition)) == 1
        other = (partition + 1) % log.partitions
        assert not figure(metrics, name, projection="views", partition=str(other))


async def test_views_of_a_later_version_are_left_alone(
    log: SqliteLog, redis: Redis, recorder: Recorder, game: AnyGame
) -> None:
    views = views_of(redis, log)
    match = await recorder.create("one", game.id, 2)
    newer = Watermark(log.log_id, 1, version=99)
    await views.apply(match.partition, None, newer, Batch(views.keys(match.partition)))
    async with projecting(log, redis) as (projector, _):
        await soon(lambda: stopped(projector))
    assert await views.watermark(match.partition) == newer


async def test_views_of_an_older_version_are_built_anew(
    log: SqliteLog, redis: Redis, recorder: Recorder, game: AnyGame
) -> None:
    views = views_of(redis, log)
    match = await recorder.whole("one", game.id, 2)
    keys = views.keys(match.partition)
    await redis.hset(keys.match("b" * 26), "summary", b"{old}")
    await redis.zadd(keys.matches, {"b" * 26: 1})
    older = Watermark(log.log_id, 1, version=0)
    await views.apply(match.partition, None, older, Batch(keys))
    with pytest.raises(ViewsRebuilding):
        await views.read_match(match.match_id)
    async with projecting(log, redis):
        await caught_up(views, log)
        await assert_equal(views, [match])
    assert not await redis.exists(keys.match("b" * 26))


async def test_a_damaged_watermark_is_replaced(
    log: SqliteLog, redis: Redis, recorder: Recorder, game: AnyGame
) -> None:
    views = views_of(redis, log)
    match = await recorder.whole("one", game.id, 2)
    async with projecting(log, redis):
        await caught_up(views, log)
        await redis.hset(views.keys(match.partition).watermark, "offset", "nonsense")
        await caught_up(views, log)
        await assert_equal(views, [match])


def _rebuilt_for_damage(metrics: Metrics) -> float:
    name = "diceledger_projection_rebuilds_total"
    return figure(metrics, name, projection="views", cause="damaged")


@pytest.mark.parametrize("name", ["watermark", "matches", "parked", "match", "status", "player"])
async def test_a_key_of_the_wrong_type_costs_a_rebuild(
    log: SqliteLog, redis: Redis, recorder: Recorder, game: AnyGame, name: str
) -> None:
    """Whatever lies under the name of one of our keys goes away when the projector meets it."""
    views = views_of(redis, log)
    match = await recorder.whole("one", game.id, 2)
    keys = views.keys(match.partition)
    async with projecting(log, redis):
        await caught_up(views, log)
        row = await row_of(views, match.match_id)
        before = await dump(redis)
    others = {
        "match": keys.match(match.match_id),
        "status": keys.status("finished"),
        "player": keys.player(row.summary.seats[0].player),
    }
    key = others.get(name) or getattr(keys, name)
    await redis.delete(key)
    await redis.set(key, "nonsense")
    if name != "watermark":
        # So that all of them are met: views of another version are built anew.
        await redis.hset(keys.watermark, "version", "0")
    async with projecting(log, redis) as (_, metrics):
        await caught_up(views, log)
        await assert_equal(views, [match])
        assert await dump(redis) == before
        assert _rebuilt_for_damage(metrics) >= 1


async def test_a_damaged_key_is_noticed_while_it_runs(
    log: SqliteLog, redis: Redis, recorder: Recorder, game: AnyGame
) -> None:
    views = views_of(redis, log)
    match = await recorder.whole("one", game.id, 2)
    keys = views.keys(match.partition)
    async with projecting(log, redis) as (_, metrics):
        await caught_up(views, log)
        await redis.delete(keys.watermark)
        await redis.set(keys.watermark, "nonsense")

        async def noticed() -> bool:
            return _rebuilt_for_damage(metrics) >= 1

        await soon(noticed)
        await caught_up(views, log)
        await assert_equal(views, [match])
        # An index is met at the next commit.
        await redis.delete(keys.matches)
        await redis.set(keys.matches, "nonsense")
        other = next(
            name
            for name in map(str, range(1_000))
            if partition_of(match_id_of(name), log.partitions) == match.partition
        )
        second = await recorder.whole(other, game.id, 2)
        await caught_up(views, log)
        await assert_equal(views, [match, second])


async def test_a_damaged_row_does_not_cost_the_list(
    log: SqliteLog,
    redis: Redis,
    recorder: Recorder,
    game: AnyGame,
    caplog: pytest.LogCaptureFixture,
) -> None:
    left_out: list[int] = []
    views = Views(redis, log.log_id, log.partitions, lambda: left_out.append(1))
    matches = [await recorder.whole(name, game.id, 2) for name in ("one", "two", "three", "four")]
    async with projecting(log, redis):
        await caught_up(views, log)
    for match, summary in zip(matches, (b"\xff{", b'{"match_id": 7}'), strict=False):
        await redis.hset(views.keys(match.partition).match(match.match_id), "summary", summary)
    third = views.keys(matches[2].partition).match(matches[2].match_id)
    await redis.delete(third)
    await redis.set(third, "nonsense")
    for _ in range(2):
        page = await views.list_matches()
        assert [each.match_id for each in page.matches] == [matches[3].match_id]
    assert len(left_out) == 6
    assert len([r for r in caplog.records if "leave match" in r.message]) == 3


async def test_views_past_the_end_of_the_log_are_not_believed(
    log: SqliteLog,
    redis: Redis,
    recorder: Recorder,
    game: AnyGame,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The log lost records (an unclean election, a restored backup): the views go back with it."""
    monkeypatch.setattr(partition_module, "_SHORT_LOG_WAIT_S", 0.01)
    views = views_of(redis, log)
    match = await recorder.create("one", game.id, 2)
    ahead = Watermark(log.log_id, 1000)
    await views.apply(match.partition, None, ahead, Batch(views.keys(match.partition)))
    async with projecting(log, redis) as (_, metrics):

        async def gone_back() -> bool:
            return await views.watermark(match.partition) != ahead

        await soon(gone_back)
        await caught_up(views, log)
        await assert_equal(views, [match])
        assert figure(
            metrics, "diceledger_projection_rebuilds_total", projection="views", cause="log_shorter"
        )


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
