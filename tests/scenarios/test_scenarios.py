"""Every scenario file is one test; together they leave out no card, option or worked scenario."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine import find_game
from services.cli.scenario_covers import covers
from services.cli.scenario_model import read_scenarios
from services.cli.scenario_play import run_file

HERE = Path(__file__).parent
FILES = sorted(HERE.rglob("*.yaml"))
TOKYO = HERE / "king_of_tokyo"
GAME = find_game("king_of_tokyo")

# The worked scenarios of the rule notes that concern the base game; the others are about costumes,
# curses, evolutions, cultists, berserk and cards of other boxes.
WORKED = (
    *(2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 42, 44, 46, 48),
    *(50, 52, 54, 56, 58, 60, 62, 64, 66, 68, 70),
)
# Likewise the bugs of other implementations.
BUGS = (
    *(2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 36, 48, 52, 54, 56, 58, 60, 62, 64),
    *(66, 68),
)


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(HERE)) for path in FILES])
def test_scenario(path: Path) -> None:
    failed = [
        f"{outcome.path.name}:{outcome.line} {outcome.title}: {outcome.message}"
        for outcome in run_file(path)
        if not outcome.ok
    ]
    assert not failed, "\n".join(failed)


@pytest.mark.parametrize("card", sorted(GAME.cards))
def test_every_card_is_covered(card: str) -> None:
    """There is no list of exceptions: a card without a scenario is not finished."""
    assert covers(card), f"no scenario names {card} under `cards`"


@pytest.mark.parametrize("card", sorted(GAME.cards))
def test_every_card_has_a_file_with_a_case_for_it_and_one_against(card: str) -> None:
    """At least two cases: where the card works, and where it stops working."""
    cases = read_scenarios(TOKYO / "cards" / f"{card}.yaml")
    assert len([case for case in cases if card in case.cards]) >= 2


def test_every_text_of_the_first_edition_is_covered() -> None:
    """A card whose older text differs has a case that plays the older text."""
    older = {
        card
        for path in FILES
        for scenario in read_scenarios(path)
        if scenario.options.get("card_text_edition") == "first"
        for card in scenario.cards
    }
    differing = {card.id for card in GAME.cards.values() if card.text_under}
    assert not differing - older


def test_every_value_of_every_option_is_chosen_somewhere() -> None:
    chosen = {
        pair for path in FILES for each in read_scenarios(path) for pair in each.options.items()
    }
    missing = {
        (spec.id, value) for spec in GAME.options for value in spec.values if value != spec.default
    } - chosen
    assert not missing


@pytest.mark.parametrize(
    ("letter", "folder", "numbers"), [("S", "worked", WORKED), ("B", "bugs", BUGS)]
)
def test_every_worked_scenario_and_bug_of_the_notes_is_there(
    letter: str, folder: str, numbers: tuple[int, ...]
) -> None:
    written = {
        each.number for path in (TOKYO / folder).glob("*.yaml") for each in read_scenarios(path)
    }
    assert written == {f"{letter}{number}" for number in numbers}


def test_files_are_named_by_their_number() -> None:
    for folder in ("worked", "bugs"):
        for path in (TOKYO / folder).glob("*.yaml"):
            match = re.fullmatch(r"([sb])(\d+)_[a-z0-9_]+", path.stem)
            assert match, path
            number = f"{match[1].upper()}{int(match[2])}"
            assert {each.number for each in read_scenarios(path)} == {number}, path


def test_every_source_is_on_the_list() -> None:
    """A code that nobody can look up is no source."""
    page = (HERE / "README.md").read_text().partition("\n## Sources\n")[2]
    listed = set(re.findall(r"^\| `([^`]+)` \|", page, re.M))
    assert len(listed) > 10
    used = {
        (each.path.name, code)
        for path in FILES
        for each in read_scenarios(path)
        for code in each.sources
    }
    used |= {(card.id, code) for card in GAME.cards.values() for code in card.sources}
    unknown = {(where, code) for where, code in used if code not in listed}
    assert not unknown
    assert {code for _, code in used} >= listed, "nobody uses it"


def test_no_two_scenarios_have_one_title() -> None:
    titles = [each.title for path in FILES for each in read_scenarios(path)]
    assert sorted(titles) == sorted(set(titles))
