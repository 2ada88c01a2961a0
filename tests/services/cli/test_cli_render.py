"""A match told to a person: complete, in both languages, and never wider than the screen."""

import io
from functools import cache

import pytest
from rich.cells import cell_len
from rich.console import Console

from engine import ActionsOffered, ActionTaken, Fact, Option, Seat, Session, find_game
from services.cli.main_options import Locale
from services.cli.render import Narrator
from services.client.bots import RandomBot

WIDTH = 100
NAMES = ("Gigazaur", "Kraken", "The King", "Ada")


@cache
def recorded(players: int = 4) -> tuple[tuple[Fact, ...], ...]:
    """The facts of one random match, a tuple for each command."""
    session, step = Session.create(
        find_game("king_of_tokyo"),
        match_id="m" * 26,
        host="host",
        seats=players,
        options={},
        seed=b"s" * 32,
        key_id="k",
    )
    steps = [step.facts]
    for seat in range(1, players + 1):
        joined = session.join(f"player-{seat}", NAMES[seat - 1], b"", Seat(seat))
        steps.append(joined.facts)
    step = session.start()
    steps.append(step.facts)
    bot = RandomBot("render")
    while step.waiting:
        prompt = step.waiting[0]
        step = session.answer(prompt.id, prompt.seat, bot.answer(prompt, session.state))
        steps.append(step.facts)
    return tuple(steps)


def _told(locale: Locale) -> tuple[str, Narrator]:
    out = io.StringIO()
    narrator = Narrator(Console(file=out, width=WIDTH), locale)
    for facts in recorded():
        narrator.tell(facts)
    return out.getvalue(), narrator


@pytest.mark.parametrize(
    ("locale", "expected"),
    [
        ("en", ["Turn 1 · ", "rolls", "gains", "Tokyo City", "for sale", "★"]),
        ("zh", ["第 1 回合", "掷出", "重掷", "东京市", "出售", "★"]),
    ],
)
def test_a_whole_match_is_told(locale: Locale, expected: list[str]) -> None:
    text, narrator = _told(locale)
    for each in expected:
        assert each in text
    assert narrator.state.status == "finished"
    winners = [narrator.state.name_of(seat) for seat in narrator.state.winners]
    last = text.strip().splitlines()[-1]
    assert all(name in last for name in winners)


@pytest.mark.parametrize("locale", ["en", "zh"])
def test_no_line_is_wider_than_the_screen_or_ends_in_a_blank_fact(locale: Locale) -> None:
    text, _ = _told(locale)
    assert max(cell_len(line) for line in text.splitlines()) <= WIDTH
    assert "None" not in text
    assert "_" not in text, "an id was shown instead of a word"


def test_every_turn_has_its_heading() -> None:
    text, narrator = _told("en")
    assert narrator.state.table is not None
    for turn in range(1, narrator.state.table.turn + 1):
        assert f"Turn {turn} · " in text


def test_skipping_tells_nothing_and_gives_the_same_state() -> None:
    out = io.StringIO()
    narrator = Narrator(Console(file=out, width=WIDTH), "en")
    for facts in recorded():
        narrator.skip(facts)
    assert out.getvalue() == ""
    assert narrator.state == _told("en")[1].state
    narrator.show_table()
    assert "Gigazaur" in out.getvalue()


@pytest.mark.parametrize(
    ("locale", "line"),
    [
        ("en", "Gigazaur acts at any time: use Rapid Healing."),
        ("zh", "Gigazaur 随时行动：使用快速治疗。"),
    ],
)
def test_an_action_at_any_time_is_told(locale: Locale, line: str) -> None:
    """Before what comes of it, in whosever turn; by its name, as it was offered."""
    out = io.StringIO()
    narrator = Narrator(Console(file=out, width=WIDTH), locale)
    for facts in recorded()[:-1]:
        narrator.skip(facts)
    offered = (Option("use:1", "use:rapid_healing"),)
    narrator.tell([ActionsOffered(Seat(1), offered), ActionTaken(Seat(1), "use:1")])
    assert line in out.getvalue()
