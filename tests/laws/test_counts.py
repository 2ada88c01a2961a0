"""How many ways small positions can go: committed figures, so no rule changes unnoticed."""

from __future__ import annotations

import json
from typing import cast

import pytest

from engine import Answer, Option, Prompt, PromptId, Seat
from tests.laws.counting import FIGURES, GAME, answers_of, count, figures_of, position

COMMITTED = cast("dict[str, dict[str, list[int]]]", json.loads(FIGURES.read_text("utf-8")))


@pytest.mark.parametrize("card_id", list(GAME.cards))
def test_a_card_opens_as_many_ways_as_ever(card_id: str) -> None:
    """A turn with two dice and the card in play, in every position of its owner; all draws and all
    legal answers. After a change of rules that was meant: `python -m tests.laws.counting`."""
    assert figures_of(card_id) == COMMITTED[card_id]


def test_every_card_has_figures() -> None:
    assert list(COMMITTED) == list(GAME.cards)


def test_one_die_can_be_rolled_as_often_as_the_rules_say() -> None:
    """Six faces; each may be kept or rolled again, twice. A smash leaves a monster with 2 hearts
    the choice to stay or yield; without energy nobody buys, a heart removes a shrink token or
    heals.
    """
    rolls = 6 * (1 + 6 * (1 + 6))
    # The last roll ends in each face equally often.
    smashes, hearts = rolls // 6, rolls // 6
    found = count(position(dice=1, energy=0), with_rerolls=True)
    assert found.paths == rolls + smashes + hearts
    assert found.cut == 0


def test_all_answers_are_legal_and_different() -> None:
    options = tuple(Option(name) for name in "abc")
    select = Prompt(PromptId("p"), Seat(1), "x", "select", 1, 2, options, (), Answer(picks=("a",)))
    assert [each.picks for each in answers_of(select, with_rerolls=True)] == [
        *(("a",), ("b",), ("c",)),
        *(("a", "b"), ("a", "c"), ("b", "c")),
    ]
    order = Prompt(PromptId("p"), Seat(1), "resolution_order", "select", 3, 3, options)
    assert len(answers_of(order, with_rerolls=True)) == 6
    number = Prompt(PromptId("p"), Seat(1), "x", "number", 2, 4)
    assert [each.number for each in answers_of(number, with_rerolls=True)] == [2, 3, 4]
    shares = Prompt(PromptId("p"), Seat(1), "x", "allocate", 2, 2, options, (2, 1, 1))
    assert [each.amounts for each in answers_of(shares, with_rerolls=True)] == [
        *((0, 1, 1), (1, 0, 1), (1, 1, 0), (2, 0, 0)),
    ]
