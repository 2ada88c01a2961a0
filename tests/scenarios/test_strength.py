"""The scenarios of a card notice when any part of it is missing, or costs something else.

A part is one function that the card hangs into the rules, what must be paid for that, one number
that it adds, its cost and its tokens. Each is taken away in turn; one of the scenarios that cover
the card must then fail. Functions that only matches of older revisions of the rules have are left
to the golden logs: scenarios are played by the present rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest

from engine import Card, GameState, Me, find_game
from engine.core.cards import Hook
from services.cli.scenario_model import Scenario, read_scenarios
from services.cli.scenario_play import run_scenario

CARDS = find_game("king_of_tokyo").cards
T = TypeVar("T")


@cache
def scenarios() -> dict[str, list[Scenario]]:
    found: dict[str, list[Scenario]] = {card: [] for card in CARDS}
    for path in sorted(Path(__file__).parent.rglob("*.yaml")):
        for scenario in read_scenarios(path):
            for card in scenario.cards:
                found[card].append(scenario)
    return found


@contextmanager
def without(items: list[T], index: int) -> Iterator[None]:
    item = items.pop(index)
    try:
        yield
    finally:
        items.insert(index, item)


@contextmanager
def one_less(what: Card[Me[GameState]] | Hook[Me[GameState]], number: str) -> Iterator[None]:
    value = getattr(what, number)
    setattr(what, number, value - 1)
    try:
        yield
    finally:
        setattr(what, number, value)


def parts_of(card: Card[Me[GameState]]) -> Iterator[tuple[str, AbstractContextManager[None]]]:
    for hooks in (card.hooks, card.intrinsic):
        for index, hook in enumerate(list(hooks)):
            yield f"{hook.kind} {hook.act.__name__}", without(hooks, index)
            if hook.price:
                yield f"price of {hook.act.__name__}", one_less(hook, "price")
    for index, (stat, _, _) in enumerate(list(card.adds)):
        yield f"adds {stat.name}", without(card.adds, index)
    yield "cost", one_less(card, "cost")
    if card.tokens:
        yield "tokens", one_less(card, "tokens")


def test_what_may_be_done_at_any_time_is_a_part() -> None:
    names = [name for name, _ in parts_of(CARDS["rapid_healing"])]
    assert {"anytime heal_at_leisure", "price of heal_at_leisure"} <= set(names)


@pytest.mark.parametrize("card", sorted(CARDS))
def test_no_part_of_a_card_can_go_unnoticed(card: str) -> None:
    unnoticed = []
    for name, taken_away in parts_of(CARDS[card]):
        with taken_away:
            if all(run_scenario(each).ok for each in scenarios()[card]):
                unnoticed.append(name)
    assert not unnoticed
