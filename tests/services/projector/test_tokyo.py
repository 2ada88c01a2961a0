"""Whole games of King of Tokyo through log, projector and replay: every view at every step."""

from contextlib import AsyncExitStack

import pytest
from redis.asyncio import Redis

from diceledger.replay.v1 import replay_pb2
from engine import state_hash
from services.common.log.sqlite import SqliteLog
from services.common.metrics import Metrics
from services.common.verify import CheckStatus, Placed, verify_commits
from services.common.viewfold import MatchFold
from services.projector import Projector
from services.replay import ReplayNode
from services.replay.recorded import Library
from tests.services.projector.checking import assert_equal, caught_up, expected_state, views_of
from tests.services.projector.recording import Recorder

GAME = "king_of_tokyo"


@pytest.mark.parametrize("seats", [2, 3, 4, 5, 6])
async def test_a_whole_game(log: SqliteLog, redis: Redis, recorder: Recorder, seats: int) -> None:
    """What is read back from the log folds, step by step, to what was played."""
    views = views_of(redis, log)
    projector = Projector(log=log, redis=redis, metrics=Metrics("projector"))
    node = ReplayNode(log=log, redis=redis, metrics=Metrics("replay"))
    async with AsyncExitStack() as stack:
        for each in (projector, node):
            await each.start()
            stack.push_async_callback(each.close)
        match = await recorder.create(f"tokyo-{seats}", GAME, seats)
        live = [state_hash(match.session.state)] * len(match.commits)
        await recorder.start(match)
        live.append(state_hash(match.session.state))
        while await recorder.answer(match):
            live.append(state_hash(match.session.state))
            if len(match.commits) % 20 == 0:
                await caught_up(views, log)
                await assert_equal(views, [match])
        await caught_up(views, log)
        await assert_equal(views, [match])
        library = Library(log, node._indexes)
        found = await library.find(match.match_id, match.partition, timeout=5)
        whole = MatchFold((-1,))
        for sequence, placed in enumerate(found.commits, 1):
            whole.apply(placed.commit.facts(), final=placed.commit.final)
            if sequence > seats:
                assert state_hash(whole.state(-1)) == live[sequence - 1]
            if sequence % 25 == 0:
                for viewer in range(seats + 1):
                    seen = found.fold(sequence, (viewer,)).state(viewer)
                    assert seen == expected_state(match, viewer, sequence)
        report = verify_commits(found.commits, epoch_at=lambda o: library.epoch_at(found, o))
        assert report.passed
        assert all(check.status is CheckStatus.PASSED for check in report.checks)
        assert report.state_hash == live[-1]


async def test_many_games_at_once_and_a_flushed_redis(
    log: SqliteLog, redis: Redis, recorder: Recorder
) -> None:
    views = views_of(redis, log)
    projector = Projector(log=log, redis=redis, metrics=Metrics("projector"), look_s=0.1)
    await projector.start()
    try:
        for number in range(8):
            match = await recorder.create(f"tokyo-{number}", GAME, 2 + number % 5)
            await recorder.play(match, 40 * number)
        await caught_up(views, log)
        await assert_equal(views, recorder.matches.values())
        await redis.flushall()
        await caught_up(views, log)
        await assert_equal(views, recorder.matches.values())
    finally:
        await projector.close()
    for match in recorder.matches.values():
        pairs = zip(match.offsets, match.commits, strict=True)
        assert verify_commits([Placed(o, c) for o, c in pairs]).passed


def test_the_wire_knows_every_check() -> None:
    """Each way that a check can end has its number on the wire."""
    assert {each.name for each in CheckStatus} == {
        name.removeprefix("CHECK_STATUS_")
        for name in replay_pb2.CheckStatus.keys()  # noqa: SIM118 - an enum wrapper
        if not name.endswith("UNSPECIFIED")
    }
