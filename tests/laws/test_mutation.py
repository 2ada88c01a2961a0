"""The mutation check finds something to take out of every card, and takes out just that."""

from __future__ import annotations

import ast

import pytest

from engine import find_game
from tests.laws.mutation import GAME_ID, ROOT, Mutation, chosen, mutations

FOUND = mutations()


def test_every_card_has_something_to_take_out() -> None:
    assert list(FOUND) == list(find_game(GAME_ID).cards)
    assert all(FOUND.values())


@pytest.mark.parametrize("card", sorted(FOUND))
def test_what_is_taken_out_leaves_a_module_that_differs(card: str) -> None:
    for each in FOUND[card]:
        source = (ROOT / each.module).read_text(encoding="utf-8")
        mutated = each.applied(source)
        assert ast.dump(ast.parse(mutated)) != ast.dump(ast.parse(source)), each


def test_a_number_that_a_card_adds_is_taken_out_of_its_call() -> None:
    (only,) = FOUND["giant_brain"]
    assert only.text.startswith("adds={ROLLS: 1}")


def test_a_seed_chooses_one_statement_a_card() -> None:
    once, again = (chosen([], 20, "7", every=False) for _ in range(2))
    assert once == again
    assert len({each.card for each in once}) == len(once) == 20
    every: list[Mutation] = chosen(["wings"], 0, "", every=True)
    assert every == FOUND["wings"]
