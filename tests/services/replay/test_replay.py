"""Any match, at any point, for any viewer who may: the service says what the log says."""

import asyncio
import random
from typing import Any

import grpc.aio
import pytest
from redis.asyncio import Redis

from diceledger.replay.v1 import replay_pb2
from engine import MatchCreated, Step, fold, state_hash
from engine.core.game import AnyGame
from services.common.commits import Cause
from services.common.errors import parse_error
from services.common.factcodec import state_from_any
from services.common.log.sqlite import SqliteLog
from services.common.metrics import Metrics
from services.common.redaction import check_redacted_chain, restore_facts
from services.common.verify import CheckStatus, verify_file
from services.common.views import Batch
from services.replay import ReplayNode
from services.replay.index import PartitionIndex
from services.replay.recorded import Library
from tests.services.projector.checking import caught_up, expected_state, views_of
from tests.services.projector.recording import Recorder, Recording, match_id_of
from tests.services.replay.conftest import Stub, as_caller

pytestmark = pytest.mark.usefixtures("game")

HOST = as_caller("host")
ARBITER = as_caller("judge", "arbiter")
EVERYTHING = replay_pb2.Viewer(everything=True)
PASSED = replay_pb2.CHECK_STATUS_PASSED
FAILED = replay_pb2.CHECK_STATUS_FAILED
NOT_APPLICABLE = replay_pb2.CHECK_STATUS_NOT_APPLICABLE


def seat(number: int) -> replay_pb2.Viewer:
    """The eyes of a seat; 0: of spectators."""
    return replay_pb2.Viewer(seat=number) if number else replay_pb2.Viewer(spectator=True)


async def refused(call: Any) -> str:
    """The reason for which a call is refused."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        if hasattr(call, "__aiter__"):
            async for _ in call:
                pass
        else:
            await call
    return parse_error(caught.value).reason


def checks_of(response: replay_pb2.VerifyMatchResponse) -> dict[str, replay_pb2.Check]:
    """The checks by name."""
    return {check.check: check for check in response.checks}


async def test_states_equal_the_live_fold_at_every_sequence(
    stub: Stub, recorder: Recorder, game: AnyGame
) -> None:
    match = await recorder.whole("one", game.id, 3)
    for sequence in range(1, len(match.commits) + 1):
        for viewer in range(4):
            request = replay_pb2.GetStateRequest(
                match_id=match.match_id, sequence=sequence, viewer=seat(viewer)
            )
            response = await stub.GetState(request, metadata=HOST)
            right = expected_state(match, viewer, sequence)
            assert state_from_any(response.state) == right
            assert response.state_hash == state_hash(right)
            assert response.sequence == sequence
            assert response.last_sequence == len(match.commits)
            assert response.commit_hash == match.commits[sequence - 1].hash
        facts = [fact for commit in match.commits[:sequence] for fact in commit.facts()]
        request = replay_pb2.GetStateRequest(
            match_id=match.match_id, sequence=sequence, viewer=EVERYTHING
        )
        whole = await stub.GetState(request, metadata=HOST)
        assert whole.state_hash == state_hash(fold(facts))


async def test_players_of_a_running_match_see_their_own_view_at_once(
    stub: Stub, recorder: Recorder, game: AnyGame
) -> None:
    """Also right after a commit: the service reads to the end of the log first."""
    match = await recorder.create("one", game.id, 3)
    await recorder.start(match)
    while match.session.state.status == "running":
        for viewer in range(4):
            subject = f"player-{viewer}" if viewer else "onlooker"
            request = replay_pb2.GetStateRequest(match_id=match.match_id)
            response = await stub.GetState(request, metadata=as_caller(subject))
            assert response.sequence == len(match.commits)
            assert state_from_any(response.state) == expected_state(match, viewer)
        await recorder.answer(match)


async def test_who_may_look_through_whose_eyes(
    stub: Stub, recorder: Recorder, game: AnyGame
) -> None:
    match = await recorder.create("one", game.id, 3)
    await recorder.play(match, 2)
    request = replay_pb2.GetStateRequest(match_id=match.match_id)
    seated_judge = as_caller("player-2", "player", "arbiter")
    allowed = [
        (as_caller("player-1"), seat(1)),
        (as_caller("player-1"), seat(0)),
        (as_caller("anybody"), seat(0)),
        (ARBITER, seat(2)),
        (ARBITER, EVERYTHING),
        (seated_judge, seat(2)),
    ]
    refusals = [
        (as_caller("player-1"), seat(2), "ROLE_REQUIRED"),
        (as_caller("player-1"), EVERYTHING, "ROLE_REQUIRED"),
        (HOST, seat(1), "ROLE_REQUIRED"),
        (as_caller("boss", "operator"), EVERYTHING, "ROLE_REQUIRED"),
        (seated_judge, seat(1), "ROLE_REQUIRED"),
        (seated_judge, EVERYTHING, "ROLE_REQUIRED"),
        (ARBITER, seat(4), "BAD_VIEWER"),
        (ARBITER, replay_pb2.Viewer(seat=-1), "BAD_VIEWER"),
    ]
    for metadata, eyes in allowed:
        request.viewer.CopyFrom(eyes)
        assert (await stub.GetState(request, metadata=metadata)).sequence == len(match.commits)
    for metadata, eyes, reason in refusals:
        request.viewer.CopyFrom(eyes)
        assert await refused(stub.GetState(request, metadata=metadata)) == reason
        span = replay_pb2.StreamReplayRequest(match_id=match.match_id, viewer=eyes)
        assert await refused(stub.StreamReplay(span, metadata=metadata)) == reason
    await recorder.play(match)
    for metadata, eyes, reason in refusals:
        request.viewer.CopyFrom(eyes)
        if reason == "ROLE_REQUIRED":
            assert (await stub.GetState(request, metadata=metadata)).last_sequence


async def test_requests_that_cannot_be_answered(
    stub: Stub, recorder: Recorder, game: AnyGame
) -> None:
    match = await recorder.create("one", game.id, 3)
    state, span = replay_pb2.GetStateRequest, replay_pb2.StreamReplayRequest
    unknown = match_id_of("nobody plays this")
    last = len(match.commits)
    for reason, call in (
        ("MATCH_NOT_FOUND", stub.GetState(state(match_id=unknown), metadata=HOST)),
        ("BAD_MATCH_ID", stub.GetState(state(match_id="UPPER"), metadata=HOST)),
        ("BAD_MATCH_ID", stub.GetState(state(), metadata=HOST)),
        ("TOKEN_MISSING", stub.GetState(state(match_id=unknown))),
        (
            "SEQUENCE_OUT_OF_RANGE",
            stub.GetState(state(match_id=match.match_id, sequence=last + 1), metadata=HOST),
        ),
        (
            "BAD_SEQUENCE",
            stub.GetState(state(match_id=match.match_id, sequence=-1), metadata=HOST),
        ),
        (
            "BAD_SEQUENCE",
            stub.StreamReplay(
                span(match_id=match.match_id, from_sequence=3, to_sequence=2), metadata=HOST
            ),
        ),
        (
            "BAD_SEQUENCE",
            stub.StreamReplay(span(match_id=match.match_id, from_sequence=-3), metadata=HOST),
        ),
        (
            "SEQUENCE_OUT_OF_RANGE",
            stub.StreamReplay(span(match_id=match.match_id, to_sequence=last + 1), metadata=HOST),
        ),
        (
            "MATCH_NOT_FOUND",
            stub.VerifyMatch(replay_pb2.VerifyMatchRequest(match_id=unknown), metadata=HOST),
        ),
        (
            "MATCH_NOT_FOUND",
            stub.ExportMatch(replay_pb2.ExportMatchRequest(match_id=unknown), metadata=HOST),
        ),
    ):
        assert await refused(call) == reason


async def test_a_replay_tells_what_happened_and_can_be_checked(
    stub: Stub, recorder: Recorder, game: AnyGame
) -> None:
    match = await recorder.whole("one", game.id, 3)
    for viewer in range(4):
        previous = b""
        told: list[str] = []
        request = replay_pb2.StreamReplayRequest(match_id=match.match_id, viewer=seat(viewer))
        sequence = 0
        async for response in stub.StreamReplay(request, metadata=HOST):
            sequence += 1
            assert response.sequence == sequence
            previous = check_redacted_chain(
                previous, response.commit, match_id=match.match_id, sequence=sequence
            )
            assert response.state_hash == state_hash(expected_state(match, viewer, sequence))
            told += response.lines
            if sequence == 1:
                assert isinstance(restore_facts(response.commit)[0], MatchCreated)
        assert sequence == len(match.commits)
        assert "Player 1 takes seat 1." in told
        hidden = [line for line in told if "something hidden" in line]
        assert hidden
        assert not [line for line in hidden if viewer and line.startswith(f"Player {viewer} ")]
    span = replay_pb2.StreamReplayRequest(
        match_id=match.match_id, from_sequence=2, to_sequence=4, viewer=EVERYTHING
    )
    part = [each async for each in stub.StreamReplay(span, metadata=as_caller("x", locale="zh"))]
    assert [each.sequence for each in part] == [2, 3, 4]
    assert part[0].lines == ["Player 1 坐到 1 号位。"]


async def test_verification_passes_at_every_stage(
    stub: Stub, recorder: Recorder, game: AnyGame
) -> None:
    match = await recorder.create("one", game.id, 3)
    request = replay_pb2.VerifyMatchRequest(match_id=match.match_id)
    await recorder.start(match)
    while True:
        response = await stub.VerifyMatch(request, metadata=HOST)
        checks = checks_of(response)
        assert response.passed, response
        assert response.last_sequence == len(match.commits)
        assert response.state_hash == state_hash(match.session.state)
        for name, count in (
            ("chain", len(match.commits)),
            ("admission", len(match.commits)),
            ("rules", len(match.facts)),
            ("read_model", 4),
        ):
            assert (checks[name].status, checks[name].count) == (PASSED, count), name
        finished = match.session.state.status == "finished"
        assert checks["dice"].status == (PASSED if finished else NOT_APPLICABLE)
        if await recorder.answer(match) is None:
            break


async def test_verification_notices_a_wrong_read_model(
    stub: Stub, redis: Redis, log: SqliteLog, recorder: Recorder, game: AnyGame
) -> None:
    match = await recorder.create("one", game.id, 3)
    await recorder.play(match, 4)
    views = views_of(redis, log)
    await caught_up(views, log)
    request = replay_pb2.VerifyMatchRequest(match_id=match.match_id)
    key = views.keys(match.partition).match(match.match_id)
    good: dict[Any, Any] = dict(await redis.hgetall(key))
    wrong: list[tuple[dict[Any, Any], str]] = [
        ({b"seat:2": good[b"seat:1"]}, "seat 2"),
        ({b"spectator": good[b"seat:1"]}, "spectators"),
        ({b"hash": b"x" * 32}, "another hash"),
        ({b"seat:9": good[b"seat:1"]}, "does not have"),
        ({b"sequence": b"5"}, "at commit 5 of"),
        ({b"parked": b"because"}, "because"),
    ]
    for changes, words in wrong:
        await redis.hset(key, mapping=changes)
        response = await stub.VerifyMatch(request, metadata=HOST)
        check = checks_of(response)["read_model"]
        assert not response.passed
        assert check.status == FAILED
        assert words in check.finding
        await redis.delete(key)
        await redis.hset(key, mapping=good)
    await redis.delete(key)
    assert not (await stub.VerifyMatch(request, metadata=HOST)).passed
    await redis.hset(key, mapping=good)
    assert (await stub.VerifyMatch(request, metadata=HOST)).passed


async def test_verification_without_a_read_model_to_compare(
    stub: Stub, redis: Redis, log: SqliteLog, node: ReplayNode, recorder: Recorder, game: AnyGame
) -> None:
    match = await recorder.create("one", game.id, 3)
    views = views_of(redis, log)
    await caught_up(views, log)
    mark = await views.watermark(match.partition)
    assert mark is not None
    newer = type(mark)(log.log_id, mark.offset, version=99)
    await views.apply(match.partition, mark, newer, Batch(views.keys(match.partition)))
    request = replay_pb2.VerifyMatchRequest(match_id=match.match_id)
    response = await stub.VerifyMatch(request, metadata=HOST)
    assert checks_of(response)["read_model"].status == NOT_APPLICABLE
    assert "not compared" in checks_of(response)["read_model"].finding


async def test_findings_keep_the_secrets_of_a_running_match(
    stub: Stub, recorder: Recorder, game: AnyGame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rules are made to disagree with the log; only those who may see it all are told more."""
    match = await recorder.create("one", game.id, 3)
    await recorder.play(match, 2)
    turn = game.turn

    async def other_rules(table: Any) -> None:
        table.chance("another card", 10)
        await turn(table)

    monkeypatch.setattr(game, "turn", other_rules)
    request = replay_pb2.VerifyMatchRequest(match_id=match.match_id)
    for metadata, shown in ((HOST, False), (as_caller("player-1"), False), (ARBITER, True)):
        response = await stub.VerifyMatch(request, metadata=metadata)
        check = checks_of(response)["rules"]
        assert not response.passed
        assert (check.status, check.sequence) == (FAILED, 5)
        assert ("RoundBegan(" in check.finding) is shown
        assert "round_began" in check.finding or shown


async def test_an_export_verifies_offline(stub: Stub, recorder: Recorder, game: AnyGame) -> None:
    match = await recorder.create("one", game.id, 4)
    await recorder.play(match, 3)
    request = replay_pb2.ExportMatchRequest(match_id=match.match_id)
    assert await refused(stub.ExportMatch(request, metadata=HOST)) == "MATCH_NOT_FINISHED"
    seated = as_caller("player-1", "arbiter")
    assert await refused(stub.ExportMatch(request, metadata=seated)) == "MATCH_NOT_FINISHED"
    running = await exported(stub, match, ARBITER)
    report = verify_file(running)
    assert report.passed
    assert report.check("dice").status is CheckStatus.NOT_APPLICABLE
    await recorder.play(match)
    report = verify_file(await exported(stub, match, HOST))
    assert report.passed
    assert report.last_sequence == len(match.commits)
    assert report.state_hash == state_hash(match.session.state)
    passed = {c.check: c.count for c in report.checks if c.status is CheckStatus.PASSED}
    assert passed.keys() == {"file", "chain", "admission", "rules", "dice"}
    assert passed["file"] == len(match.commits) + 2


async def exported(stub: Stub, match: Recording, metadata: Any) -> bytes:
    """The match as a file."""
    request = replay_pb2.ExportMatchRequest(match_id=match.match_id)
    chunks = [each.chunk async for each in stub.ExportMatch(request, metadata=metadata)]
    assert all(len(chunk) <= 64 * 1024 for chunk in chunks)
    return b"".join(chunks)


async def test_void_records_are_no_part_of_a_replay(
    stub: Stub, log: SqliteLog, recorder: Recorder, game: AnyGame
) -> None:
    match = await recorder.create("one", game.id, 3)
    await recorder.play(match, 2)
    partition = match.partition
    late = match.make(
        Step(match.commits[-1].facts(), ()), Cause(request_id="late", actor="player-1")
    )
    await log.append(partition, b"", match.commits[1].value)
    await recorder.release(partition)
    # Fits in every way, but nobody owned the partition then.
    await log.append(partition, b"", late.value)
    await recorder.claim(partition, "another")
    await log.append(partition, b"", late.value)
    await log.append(partition, b"", b"garbage " + match.match_id.encode())
    await recorder.play(match)
    request = replay_pb2.VerifyMatchRequest(match_id=match.match_id)
    response = await stub.VerifyMatch(request, metadata=HOST)
    assert response.passed
    assert response.last_sequence == len(match.commits)
    assert response.state_hash == state_hash(match.session.state)


async def test_the_cache_is_bounded_and_grows_with_a_running_match(
    log: SqliteLog, recorder: Recorder, game: AnyGame
) -> None:
    matches = [await recorder.whole(f"m{n}", game.id, 3) for n in range(6)]
    running = await recorder.create("running", game.id, 3)
    await recorder.start(running)
    node = ReplayNode(log=log, redis=None, metrics=Metrics("replay"))  # type: ignore[arg-type]  # unused
    await node.start()
    try:
        sizes = [6 * sum(len(c.value) for c in match.commits) for match in matches]
        library = Library(log, node._indexes, cache_bytes=2 * max(sizes))
        dice = random.Random(1)
        for _ in range(40):
            match = dice.choice(matches)
            found = await library.find(match.match_id, match.partition, timeout=5)
            assert [p.commit.hash for p in found.commits] == [c.hash for c in match.commits]
            assert [p.offset for p in found.commits] == match.offsets
            assert library._cached == sum(each.size for each in library._cache.values())
            assert library._cached <= 2 * max(sizes)
            await recorder.answer(running)
            found = await library.find(running.match_id, running.partition, timeout=5)
            assert [p.offset for p in found.commits] == running.offsets
    finally:
        await node.close()


async def test_a_partition_that_cannot_be_read_to_its_end(
    stub: Stub, node: ReplayNode, log: SqliteLog, recorder: Recorder, game: AnyGame
) -> None:
    """What was read is still served; what may lie behind the unreadable record is not guessed."""
    match = await recorder.whole("one", game.id, 2)
    state = replay_pb2.GetStateRequest(match_id=match.match_id)
    assert (await stub.GetState(state, metadata=HOST)).sequence == len(match.commits)
    await log.append(match.partition, b"", b"\x08\x63")
    unknown = next(
        match_id
        for n in range(100)
        if views_of(None, log).partition_of(match_id := match_id_of(f"u{n}")) == match.partition  # type: ignore[arg-type]  # only counts
    )
    state.match_id = unknown
    assert await refused(stub.GetState(state, metadata=HOST)) == "LOG_UNAVAILABLE"
    assert not node.healthy
    state.match_id = match.match_id
    assert (await stub.GetState(state, metadata=HOST)).sequence == len(match.commits)


async def test_epochs_by_offset(log: SqliteLog, recorder: Recorder) -> None:
    index = PartitionIndex(log, 0)
    for writer in ("a", "b"):
        await recorder.claim(0, writer)
    await recorder.release(0)
    await recorder.claim(0, "c")
    task = asyncio.create_task(index.run())
    await index.catch_up(5)
    assert [index.epoch_at(offset) for offset in range(6)] == [0, 1, 2, 0, 4, 4]
    task.cancel()
