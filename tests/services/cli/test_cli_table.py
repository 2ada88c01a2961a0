"""A person at the table: asked, acting at any time, overtaken; what is typed comes by a pipe."""

import asyncio
import contextlib
import io
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Literal

import pytest
from rich.console import Console

from engine import ActionTaken, Answered, Fact, Seat, Session
from services.cli.play_ask import Lines
from services.cli.play_table import Table
from services.client import connect
from services.common.auth import make_token
from services.common.redaction import restore_facts
from tests.services.match.conftest import log
from tests.services.match.healing import Healing, another_is_asked, healing, hurt
from tests.services.match.healing import the_question_changes as question_changes
from tests.services.match.serving import KEY, Player
from tests.services.match.test_actions import take
from tests.services.match.test_queries import Whole, whole

__all__ = ["log", "whole"]

OFFER = "[u] use Rapid Healing"


class Screen(io.StringIO):
    """What was printed, which can be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self._grown = asyncio.Event()

    def write(self, text: str) -> int:
        self._grown.set()
        return super().write(text)

    async def shows(self, words: str, times: int = 1) -> None:
        async with asyncio.timeout(20):
            while self.getvalue().count(words) < times:
                self._grown.clear()
                await self._grown.wait()


@dataclass
class Sitting:
    """Somebody at a table, and the keyboard."""

    screen: Screen
    keyboard: int
    playing: "asyncio.Task[None]"

    def type(self, lines: str) -> None:
        os.write(self.keyboard, lines.encode())

    def hang_up(self) -> None:
        """The input ends, as by Ctrl-D."""
        os.close(self.keyboard)
        self.keyboard = -1

    async def leaves(self) -> None:
        self.type("q\n")
        await asyncio.wait_for(self.playing, 20)


@contextlib.asynccontextmanager
async def sitting(
    whole: Whole,
    found: Healing,
    player: Player,
    locale: Literal["en", "zh"] = "en",
    *,
    at_terminal: bool = False,
) -> AsyncIterator[Sitting]:
    """The player sits down, for the length of the block."""
    seat = found.match.players.index(player) + 1
    if at_terminal:
        keyboard, reader = os.openpty()
    else:
        reader, keyboard = os.pipe()
    screen = Screen()
    out = Console(file=screen, width=100, highlight=False)
    table = Table(out, locale, found.match_id, "again", Lines(reader))
    token = make_token(KEY, player.subject)
    try:
        async with connect(whole.match.address, token=token, locale=locale) as you:
            person = Sitting(screen, keyboard, asyncio.create_task(table.play(you, seat)))
            try:
                yield person
            finally:
                person.playing.cancel()
                await asyncio.gather(person.playing, return_exceptions=True)
                if person.keyboard >= 0:
                    person.hang_up()
    finally:
        os.close(reader)


def waits_and_is_hurt(session: Session, healer: Seat) -> bool:
    """Another is asked, and the healer may heal itself twice."""
    return another_is_asked(session, healer) and hurt(2)(session, healer)


@pytest.mark.parametrize(("locale", "offer"), [("en", OFFER), ("zh", "[u] 使用")], ids=["en", "zh"])
async def test_acting_in_anothers_turn(
    whole: Whole, locale: Literal["en", "zh"], offer: str
) -> None:
    """What may be done is shown, and a key does it; then one may leave."""
    found = await healing(whole.match, waits_and_is_hurt)
    async with sitting(whole, found, found.healer, locale) as person:
        await person.screen.shows(offer)
        person.type("u\n")
        await until(found, lambda fact: isinstance(fact, ActionTaken))
        await person.leaves()
    assert not person.playing.cancelled()
    assert "--match" in person.screen.getvalue()


async def until(found: Healing, happened: Callable[[Fact], bool]) -> None:
    """Wait for a fact, as a spectator sees it; meanwhile the other seat answers by the default."""
    answered: set[str] = set()
    async with asyncio.timeout(20):
        async for response in found.other.watch(found.match_id, found.match.sequence + 1):
            if any(happened(fact) for fact in restore_facts(response.update.commit)):
                return
            for prompt in response.update.prompts:
                if prompt.prompt_id not in answered:
                    answered.add(prompt.prompt_id)
                    await found.other.answer(
                        found.match_id, prompt.prompt_id, answer=prompt.default_answer
                    )
    raise AssertionError("it never happened")


async def test_acting_changes_the_own_question(whole: Whole) -> None:
    """The new one is shown; Enter answers that."""
    found = await healing(whole.match, question_changes)
    async with sitting(whole, found, found.healer) as person:
        await person.screen.shows("? ")
        await person.screen.shows(OFFER)
        before = person.screen.getvalue().count("\n> ")
        person.type("u\n")
        await person.screen.shows("\n> ", before + 1)
        (asked,) = await found.healer.prompts(found.match_id)
        person.type("\n")
        await until(found, answers(asked.prompt_id))


def answers(prompt_id: str) -> Callable[[Fact], bool]:
    return lambda fact: isinstance(fact, Answered) and fact.prompt_id == prompt_id


async def test_a_question_that_is_withdrawn_meanwhile(whole: Whole) -> None:
    """The same seat acts from elsewhere: what is asked now is shown by itself, and answered."""
    found = await healing(whole.match, question_changes)
    async with sitting(whole, found, found.healer) as person:
        await person.screen.shows("\n> ")
        await take(found.healer, found.match_id, found.action)
        await person.screen.shows("\n> ", 2)
        (asked,) = await found.healer.prompts(found.match_id)
        person.type("\n")
        await until(found, answers(asked.prompt_id))
    assert "Traceback" not in person.screen.getvalue()


async def test_what_is_typed_ahead_answers_what_is_asked_next(whole: Whole) -> None:
    """Only a wish is heard in others' turns; a line that could be an answer waits for its
    question.
    """
    found = await healing(whole.match, waits_and_is_hurt)
    async with sitting(whole, found, found.healer) as person:
        await person.screen.shows(OFFER)
        person.type("?\n\n")
        # The help stands there from the start.
        await person.screen.shows("Enter alone", 2)
        (asked,) = await found.other.prompts(found.match_id)
        await found.other.answer(found.match_id, asked.prompt_id, answer=asked.default_answer)
        await until(found, lambda fact: isinstance(fact, Answered) and fact.seat == found.seat)


async def test_what_is_no_answer_waits_for_no_question(whole: Whole) -> None:
    """Rubbish in another's turn is answered by the help, and what comes after it is heard."""
    found = await healing(whole.match, waits_and_is_hurt)
    async with sitting(whole, found, found.healer) as person:
        await person.screen.shows(OFFER)
        person.type("no such thing\n")
        await person.screen.shows("Enter alone", 2)
        person.type("u\n")
        await until(found, lambda fact: isinstance(fact, ActionTaken))
        await person.screen.shows("acts at any time: use Rapid Healing.")
        await person.leaves()


async def test_an_action_of_another_number(whole: Whole) -> None:
    """Who picks one that is not there is shown those that are."""
    found = await healing(whole.match, waits_and_is_hurt)
    async with sitting(whole, found, found.healer) as person:
        await person.screen.shows(OFFER)
        person.type("u2\n")
        await person.screen.shows(OFFER, 2)
        assert "nothing that you may do" not in person.screen.getvalue()
        await person.leaves()


async def test_a_wish_that_cannot_be_fulfilled(whole: Whole) -> None:
    """Who may do nothing at any time is told so, and asked on."""
    found = await healing(whole.match, another_is_asked)
    async with sitting(whole, found, found.other) as person:
        await person.screen.shows("\n> ")
        person.type("u\n")
        await person.screen.shows("nothing that you may do")
        assert OFFER not in person.screen.getvalue()
        await person.leaves()


@pytest.mark.parametrize(
    ("locale", "kept"), [("en", "The match is kept"), ("zh", "对局已保留")], ids=["en", "zh"]
)
async def test_the_end_of_the_input_in_anothers_turn(
    whole: Whole, locale: Literal["en", "zh"], kept: str
) -> None:
    """It ends the sitting at once, though nothing is asked or offered."""
    found = await healing(whole.match, question_changes)
    async with sitting(whole, found, found.other, locale) as person:
        person.type("t\n")
        # Shown at the start as well.
        await person.screen.shows(found.other.subject, 2)
        person.hang_up()
        await asyncio.wait_for(person.playing, 20)
    assert kept in person.screen.getvalue()
    assert f"again --match {found.match_id}" in " ".join(person.screen.getvalue().split())


async def test_ctrl_d_behind_an_answer_that_was_typed_ahead(whole: Whole) -> None:
    """Somebody at a terminal need not wait for the next question to leave."""
    found = await healing(whole.match, question_changes)
    async with sitting(whole, found, found.other, at_terminal=True) as person:
        await person.screen.shows(found.other.subject)
        person.type("\n\x04")
        await asyncio.wait_for(person.playing, 20)
    assert "The match is kept" in person.screen.getvalue()


async def test_a_file_of_lines_is_heard_in_order(whole: Whole) -> None:
    """What stands behind a line for the next question waits as well, also that one leaves."""
    found = await healing(whole.match, another_is_asked)
    async with sitting(whole, found, found.healer) as person:
        await person.screen.shows(OFFER)
        person.type("\nq\n")
        person.hang_up()
        (asked,) = await found.other.prompts(found.match_id)
        await found.other.answer(found.match_id, asked.prompt_id, answer=asked.default_answer)
        await until(found, lambda fact: isinstance(fact, Answered) and fact.seat == found.seat)
        await asyncio.wait_for(person.playing, 20)
