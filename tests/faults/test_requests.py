"""The same request twice, and everything that is refused: documented reasons, nothing written."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest
from grpc import StatusCode

from engine import Answer, Prompt
from services.cli.datadir import TokenMaker
from services.cli.supervisor import Distributed
from services.client import ApiError, Client, MatchUpdate, connect, new_request_id, take_part
from services.client.bots import make_bot
from tests.support.arena import GAME, Arena
from tests.support.history import counted_commits
from tests.support.rawlog import kafka_records

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.faults]

SEATS = 3
Call = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Position:
    """A match that waits for an answer: whose, to which prompt, and an earlier prompt."""

    match_id: str
    prompt: Prompt
    closed: str
    sequence: int


async def _position(arena: Arena) -> Position:
    """A match in its first turn, one answer in."""
    match_id = await arena.open(SEATS)
    update = await _newest(arena, match_id)
    first = update.questions[0].prompt
    asked = arena.player(first.seat).client
    await asked.answer(match_id, first.id, first.default)
    update = await _newest(arena, match_id)
    prompt = update.questions[0].prompt
    return Position(match_id, prompt, first.id, update.sequence)


async def _newest(arena: Arena, match_id: str) -> MatchUpdate:
    """The newest commit as the seat sees it that is asked."""
    for seat in range(1, SEATS + 1):
        updates = arena.player(seat).client.watch(match_id)
        async for update in updates:
            if update.live:
                if update.questions:
                    return update
                break
    raise AssertionError("nobody is asked")


async def _finish(arena: Arena, match_id: str) -> None:
    """Play a match to its end."""
    bots = [make_bot("greedy", GAME, str(seat)) for seat in range(1, SEATS + 1)]
    await asyncio.gather(
        *(
            take_part(arena.player(seat).stream, match_id, seat, bot)
            for seat, bot in enumerate(bots, 1)
        )
    )


async def _last_sequence(arena: Arena, match_id: str) -> int:
    return (await arena.arbiter.replays.state(match_id)).last_sequence


async def _refused(call: Call) -> tuple[StatusCode, str, str | None]:
    with pytest.raises(ApiError) as raised:
        await call()
    return raised.value.code, raised.value.reason, raised.value.field


async def test_the_same_request_twice_is_one_commit_and_one_reply(
    running: Distributed, arena: Arena
) -> None:
    here = await _position(arena)
    asked = arena.player(here.prompt.seat)
    request_id = new_request_id()
    answer = here.prompt.default
    first = await asked.client.answer(here.match_id, here.prompt.id, answer, request_id=request_id)
    again = await asked.client.answer(here.match_id, here.prompt.id, answer, request_id=request_id)
    streamed = await asked.stream.submit(
        here.match_id, here.prompt.id, answer, request_id=request_id
    )
    assert first == again == streamed
    assert first.sequence == here.sequence + 1
    assert await _last_sequence(arena, here.match_id) == first.sequence


async def test_the_same_request_at_the_same_time_through_both_processes(
    running: Distributed, arena: Arena
) -> None:
    here = await _position(arena)
    subject = arena.player(here.prompt.seat).subject
    clients = [connect(address, running.token(subject)) for address in running.addresses]
    request_id = new_request_id()
    try:
        receipts = await asyncio.gather(
            *(
                client.answer(
                    here.match_id, here.prompt.id, here.prompt.default, request_id=request_id
                )
                for client in clients * 8
            )
        )
        create_id = new_request_id()
        created = await asyncio.gather(
            *(client.create(GAME, SEATS, request_id=create_id) for client in clients * 4)
        )
    finally:
        for client in clients:
            await client.close()
    assert len(set(receipts)) == 1
    assert len({each.match_id for each in created}) == 1
    records = await asyncio.to_thread(kafka_records, running.kafka, running.topic)
    written = [each for each in counted_commits(records) if each.cause.request_id == request_id]
    assert [each.header.sequence for each in written] == [receipts[0].sequence]
    assert sum(1 for each in counted_commits(records) if each.cause.request_id == create_id) == 1
    await _finish(arena, here.match_id)


async def test_a_request_id_with_another_content_is_refused(arena: Arena) -> None:
    here = await _position(arena)
    asked = arena.player(here.prompt.seat).client
    request_id = new_request_id()
    await asked.answer(here.match_id, here.prompt.id, here.prompt.default, request_id=request_id)
    sequence = await _last_sequence(arena, here.match_id)
    code, reason, _ = await _refused(
        lambda: asked.answer(here.match_id, "p99", Answer(), request_id=request_id)
    )
    assert (code, reason) == (StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED")
    assert await _last_sequence(arena, here.match_id) == sequence


async def test_answers_that_are_refused(running: Distributed, arena: Arena) -> None:
    here = await _position(arena)
    match_id, prompt = here.match_id, here.prompt
    asked = arena.player(prompt.seat)
    other = arena.player(prompt.seat % SEATS + 1)
    stranger = arena.player(SEATS + 1)
    illegal = Answer(picks=("nonsense",))
    denied, bad = StatusCode.PERMISSION_DENIED, StatusCode.INVALID_ARGUMENT
    cases: list[tuple[str, str, Answer, StatusCode, str]] = [
        ("other", prompt.id, prompt.default, denied, "NOT_YOUR_PROMPT"),
        ("stranger", prompt.id, prompt.default, denied, "NOT_A_PLAYER"),
        ("asked", prompt.id, illegal, bad, "ILLEGAL_ANSWER"),
        ("asked", prompt.id, Answer(number=3), bad, "ILLEGAL_ANSWER"),
        ("asked", here.closed, prompt.default, StatusCode.ABORTED, "PROMPT_CLOSED"),
    ]
    who = {"asked": asked, "other": other, "stranger": stranger}
    for name, prompt_id, answer, code, reason in cases:
        caller = who[name]
        unary = await _refused(lambda: caller.client.answer(match_id, prompt_id, answer))  # noqa: B023 - called at once
        stream = await _refused(lambda: caller.stream.submit(match_id, prompt_id, answer))  # noqa: B023
        assert unary == stream
        assert unary[:2] == (code, reason), name
        if reason == "ILLEGAL_ANSWER":
            assert unary[2] is not None
            assert unary[2].startswith("answer.")
    assert await _last_sequence(arena, match_id) == here.sequence
    await _finish(arena, match_id)


async def test_unknown_matches_and_bad_ids(arena: Arena) -> None:
    client = arena.player(1).client
    unknown = "a" * 26
    for call in (
        lambda: client.get(unknown),
        lambda: client.join(unknown),
        lambda: client.answer(unknown, "p1", Answer()),
        lambda: client.replays.state(unknown),
        lambda: _first_of(client, unknown),
    ):
        code, reason, _ = await _refused(call)
        assert (code, reason) == (StatusCode.NOT_FOUND, "MATCH_NOT_FOUND")
    code, reason, field = await _refused(lambda: client.get("no such id"))
    assert (code, reason, field) == (StatusCode.INVALID_ARGUMENT, "BAD_MATCH_ID", "match_id")
    code, reason, _ = await _refused(lambda: client.create(GAME, 2, request_id="not allowed!"))
    assert (code, reason) == (StatusCode.INVALID_ARGUMENT, "BAD_REQUEST_ID")


async def _first_of(client: Client, match_id: str) -> MatchUpdate:
    async for update in client.watch(match_id):
        return update
    raise AssertionError("an empty match")


@pytest.mark.parametrize("seats", [0, 1, 7])
async def test_numbers_of_players_that_the_game_does_not_allow(arena: Arena, seats: int) -> None:
    code, reason, field = await _refused(lambda: arena.host.create(GAME, seats))
    assert (code, reason) == (StatusCode.INVALID_ARGUMENT, "BAD_SEAT_COUNT")
    assert field == "seats"


async def test_games_and_options_that_are_not_there(arena: Arena) -> None:
    bad = StatusCode.INVALID_ARGUMENT
    host = arena.host
    assert (await _refused(lambda: host.create("chess", 2)))[:2] == (bad, "UNKNOWN_GAME")
    option = {"no_such_option": "1"}
    assert (await _refused(lambda: host.create(GAME, 2, options=option)))[:2] == (
        bad,
        "UNKNOWN_OPTION",
    )
    value = {"tokyo_entry_rule": "sometimes"}
    assert (await _refused(lambda: host.create(GAME, 2, options=value)))[:2] == (
        bad,
        "BAD_OPTION_VALUE",
    )


async def test_the_lobby_refuses_what_does_not_belong_there(arena: Arena) -> None:
    created = await arena.host.create(GAME, 2)
    match_id = created.match_id
    first, second, third = (arena.player(number).client for number in (1, 2, 3))
    await first.join(match_id)
    precondition = StatusCode.FAILED_PRECONDITION
    assert (await _refused(lambda: first.join(match_id)))[:2] == (
        StatusCode.ALREADY_EXISTS,
        "ALREADY_SEATED",
    )
    assert (await _refused(lambda: second.join(match_id, entropy=b"short")))[1] == "BAD_ENTROPY"
    assert (await _refused(lambda: arena.host.start(match_id)))[:2] == (
        precondition,
        "NOT_ENOUGH_PLAYERS",
    )
    assert (await _refused(lambda: first.answer(match_id, "p1", Answer())))[:2] == (
        precondition,
        "MATCH_NOT_STARTED",
    )
    await second.join(match_id)
    assert (await _refused(lambda: third.join(match_id)))[:2] == (precondition, "MATCH_FULL")
    assert (await _refused(lambda: first.start(match_id)))[:2] == (
        StatusCode.PERMISSION_DENIED,
        "NOT_HOST",
    )
    assert await _last_sequence(arena, match_id) == 3
    await arena.reveal(match_id, 2)
    await arena.host.start(match_id)
    assert (await _refused(lambda: third.join(match_id)))[:2] == (precondition, "NOT_IN_LOBBY")
    assert await _last_sequence(arena, match_id) == 6


async def test_tokens_that_are_not_accepted(running: Distributed, arena: Arena) -> None:
    match_id = await arena.open(SEATS)
    unauthenticated = StatusCode.UNAUTHENTICATED
    forged = TokenMaker(b"another secret of thirty-two bytes")("bot-1")
    expired = running.token("bot-1", lifetime_s=-3600)
    cases: list[tuple[str | None, str]] = [
        (None, "TOKEN_MISSING"),
        ("garbage", "TOKEN_INVALID"),
        (forged, "TOKEN_INVALID"),
        (expired, "TOKEN_EXPIRED"),
    ]
    for token, reason in cases:
        async with connect(running.addresses, token) as client:
            for call in (
                lambda: client.get(match_id),
                lambda: client.create(GAME, 2),
                lambda: client.answer(match_id, "p1", Answer()),
                lambda: _first_of(client, match_id),
                lambda: _submit(client, match_id),
            ):
                assert (await _refused(call))[:2] == (unauthenticated, reason)
    await _finish(arena, match_id)


async def _submit(client: Client, match_id: str) -> object:
    async with client.play() as stream:
        return await stream.submit(match_id, "p1", Answer())


async def test_a_message_of_five_megabytes_is_refused(arena: Arena) -> None:
    here = await _position(arena)
    asked = arena.player(here.prompt.seat).client
    huge = Answer(picks=("x" * (5 * 1024 * 1024),))
    code, reason, _ = await _refused(lambda: asked.answer(here.match_id, here.prompt.id, huge))
    assert (code, reason) == (StatusCode.RESOURCE_EXHAUSTED, "MESSAGE_TOO_LARGE")
    assert await _last_sequence(arena, here.match_id) == here.sequence
    await _finish(arena, here.match_id)


async def test_a_standing_answer_is_set_once_and_answers_unasked(arena: Arena) -> None:
    here = await _position(arena)
    match_id, kind = here.match_id, here.prompt.kind
    asked = arena.player(here.prompt.seat).client
    request_id = new_request_id()
    receipts = [
        await asked.set_standing(match_id, kind, here.prompt.default, request_id=request_id)
        for _ in range(2)
    ]
    assert receipts[0] == receipts[1]
    assert receipts[0].sequence > here.sequence
    stranger = arena.player(SEATS + 1).client
    code, reason, _ = await _refused(lambda: stranger.set_standing(match_id, kind, None))
    assert (code, reason) == (StatusCode.PERMISSION_DENIED, "NOT_A_PLAYER")
    await _finish(arena, match_id)
    report = await arena.arbiter.replays.verify(match_id)
    assert report.passed, report


async def test_a_lobby_is_given_up_by_its_host_alone(arena: Arena) -> None:
    created = await arena.host.create(GAME, SEATS)
    match_id = created.match_id
    first, second = arena.player(1).client, arena.player(2).client
    await first.join(match_id)
    assert (await _refused(lambda: first.abandon(match_id)))[1] == "NOT_HOST"
    request_id = new_request_id()
    receipt = await arena.host.abandon(match_id, request_id=request_id)
    assert receipt == await arena.host.abandon(match_id, request_id=request_id)
    assert receipt.sequence == 3
    for call in (lambda: second.join(match_id), lambda: arena.host.start(match_id)):
        code, reason, _ = await _refused(call)
        assert (code, reason) == (StatusCode.FAILED_PRECONDITION, "MATCH_FINISHED")
    running_match = await arena.open(SEATS)
    code, reason, _ = await _refused(lambda: arena.host.abandon(running_match))
    assert (code, reason) == (StatusCode.FAILED_PRECONDITION, "NOT_IN_LOBBY")
    await _finish(arena, running_match)
