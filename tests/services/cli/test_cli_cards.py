"""`diceledger cards`: every card with both wordings, its sources and its scenarios."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from engine import find_game
from services.cli.main import app

GAME = find_game("king_of_tokyo")
COPIES = sum(len(deck.ids()) for deck in GAME.decks)


def shown(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["cards", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def entries() -> dict[str, dict[str, Any]]:
    found = json.loads(shown("--game", "king_of_tokyo", "--json"))
    assert found["game"] == "king_of_tokyo"
    return {entry["id"]: entry for entry in found["cards"]}


def test_every_card_is_listed_once_with_its_copies(entries: dict[str, dict[str, Any]]) -> None:
    assert list(entries) == list(GAME.cards)
    assert sum(entry["copies"] for entry in entries.values()) == COPIES
    assert {entry["kind"] for entry in entries.values()} == {"keep", "discard"}


@pytest.mark.parametrize("card_id", sorted(GAME.cards))
def test_an_entry_is_complete(card_id: str, entries: dict[str, dict[str, Any]]) -> None:
    entry, card = entries[card_id], GAME.cards[card_id]
    assert entry["cost"] == card.cost > 0
    assert entry["name"] and entry["name_zh"] and entry["text"] and entry["text_zh"]
    assert entry["sources"]
    assert entry["scenarios"], f"no scenario covers {card_id}"


def test_what_an_option_changes_is_told(entries: dict[str, dict[str, Any]]) -> None:
    (first,) = entries["battery_monster"]["variants"]
    assert (first["option"], first["value"], first["cost"]) == ("card_text_edition", "first", 2)
    assert first["text"] != entries["battery_monster"]["text"]
    assert entries["wings"]["variants"] == []


@pytest.mark.parametrize(
    ("locale", "name", "wording"),
    [("en", "Extra Head ×2", "You roll one die more."), ("zh", "多余的头 ×2", "你多掷一颗骰子。")],
)
def test_the_list_for_people(locale: str, name: str, wording: str) -> None:
    listed = shown("--locale", locale)
    assert name in listed
    assert wording in listed
    assert "extra_head" in listed
    assert str(COPIES) in listed


def test_one_card_in_full() -> None:
    page = shown("--card", "battery_monster")
    assert "Battery Monster" in page
    assert "电池怪兽" in page
    assert "card_text_edition=first: 2 energy" in page
    assert "S-BGA" in page
    assert "cards/battery_monster" in page
    assert "Wings" not in page
    only = json.loads(shown("--card", "wings", "--json"))["cards"]
    assert [entry["id"] for entry in only] == ["wings"]


def test_an_unknown_card_names_what_is_near() -> None:
    result = CliRunner().invoke(app, ["cards", "--card", "wing"])
    assert result.exit_code == 1
    assert "no card 'wing'" in str(result.exception)
    assert "wings" in str(result.exception)
