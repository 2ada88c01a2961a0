"""Actions at any time through the client: taken once, whatever is lost; nothing waits for ever."""

import pytest

from diceledger.match.v1 import match_pb2
from engine import ActionTaken, Answer, MatchState, Option, Prompt, Seat
from services.client import Action, ApiError, Client, take_part
from services.common.errors import refuse
from tests.services.client.fake_server import ACTION, MATCH, FakeMatch, FakeServer

YES = Answer(picks=("yes",))
Servers = tuple[FakeServer, FakeServer]


class Eager:
    """A bot that acts whenever it may, and answers yes."""

    def answer(self, prompt: Prompt, state: MatchState) -> Answer:
        return YES

    def act(self, seat: Seat, actions: tuple[Option, ...], state: MatchState) -> str | None:
        return actions[0].id


class Overtaken(Eager):
    """While it thinks about its first answer, its seat acts: the question is another one now."""

    def __init__(self, match: FakeMatch) -> None:
        self._match = match
        self._request = 0

    def answer(self, prompt: Prompt, state: MatchState) -> Answer:
        if self._match.offers:
            self._act()
        return YES

    def act(self, seat: Seat, actions: tuple[Option, ...], state: MatchState) -> str | None:
        return None

    def _act(self) -> None:
        self._request += 1
        self._match.take(
            match_pb2.TakeActionRequest(
                request_id=f"elsewhere-{self._request}", match_id=MATCH, action=ACTION
            )
        )


class TooLate(Overtaken):
    """What it was offered is gone when it takes it."""

    def answer(self, prompt: Prompt, state: MatchState) -> Answer:
        return YES

    def act(self, seat: Seat, actions: tuple[Option, ...], state: MatchState) -> str | None:
        while self._match.offers:
            self._act()
        return actions[0].id


async def test_what_may_be_done_comes_with_the_newest_update(
    client: Client, match: FakeMatch
) -> None:
    await client.answer(MATCH, "p1", YES)
    match.offers = 1
    seen = []
    async for update in client.watch(MATCH):
        seen.append(update.actions)
        if update.live:
            break
    assert seen == [(), (Action(Option(ACTION, "use:wand"), "use the wand"),)]


async def test_an_action_is_repeated_with_the_same_request_id(
    client: Client, servers: Servers, match: FakeMatch
) -> None:
    match.offers = 1
    servers[0].refusals = [refuse("NOT_APPLIED")]
    for server in servers:
        server.lost_replies = 1
    receipt = await client.take_action(MATCH, ACTION, request_id="mine")
    assert receipt.sequence == len(match.commits) == 2
    assert {*servers[0].submits, *servers[1].submits} == {"mine"}


async def test_so_it_is_over_a_stream(client: Client, servers: Servers, match: FakeMatch) -> None:
    match.offers = 1
    for server in servers:
        server.lost_replies = 1
    async with client.play() as stream:
        receipt = await stream.take_action(MATCH, ACTION)
    assert receipt.sequence == len(match.commits) == 2
    assert stream.connections > 1
    assert len({*servers[0].submits, *servers[1].submits}) == 1


async def test_what_is_not_offered_is_refused(client: Client, match: FakeMatch) -> None:
    async with client.play() as stream:
        for take in (stream.take_action, client.take_action):
            with pytest.raises(ApiError) as raised:
                await take(MATCH, ACTION)
            assert raised.value.reason == "ACTION_NOT_OFFERED"
        assert (await stream.submit(MATCH, "p1", YES)).sequence == 2


async def test_a_bot_that_acts(client: Client, match: FakeMatch) -> None:
    """It answers what is asked after its actions, and nothing that they withdrew."""
    match.offers = 2
    async with client.play() as stream:
        record = await take_part(stream, MATCH, 1, Eager())
    assert [command.prompt_id for command in record.commands] == [
        *("", "", "p3", "p4", "p5", "p6", "p7")
    ]
    assert all(command.receipt is not None for command in record.commands)
    taken = [type(commit.facts()[0]) for commit in match.commits].count(ActionTaken)
    assert taken == 2


async def test_a_question_withdrawn_meanwhile_is_let_go(client: Client, match: FakeMatch) -> None:
    match.offers = 1
    async with client.play() as stream:
        record = await take_part(stream, MATCH, 1, Overtaken(match))
    first, *rest = record.commands
    assert (first.prompt_id, first.refusal) == ("p1", "PROMPT_CLOSED")
    assert [command.prompt_id for command in rest] == ["p2", "p3", "p4", "p5", "p6"]
    assert not any(command.refusal for command in rest)


async def test_an_action_that_comes_too_late_is_let_go(client: Client, match: FakeMatch) -> None:
    match.offers = 1
    async with client.play() as stream:
        record = await take_part(stream, MATCH, 1, TooLate(match))
    refusals = [command.refusal for command in record.commands]
    # The question of that update is gone as well.
    assert refusals == ["ACTION_NOT_OFFERED", "PROMPT_CLOSED", *[""] * 5]
