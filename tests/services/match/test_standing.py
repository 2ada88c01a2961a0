"""Standing answers, and matches that never begin."""

import asyncio
from typing import Any

import pytest

from diceledger.match.v1 import match_pb2
from engine import Answer, Answered, MatchEnded, SeedRevealed, StandingAnswerSet
from services.common.commits import How
from services.common.errors import ApiError
from services.common.log.sqlite import SqliteLog
from services.common.prompts_wire import answer_to_wire
from services.common.verify import verify_commits
from services.match.standing import CHANGES_PER_TURN_MAX
from tests.services.match.serving import (
    LIMITS,
    Player,
    Process,
    Shares,
    admitted,
    begin,
    cause_of,
    new_id,
    placed,
    play_out,
    process,
    refused,
    size,
)


async def set_standing(player: Player, match_id: str, *picks: str, **fields: Any) -> Any:
    """The player leaves these picks as a standing answer; none of them drops it."""
    answer = answer_to_wire(Answer(picks=picks)) if picks else None
    fields = {"request_id": new_id(), "kind": "swap", "answer": answer, **fields}
    request = match_pb2.SetStandingAnswerRequest(match_id=match_id, **fields)
    return await player.call("SetStandingAnswer", request)


async def _abandon(player: Player, match_id: str, **fields: Any) -> Any:
    fields = {"request_id": new_id(), **fields}
    request = match_pb2.AbandonMatchRequest(match_id=match_id, **fields)
    return await player.call("AbandonMatch", request)


async def test_a_standing_answer(log: SqliteLog, here: Process) -> None:
    """It answers what is open and what comes; only its seat sees it; the match verifies."""
    match = await begin(here)
    ann, bob = match.players
    receipt = (await set_standing(ann, match.match_id, "keep", request_id="s")).receipt
    assert receipt.sequence == match.sequence + 1
    assert await ann.prompts(match.match_id) == []
    for _ in range(2):
        (prompt,) = await bob.prompts(match.match_id)
        await bob.answer(match.match_id, prompt.prompt_id, "keep")
        if (await admitted(log))[match.match_id][-1].final:
            break
        assert await ann.prompts(match.match_id) == []
    commits = (await admitted(log))[match.match_id]
    standing = commits[match.sequence]
    assert [type(fact) for fact in standing.facts()[:2]] == [StandingAnswerSet, Answered]
    assert (cause_of(standing).command, cause_of(standing).seat) == ("standing", 1)
    seen = (await bob.updates(match.match_id, receipt.sequence, until=receipt.sequence))[0]
    again = (await set_standing(ann, match.match_id, "keep", request_id="s")).receipt
    assert again == receipt
    if not commits[-1].final:
        assert not seen.commit.HasField("cause")
        # Dropped, the seat is asked again.
        await set_standing(ann, match.match_id)
        await play_out(match)
    report = verify_commits(await placed(log, match.match_id))
    assert report.passed, report


async def test_standing_answers_that_are_refused(log: SqliteLog, here: Process) -> None:
    """Each refusal has its reason and writes nothing."""
    match = await begin(here)
    ann = match.players[0]
    lobby = await ann.create()
    before = await size(log)
    cases = {
        "NOT_A_PLAYER": set_standing(here.player("zoe"), match.match_id, "keep"),
        "MATCH_NOT_FOUND": set_standing(ann, "a" * 26, "keep"),
        "BAD_STANDING_ANSWER": set_standing(ann, match.match_id, "keep", kind=""),
        "BAD_STANDING_ANSWER below": set_standing(ann, match.match_id, "keep", below=-1),
        "ILLEGAL_ANSWER": set_standing(ann, match.match_id, answer=match_pb2.Answer()),
        "NOT_A_PLAYER lobby": set_standing(ann, lobby.match_id, "keep"),
    }
    for name, call in cases.items():
        with pytest.raises(ApiError) as error:
            await call
        assert refused(error) == name.partition(" ")[0]
    await set_standing(ann, match.match_id, "keep", request_id="s")
    with pytest.raises(ApiError) as error:
        await set_standing(ann, match.match_id, "swap", request_id="s")
    assert refused(error) == "REQUEST_ID_REUSED"
    assert await size(log) == before + 1


async def test_changes_of_standing_answers_are_bounded(log: SqliteLog) -> None:
    """What changes nothing or answers nothing is refused, and so are many changes in one turn; the
    process that takes the match over decides alike."""
    async with process(log) as here:
        match = await begin(here)
        ann = match.players[0]
        before = await size(log)
        for fields in ({"kind": "nope"}, {"answer": None}):
            with pytest.raises(ApiError) as error:
                await set_standing(ann, match.match_id, "keep", **fields)
            assert refused(error) == "BAD_STANDING_ANSWER"
        with pytest.raises(ApiError) as error:
            await set_standing(ann, match.match_id, "keep", "keep")
        assert refused(error) == "BAD_STANDING_ANSWER"
        assert await size(log) == before
        # Not legal for what is open: the match does not move on.
        for number in range(CHANGES_PER_TURN_MAX - 1):
            await set_standing(ann, match.match_id, f"a{number % 2}")
        with pytest.raises(ApiError) as error:
            await set_standing(ann, match.match_id, "a0")
        assert refused(error) == "BAD_STANDING_ANSWER"
    async with process(log) as here:
        ann, bob = (here.player(player.subject) for player in match.players)
        await set_standing(ann, match.match_id, "a1")
        before = await size(log)
        with pytest.raises(ApiError) as error:
            await set_standing(ann, match.match_id, "a0")
        assert refused(error) == "TOO_MANY_CHANGES"
        assert await size(log) == before
        await set_standing(bob, match.match_id, "a0")
        for player in (ann, bob):
            (prompt,) = await player.prompts(match.match_id)
            await player.answer(match.match_id, prompt.prompt_id, "keep")
        # The next turn has come.
        await set_standing(ann, match.match_id, "a0")
    report = verify_commits(await placed(log, match.match_id))
    assert report.passed, report


async def test_a_host_abandons_a_lobby(log: SqliteLog, here: Process) -> None:
    """Only the host, only before the start; everybody sees the end, the seed is shown."""
    ann, bob = here.player("ann"), here.player("bob")
    created = await ann.create()
    await bob.join(created.match_id)
    watching = asyncio.create_task(bob.updates(created.match_id))
    with pytest.raises(ApiError) as error:
        await _abandon(bob, created.match_id)
    assert refused(error) == "NOT_HOST"
    done = await _abandon(ann, created.match_id, request_id="x")
    assert await _abandon(ann, created.match_id, request_id="x") == done
    updates = await watching
    assert updates[-1].status == match_pb2.MATCH_STATUS_FINISHED
    assert updates[-1].sequence == done.receipt.sequence == 3
    with pytest.raises(ApiError) as error:
        await ann.join(created.match_id)
    assert refused(error) == "MATCH_FINISHED"
    last = (await admitted(log))[created.match_id][-1]
    assert last.final
    assert [type(fact) for fact in last.facts()] == [SeedRevealed, MatchEnded]
    report = verify_commits(await placed(log, created.match_id))
    assert report.passed, report
    running = await begin(here)
    with pytest.raises(ApiError) as error:
        await _abandon(running.players[0], running.match_id)
    assert refused(error) == "NOT_IN_LOBBY"


async def test_a_lobby_that_never_begins(log: SqliteLog) -> None:
    """It ends by itself, some time after the last player sat down, and gives its place back."""
    limits = LIMITS.__class__(lobby_s=1.5, matches_per_host=1, takeover_grace_s=0.1)
    async with process(log, limits=limits) as here:
        ann = here.player("ann")
        created = await ann.create()
        await ann.join(created.match_id)
        updates = await ann.updates(created.match_id)
        assert updates[-1].status == match_pb2.MATCH_STATUS_FINISHED
        started = await begin(here)
        await asyncio.sleep(1.7)
        # A match that has begun has no such end.
        assert len((await admitted(log))[started.match_id]) == started.sequence
    commits = (await admitted(log))[created.match_id]
    opened, joined, ended = commits
    assert joined.deadline_ms >= opened.deadline_ms > 0
    assert (cause_of(ended).how, cause_of(ended).command) == (How.TIMEOUT, "abandon")
    assert (cause_of(ended).actor, cause_of(ended).request_id) == ("", "timeout:lobby")
    assert (await admitted(log))[started.match_id][-1].deadline_ms == 0
    report = verify_commits(await placed(log, created.match_id))
    assert report.passed, report


async def test_through_another_process(log: SqliteLog) -> None:
    """Both calls are passed on to the owner."""
    hints: dict[int, str] = {}
    async with (
        process(log, ownership=Shares(range(log.partitions), hints)) as owner,
        process(log, ownership=Shares((), hints)) as other,
    ):
        assert owner.address in hints.values()
        match = await begin(other)
        set_at = (await set_standing(match.players[0], match.match_id, "keep")).receipt.sequence
        assert set_at == match.sequence + 1
        lobby = await match.players[0].create()
        assert (await _abandon(match.players[0], lobby.match_id)).receipt.sequence == 2
