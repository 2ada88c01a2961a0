"""What a projector does with records and rows that are damaged, foreign, older or newer."""

from collections.abc import Sequence

import pytest
from redis.asyncio import Redis

from engine import Fact, MatchStarted, Seat, Step
from engine.core.game import AnyGame
from services.common.commits import Cause
from services.common.log.port import partition_of
from services.common.log.sqlite import SqliteLog
from services.common.metrics import Metrics
from services.common.viewfold import MatchFold
from services.common.views import (
    Batch,
    Views,
    ViewsRebuilding,
    Watermark,
)
from services.projector import partition as partition_module
from tests.engine.high_roll import PointTaken
from tests.services.projector.checking import assert_equal, caught_up, dump, soon, views_of
from tests.services.projector.recording import Recorder, match_id_of
from tests.services.projector.running import figure, projecting, row_of, stopped

pytestmark = pytest.mark.usefixtures("game")


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
        row = await row_of(views, bad.match_id)
        assert "commit 5 cannot be folded" in row.parked
        assert row.sequence == len(bad.commits) == 4
        for match in others:
            shown = await row_of(views, match.match_id)
            assert shown.sequence == len(match.commits) and not shown.parked
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
            row = await row_of(views, match.match_id)
            assert row.parked and row.sequence == 3
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


async def spoil(redis: Redis, key: str) -> None:
    """Put something of another type under the name of a key."""
    await redis.delete(key)
    await redis.set(key, "nonsense")


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
    await spoil(redis, others.get(name) or getattr(keys, name))
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
        await spoil(redis, keys.watermark)

        async def noticed() -> bool:
            return _rebuilt_for_damage(metrics) >= 1

        await soon(noticed)
        await caught_up(views, log)
        await assert_equal(views, [match])
        # An index is met at the next commit.
        await spoil(redis, keys.matches)
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
    await spoil(redis, views.keys(matches[2].partition).match(matches[2].match_id))
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
