"""The decks of the expansions that a match was created with are dealt, and no others."""

from __future__ import annotations

from typing import cast

import pytest

from engine import AnyGame, Fact, Refusal, Session, derive_seed
from engine.games.kings.cards import KingDeck, keep
from engine.games.kings.tokyo.facts import TokyoLaid
from engine.games.kings.tokyo.game import GAME
from tests.engine.tokyo.boxes import with_expansion
from tests.engine.tokyo.kit import Kit

BOX = KingDeck("moon_base")
keep(
    BOX,
    "moon_dust",
    "Moon Dust",
    "月尘",
    cost=1,
    copies=2,
    text="Nothing.",
    text_zh="无。",
    sources=("S-BGA",),
)
GAME_OF_TWO = with_expansion(BOX)
LATER = KingDeck("later_box")
keep(
    LATER,
    "late_comer",
    "Late Comer",
    "后来者",
    cost=1,
    text="Nothing.",
    text_zh="无。",
    sources=("S-BGA",),
    since=GAME.revision + 1,
)
SEED = derive_seed(b"tests", "k", "expansion")


def begun(expansions: tuple[str, ...], game: AnyGame) -> list[Fact]:
    session, step = Session.create(
        game, match_id="expansion", host="host", seats=2, expansions=expansions, seed=SEED
    )
    facts = list(step.facts)
    for player in ("a", "b"):
        facts += session.join(player, player, b"entropy" * 3).facts
    return [*facts, *session.start().facts]


def dealt(expansions: tuple[str, ...]) -> tuple[str, ...]:
    facts = begun(expansions, cast("AnyGame", GAME_OF_TWO))
    return next(fact.deck for fact in facts if isinstance(fact, TokyoLaid))


def test_the_deck_of_a_chosen_expansion_is_shuffled_in() -> None:
    assert dealt(("moon_base",)) == tuple(sorted((*GAME.decks[0].ids(), "moon_dust", "moon_dust")))


def test_a_card_is_dealt_from_its_revision_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """So a match that was begun before it can still be played and checked."""
    game = cast("AnyGame", with_expansion(LATER))
    before = begun(("later_box",), game)
    monkeypatch.setattr(game, "revision", GAME.revision + 1)
    now = begun(("later_box",), game)
    decks = [fact.deck for fact in (*before, *now) if isinstance(fact, TokyoLaid)]
    assert decks == [GAME.decks[0].ids(), tuple(sorted((*GAME.decks[0].ids(), "late_comer")))]
    Session.verify_rules(before, game=game)
    Session.verify_rules(now, game=game)


@pytest.mark.parametrize(("later", "asked"), [(0, []), (1, ["buy"])])
def test_made_in_a_lab_fears_no_card_of_a_later_revision(later: int, asked: list[str]) -> None:
    kit = Kit(game=with_expansion(LATER), expansions=("later_box",), revision=GAME.revision + later)
    kit.monster(1, energy=1, holds=["made_in_a_lab"]).market("jets", "wings", "tank").deck("heal")
    kit.turn(1, "112233")
    assert [kind for kind in kit.kinds if kind == "buy"] == asked


def test_without_it_the_match_is_the_base_match_fact_by_fact() -> None:
    assert begun((), cast("AnyGame", GAME_OF_TWO)) == begun((), cast("AnyGame", GAME))


def test_a_match_with_an_expansion_is_rebuilt() -> None:
    game = cast("AnyGame", GAME_OF_TWO)
    facts = begun(("moon_base",), game)
    Session.verify_rules(facts, game=game)


def test_an_expansion_that_the_game_does_not_have_is_refused() -> None:
    with pytest.raises(Refusal, match="UNKNOWN_OPTION"):
        begun(("moon_base",), cast("AnyGame", GAME))


@pytest.mark.parametrize(("expansions", "asked"), [((), []), (("moon_base",), ["buy"])])
def test_made_in_a_lab_asks_where_the_hidden_card_might_be_affordable(
    expansions: tuple[str, ...], asked: list[str]
) -> None:
    """With 1 energy no base card is, but one of the expansion is: whether it is on top is nobody's
    business.
    """
    kit = Kit(game=GAME_OF_TWO, expansions=expansions)
    kit.monster(1, energy=1, holds=["made_in_a_lab"]).market("jets", "wings", "tank").deck("heal")
    kit.turn(1, "112233")
    assert [kind for kind in kit.kinds if kind == "buy"] == asked


def test_a_deck_must_belong_to_an_expansion() -> None:
    """Else it would never be dealt, and nobody would notice."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GAME, "decks", (*GAME.decks, KingDeck("lost")))
        with pytest.raises(AssertionError, match="deck lost belongs to no expansion"):
            with_expansion(BOX)
