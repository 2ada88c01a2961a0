"""Commands: what is accepted, what is refused, and that each request counts once."""

import asyncio

import pytest

from diceledger.match.v1 import match_pb2
from services.common.errors import ApiError
from services.common.log.sqlite import SqliteLog
from tests.services.match.serving import (
    Begun,
    FaultyLog,
    Process,
    admitted,
    answering,
    begin,
    new_id,
    play_out,
    process,
    refused,
    size,
)


async def test_a_match_is_played_to_its_end(log: SqliteLog, here: Process) -> None:
    """Create, join, start, answer: one commit each, the last one final."""
    match = await begin(here)
    last = await play_out(match)
    commits = (await admitted(log))[match.match_id]
    assert [commit.sequence for commit in commits] == list(range(1, last + 1))
    assert commits[-1].final
    assert [c.cause.command for c in commits[:4] if c.cause] == ["create", "join", "join", "start"]


async def test_a_receipt_names_the_commit(log: SqliteLog, here: Process) -> None:
    """Sequence and position of a receipt are those of the record in the log."""
    ann = here.player("ann")
    created = await ann.create()
    joined = await ann.join(created.match_id, seat=2)
    partition, offset = map(int, joined.receipt.position.split(":"))
    (record,) = [r async for r in log.read(partition, offset, offset + 1)]
    assert record.key == created.match_id.encode()
    assert joined.receipt.sequence == 2
    assert joined.seat == 2


async def test_the_same_request_gives_the_same_reply(log: SqliteLog, here: Process) -> None:
    """A repeated request id has no further effect, for any command."""
    ann, bob = here.player("ann"), here.player("bob")
    created = await ann.create(request_id="c")
    assert await ann.create(request_id="c") == created
    joined = await ann.join(created.match_id, request_id="j")
    assert await ann.join(created.match_id, request_id="j") == joined
    await bob.join(created.match_id, request_id="j")
    started = await ann.start(created.match_id, request_id="s")
    assert await ann.start(created.match_id, request_id="s") == started
    (prompt,) = await ann.prompts(created.match_id)
    request = answering(created.match_id, prompt.prompt_id, "keep", request_id="a")
    answered = await ann.call("SubmitAnswer", request)
    before = await size(log)
    assert await ann.call("SubmitAnswer", request) == answered
    assert await ann.join(created.match_id, request_id="j") == joined
    assert await size(log) == before


async def test_repeated_after_the_end(log: SqliteLog, here: Process) -> None:
    """The last answer's reply can be had again although the match is over."""
    match = await begin(here)
    await play_out(match)
    commit = (await admitted(log))[match.match_id][-1]
    assert commit.cause is not None
    player = next(p for p in match.players if p.subject == commit.cause.actor)
    request = match_pb2.SubmitAnswerRequest(
        request_id=commit.cause.request_id,
        match_id=match.match_id,
        prompt_id=commit.cause.prompt_id,
        answer=match_pb2.Answer.FromString(commit.cause.answer),
    )
    again = await player.call("SubmitAnswer", request)
    assert again.receipt.sequence == commit.sequence


async def test_another_content_under_the_same_id(log: SqliteLog, here: Process) -> None:
    """A request id that was used for something else is refused."""
    ann = here.player("ann")
    created = await ann.create(request_id="c")
    before = await size(log)
    with pytest.raises(ApiError) as error:
        await ann.create(seats=3, request_id="c")
    assert refused(error) == "REQUEST_ID_REUSED"
    await ann.join(created.match_id, request_id="j", seat=1)
    with pytest.raises(ApiError) as error:
        await ann.join(created.match_id, request_id="j", seat=2)
    assert refused(error) == "REQUEST_ID_REUSED"
    assert await size(log) == before + 1


async def test_the_same_request_many_times_at_once(log: SqliteLog, here: Process) -> None:
    """All callers of one request in flight get its one result."""
    ann = here.player("ann")
    replies = await asyncio.gather(*(ann.create(request_id="c") for _ in range(20)))
    assert all(reply == replies[0] for reply in replies)
    joins = await asyncio.gather(
        *(ann.join(replies[0].match_id, request_id="j") for _ in range(20))
    )
    assert all(reply == joins[0] for reply in joins)
    commits = (await admitted(log))[replies[0].match_id]
    assert len(commits) == 2


async def test_ids_of_two_callers_do_not_meet(here: Process) -> None:
    """Request ids are the caller's own."""
    ann, bob = here.player("ann"), here.player("bob")
    first, second = await ann.create(request_id="c"), await bob.create(request_id="c")
    assert first.match_id != second.match_id


async def test_many_seats_at_once(log: SqliteLog, here: Process) -> None:
    """Concurrent joins get different seats; who comes too late is refused."""
    created = await here.player("host").create(seats=3)
    players = [here.player(f"p{number}") for number in range(6)]
    results = await asyncio.gather(
        *(player.join(created.match_id) for player in players), return_exceptions=True
    )
    seats = sorted(r.seat for r in results if isinstance(r, match_pb2.JoinMatchResponse))
    assert seats == [1, 2, 3]
    assert [r.reason for r in results if isinstance(r, ApiError)] == ["MATCH_FULL"] * 3


async def test_a_caller_who_goes_away(log: SqliteLog) -> None:
    """A cancelled or timed-out call loses nothing and doubles nothing."""
    slow = FaultyLog(log)
    async with process(slow) as here:
        ann = here.player("ann")
        created = await ann.create()
        request = match_pb2.JoinMatchRequest(request_id="j", match_id=created.match_id)
        slow.faults = ["hold"]
        cancelled = ann.stub.JoinMatch(request, metadata=ann.metadata)
        with pytest.raises(ApiError) as error:
            await ann.call("JoinMatch", request, timeout=0.1)
        assert refused(error) == "DEADLINE_EXCEEDED"
        cancelled.cancel()
        waiting = asyncio.create_task(ann.call("JoinMatch", request))
        await asyncio.sleep(0.05)
        slow.release.set()
        joined = await waiting
        assert await ann.call("JoinMatch", request) == joined
    commits = (await admitted(log))[created.match_id]
    assert [c.cause.command for c in commits if c.cause] == ["create", "join"]


async def _lobby(here: Process) -> tuple[str, Begun]:
    created = await here.player("ann").create()
    await here.player("ann").join(created.match_id)
    return created.match_id, await begin(here, ("cid", "dan"))


async def test_what_is_refused(log: SqliteLog, here: Process) -> None:
    """Every refusal has its documented reason, and writes nothing."""
    lobby, running = await _lobby(here)
    over = await begin(here, ("eve", "fay"))
    await play_out(over)
    ann, bob, cid, dan = (here.player(name) for name in ("ann", "bob", "cid", "dan"))
    (mine,) = await cid.prompts(running.match_id)
    (other,) = await dan.prompts(running.match_id)
    unknown = "a" * 26
    cases = {
        "BAD_REQUEST_ID": ann.create(request_id=""),
        "BAD_MATCH_ID": ann.join("nonsense"),
        "BAD_SEAT_COUNT 0": ann.create(0),
        "BAD_SEAT_COUNT 1": ann.create(1),
        "BAD_SEAT_COUNT 7": ann.create(7),
        "UNKNOWN_GAME": ann.create(game="chess"),
        "UNKNOWN_OPTION": ann.create(options={"colour": "red"}),
        "UNKNOWN_OPTION preset": ann.create(preset="slow"),
        "UNKNOWN_OPTION expansion": ann.create(expansions=["seas"]),
        "BAD_OPTION_VALUE": ann.create(options={"deck": "huge"}),
        "BAD_TIMEOUT": ann.create(answer_timeout_seconds=-1),
        "BAD_ENTROPY": bob.join(lobby, entropy=b"short"),
        "BAD_NAME": bob.join(lobby, name="x" * 41),
        "BAD_NAME blank": bob.join(lobby, name="\u200b\n"),
        "BAD_SEAT": bob.join(lobby, seat=-1),
        "BAD_SEAT beyond the table": bob.join(lobby, seat=9),
        "SEAT_TAKEN": bob.join(lobby, seat=1),
        "ALREADY_SEATED": ann.join(lobby),
        "NOT_ENOUGH_PLAYERS": ann.start(lobby),
        "NOT_HOST": bob.start(lobby),
        "MATCH_NOT_STARTED": ann.answer(lobby, "p1", "keep"),
        "NOT_IN_LOBBY": bob.join(running.match_id),
        "NOT_IN_LOBBY start": cid.start(running.match_id),
        "NOT_A_PLAYER": bob.answer(running.match_id, mine.prompt_id, "keep"),
        "NOT_YOUR_PROMPT": cid.answer(running.match_id, other.prompt_id, "keep"),
        "PROMPT_CLOSED": cid.answer(running.match_id, "p999", "keep"),
        "ILLEGAL_ANSWER": cid.answer(running.match_id, mine.prompt_id, "fold"),
        "ILLEGAL_ANSWER none": cid.answer(running.match_id, mine.prompt_id),
        "ILLEGAL_ANSWER form": cid.call(
            "SubmitAnswer",
            match_pb2.SubmitAnswerRequest(
                request_id="x", match_id=running.match_id, prompt_id=mine.prompt_id
            ),
        ),
        "BAD_REQUEST": cid.answer(running.match_id, "prompt one", "keep"),
        "MATCH_NOT_FOUND": ann.join(unknown),
        "MATCH_NOT_FOUND answer": ann.answer(unknown, "p1", "keep"),
        "MATCH_FINISHED": here.player("eve").answer(over.match_id, "p1", "keep"),
        "MATCH_FINISHED join": ann.join(over.match_id),
        "ROLE_REQUIRED": here.player("zoe", roles=["arbiter"]).create(),
    }
    before = await size(log)
    reasons = {}
    for name, call in cases.items():
        with pytest.raises(ApiError) as error:
            await call
        reasons[name] = refused(error)
    assert reasons == {name: name.partition(" ")[0] for name in cases}
    assert await size(log) == before
    # The match goes on.
    await cid.answer(running.match_id, mine.prompt_id, "keep")


async def test_a_refusal_names_the_field_and_the_legal_choices(here: Process) -> None:
    """A client that picks wrongly is told where, and what would be right."""
    match = await begin(here)
    (prompt,) = await match.players[0].prompts(match.match_id)
    with pytest.raises(ApiError) as error:
        await match.players[0].answer(match.match_id, prompt.prompt_id, "fold")
    assert error.value.field == "answer.selection.options"
    assert error.value.metadata["legal"] == "swap,keep"


async def test_a_process_that_was_restarted(log: SqliteLog) -> None:
    """Another process on the same log goes on where the first one stopped."""
    async with process(log) as first:
        match = await begin(first)
        (prompt,) = await match.players[0].prompts(match.match_id)
        request_id = new_id()
        answered = await match.players[0].answer(
            match.match_id, prompt.prompt_id, "keep", request_id=request_id
        )
    async with process(log) as second:
        match.players = [second.player("ann"), second.player("bob")]
        again = await match.players[0].answer(
            match.match_id, prompt.prompt_id, "keep", request_id=request_id
        )
        assert again == answered
        last = await play_out(match)
    commits = (await admitted(log))[match.match_id]
    assert commits[-1].final and commits[-1].sequence == last
