"""The benchmark of the engine measures what it says; how fast this machine is, is not tested."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from engine import Fact
from engine.games.kings.state import KingsState
from load_tests import engine_speed
from load_tests.engine_speed import Figures, Recorded, crowded, last_recorded, measure, ordinary


def facts_again(match: Recorded) -> list[Fact]:
    session, begun = match.begin()
    facts = list(begun)
    for prompt, seat, answer in match.answers:
        facts += session.answer(prompt, seat, answer).facts
    return facts


@pytest.mark.parametrize("make", [ordinary, crowded])
def test_a_match_played_again_gives_the_same_facts(make: Callable[[int], Recorded]) -> None:
    match = make(3)
    assert facts_again(match) == list(match.facts)
    assert match.turns > 0
    assert match.open_turns


def test_all_keep_cards_lie_on_a_crowded_table() -> None:
    session, _ = crowded(1).begin()
    held = [each.card for each in cast("KingsState", session.state.table).holdings]
    assert sorted(set(held)) == sorted(
        card.id for card in engine_speed.GAME.cards.values() if card.kind == "keep"
    )
    cards = engine_speed.GAME.cards.values()
    assert len(held) == sum([card.copies for card in cards if card.kind == "keep"])


def test_a_report_can_be_read_again() -> None:
    first = Figures(yard=1000, turns=9000, crowd=3000, fold=2_000_000, rebuild=100)
    faster = Figures(yard=2000, turns=36_000, crowd=6000, fold=2_000_000, rebuild=50)
    text = engine_speed._HEAD + engine_speed._row("a", first, None) + "\n"
    assert last_recorded(engine_speed._HEAD) is None
    assert last_recorded(text) == first
    row = engine_speed._row("b", faster, first)
    # Twice as fast a machine: 4, 2, 1 and 2 times the figure are 2, 1, 0.5 and 1 times the speed.
    assert "36,000 (2.00)" in row
    assert "6,000 (1.00)" in row
    assert "2,000,000 (0.50)" in row
    assert "50 (1.00)" in row


def test_everything_is_measured() -> None:
    now = measure(matches=2, rounds=1)
    assert min(now.yard, now.turns, now.crowd, now.fold, now.rebuild) > 0
