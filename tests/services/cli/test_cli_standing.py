"""A person leaves standing answers at the table, is answered for, and takes them back."""

import asyncio
import contextlib
import io
from collections.abc import AsyncIterator, Callable
from typing import Any, Literal

import pytest
from rich.console import Console

from engine import (
    Answer,
    Answered,
    Fact,
    Option,
    Prompt,
    Prompted,
    PromptId,
    Seat,
    StandingAnswer,
    StandingAnswerDropped,
    StandingAnswerSet,
)
from services.cli.play_standing import StandingAnswers
from services.cli.render import Narrator
from services.common.redaction import restore_facts
from services.match.standing import CHANGES_PER_TURN_MAX
from tests.services.cli.test_cli_render import recorded
from tests.services.cli.test_cli_table import Sitting, answers, sitting, until
from tests.services.match.conftest import log
from tests.services.match.healing import Healing, another_is_asked, healing
from tests.services.match.healing import the_question_changes as question_changes
from tests.services.match.serving import admitted
from tests.services.match.test_queries import Whole, whole
from tests.services.match.test_standing import set_standing

__all__ = ["log", "whole"]

Locale = Literal["en", "zh"]


async def set_or_dropped(whole: Whole, found: Healing) -> list[Any]:
    commits = (await admitted(whole.match.node.log))[found.match_id]
    kinds = (StandingAnswerSet, StandingAnswerDropped)
    return [fact for commit in commits for fact in commit.facts() if isinstance(fact, kinds)]


@contextlib.asynccontextmanager
async def the_others_play(found: Healing) -> AsyncIterator[None]:
    """The other seat answers by the default for the length of the block.

    Meanwhile `happens` waits for a fact: `until` would answer as well.
    """
    playing = asyncio.create_task(until(found, lambda _: False))
    try:
        yield
    finally:
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)


async def happens(found: Healing, is_meant: Callable[[Fact], bool]) -> None:
    """Wait for a fact, as the other seat sees it."""
    async with asyncio.timeout(20):
        async for response in found.other.watch(found.match_id, found.match.sequence + 1):
            if any(is_meant(fact) for fact in restore_facts(response.update.commit)):
                return
    raise AssertionError("it never happened")


async def presses_enter(person: Sitting, words: str, times: int = 1) -> None:
    """Answer by Enter whatever is asked until the words are there."""
    asked = 0
    async with asyncio.timeout(30):
        while person.screen.getvalue().count(words) < times:
            if person.screen.getvalue().count("\n> ") > asked:
                asked = person.screen.getvalue().count("\n> ")
                person.type("\n")
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("locale", "left", "unasked"),
    [
        ("en", "From now on answered so", "Answered as you left word: "),
        ("zh", "今后照此回答", "按你的预设回答："),
    ],
    ids=["en", "zh"],
)
async def test_an_answer_is_left(whole: Whole, locale: Locale, left: str, unasked: str) -> None:
    """It is given at once, and the next time unasked, which is told; taken back, one is asked."""
    found = await healing(whole.match, question_changes)
    (asked,) = await found.healer.prompts(found.match_id)
    async with sitting(whole, found, found.healer, locale) as person, the_others_play(found):
        await person.screen.shows("\n> ")
        person.type("s\n")
        await person.screen.shows(left)
        await happens(found, answers(asked.prompt_id))
        # The answer that was typed is no news.
        assert unasked not in person.screen.getvalue()
        await presses_enter(person, unasked)
        person.type("d\n")
        await person.screen.shows("[d1] ")
        person.type("d1\n")
        await happens(found, lambda fact: isinstance(fact, StandingAnswerDropped))
        await person.leaves()
    is_set, is_dropped = await set_or_dropped(whole, found)
    assert is_set.standing == StandingAnswer(found.seat, "buy", Answer())
    assert is_dropped.kind == "buy"


async def test_an_answer_is_left_for_when_there_is_little(whole: Whole) -> None:
    """With more than that it is given now all the same, and the next time one is asked."""
    found = await healing(whole.match, question_changes)
    (asked,) = await found.healer.prompts(found.match_id)
    async with sitting(whole, found, found.healer) as person, the_others_play(found):
        await person.screen.shows("\n> ")
        person.type("0 s1\n")
        await person.screen.shows("nothing (while below 1)")
        await happens(found, answers(asked.prompt_id))
        await presses_enter(person, "what do you buy?", 3)
        assert "Answered as you left word" not in person.screen.getvalue()
        await person.leaves()
    (is_set,) = await set_or_dropped(whole, found)
    assert is_set.standing == StandingAnswer(found.seat, "buy", Answer(), below=1)


async def test_what_lies_elsewhere_next_time_cannot_be_left(whole: Whole) -> None:
    """A card for sale is known by its place: the next one there was not meant."""
    found = await healing(whole.match, question_changes)
    async with sitting(whole, found, found.healer) as person:
        await person.screen.shows("\n> ")
        person.type("1 s\n")
        await person.screen.shows("cannot be left")
        await person.screen.shows("\n> ", 2)
        await person.leaves()
    assert not await set_or_dropped(whole, found)


@pytest.mark.parametrize(
    ("locale", "sentences"),
    [
        (
            "en",
            (
                "yield Tokyo (while below 4)",
                "From now on you are asked again",
                "This would change nothing.",
                "no standing answers",
            ),
        ),
        (
            "zh",
            ("撤离东京（仅当低于 4 时）", "今后会再次询问", "这不会改变任何事。", "你没有预设回答"),
        ),
    ],
    ids=["en", "zh"],
)
async def test_what_was_left_earlier_is_listed_and_dropped(
    whole: Whole, locale: Locale, sentences: tuple[str, ...]
) -> None:
    """In another's turn too; once more is refused in a sentence, and the sitting goes on."""
    found = await healing(whole.match, another_is_asked)
    await set_standing(found.healer, found.match_id, "yield", kind="yield_tokyo", below=4)
    async with sitting(whole, found, found.healer, locale) as person:
        await person.screen.shows("[d1] ")
        for line, sentence in zip(("", "d1\n", "d1\n", "d\n"), sentences, strict=True):
            person.type(line)
            await person.screen.shows(sentence)
        await person.leaves()
    assert "Traceback" not in person.screen.getvalue()


async def test_too_many_changes(whole: Whole) -> None:
    """The reason is shown, the question stays, and is answered without leaving anything."""
    found = await healing(whole.match, question_changes)
    for below in range(1, 1 + CHANGES_PER_TURN_MAX):
        await set_standing(found.healer, found.match_id, "yield", kind="yield_tokyo", below=below)
    (asked,) = await found.healer.prompts(found.match_id)
    async with sitting(whole, found, found.healer) as person:
        await person.screen.shows("\n> ")
        person.type("s\n")
        await person.screen.shows("too often")
        await person.screen.shows("\n> ", 2)
        person.type("\n")
        await happens(found, answers(asked.prompt_id))
        await person.leaves()


def test_standing_answers_are_told_in_the_words_of_what_was_asked() -> None:
    """Also where the newest such question did not offer what was left, or none was ever asked."""
    out = io.StringIO()
    console = Console(file=out, width=200)
    narrator = Narrator(console, "en")
    for facts in recorded():
        narrator.skip(facts)
    standing = StandingAnswers(console, "en")
    seat = Seat(4)
    wings, plot = Option("use:7", "use:wings"), Option("use:9", "use:plot_twist")
    for number, option in enumerate((wings, plot), 1):
        prompt = Prompt(PromptId(f"p{number}"), seat, "prevent_loss", options=(option,))
        standing.note([Prompted(seat, prompt)], seat)
    for kind, answer in (
        ("prevent_loss", Answer(picks=("use:7",))),
        ("reroll", Answer(picks=("die:1",))),
        ("herd_culler.die", Answer(number=3)),
        ("use_hearts", Answer(amounts=(1, 2))),
    ):
        left = StandingAnswerSet(seat, StandingAnswer(seat, kind, answer))
        narrator.skip([left])
    standing.show(narrator.state, seat)
    shown = out.getvalue()
    for words in ("use Wings", "– die:1", "– 3", "– 1 2", "[d4]"):
        assert words in shown
    assert standing.listed(5) is None


def test_an_answer_of_nobody_who_reads_is_not_told() -> None:
    out = io.StringIO()
    narrator = Narrator(Console(file=out, width=100), "en")
    for facts in recorded():
        narrator.tell(facts, unasked=[PromptId("p0")])
    assert any(isinstance(fact, Answered) for facts in recorded() for fact in facts)
    assert "left word" not in out.getvalue()
