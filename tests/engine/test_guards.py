"""Mistakes that the author of a card makes are said at once, with the card's id."""

from __future__ import annotations

import pytest

from engine import Answer, Ask
from engine.games.kings.board import KingTable
from engine.games.kings.cards import FIRST, SECOND, KingCard, KingDeck, discard, keep
from engine.games.kings.me import KingMe
from engine.games.kings.proposals import Heal, Loss
from tests.engine.tokyo.boxes import with_expansion
from tests.engine.tokyo.kit import Kit


def _card() -> KingCard:
    return keep(
        KingDeck("imaginary"),
        "odd_card",
        "Odd Card",
        "怪牌",
        cost=1,
        text="-",
        text_zh="-",
        sources=("S-BGA",),
    )


async def _react(_: KingMe, loss: Loss) -> Loss | None:
    return loss


def _change(_: KingMe, loss: Loss) -> Loss | None:
    return loss


def test_an_offer_must_be_async() -> None:
    with pytest.raises(AssertionError, match="odd_card: what is offered is an async def"):
        _card().offers(Loss)(_change)  # type: ignore[arg-type]  # the mistake


def test_a_replacement_must_be_plain() -> None:
    with pytest.raises(AssertionError, match="odd_card: what replaces is a plain def"):
        _card().replaces(Loss)(_react)  # type: ignore[arg-type]  # the mistake


def test_one_offer_for_each_proposal() -> None:
    """Both would be the same option of the same question."""
    card = _card()
    card.offers(Loss, price=1)(_react)
    card.offers(Heal)(_react)  # type: ignore[arg-type]  # only the type of the proposal matters here
    with pytest.raises(AssertionError, match="odd_card: two offers on one Loss"):
        card.offers(Loss, price=2, order=1)(_react)


def test_one_offer_for_each_edition() -> None:
    """No match has both; but one for all editions would come beside them."""
    card = _card()
    card.offers(Loss, under=FIRST)(_react)
    card.offers(Loss, under=SECOND)(_react)
    with pytest.raises(AssertionError, match="two offers"):
        card.offers(Loss)(_react)


async def _wait_for_nobody(_: KingTable) -> None:
    await Ask(())


def test_no_questions_need_no_answers() -> None:
    kit = Kit()
    answers: list[tuple[Answer, ...]] = []

    async def rule(table: KingTable) -> None:
        answers.append(await table.ask_all([]))

    kit.play(rule)
    assert answers == [()]


def test_a_rule_that_waits_for_nobody_is_noticed() -> None:
    with pytest.raises(AssertionError, match="the rule waits, but nobody is asked"):
        Kit().play(_wait_for_nobody)


def test_a_discard_card_that_asks_is_one_block() -> None:
    deck = KingDeck("imaginary")
    card = discard(
        deck,
        "moon_shot",
        "Moon Shot",
        "登月",
        cost=1,
        text="Take 1 energy or 1 point.",
        text_zh="得 1 能量或 1 分。",
        asks={"energy": ("{seat}, take the energy?", "{seat}，要能量吗？")},
        sources=("S-BGA",),
    )

    @card.gained()
    async def choose(me: KingMe) -> None:
        if await me.wants("moon_shot.energy"):
            me.gain_energy(1)
        else:
            me.gain_points(1)

    game = with_expansion(deck)
    assert game.asks("moon_shot.energy")
    energy = Kit(game=game).buy(1, "moon_shot", moon_shot__energy="yes").at(1)
    points = Kit(game=game).buy(1, "moon_shot", moon_shot__energy="no").at(1)
    assert (energy.energy, energy.points, points.energy, points.points) == (1, 0, 0, 1)


def test_an_answer_left_over_when_buying_fails() -> None:
    with pytest.raises(AssertionError, match="answers left over"):
        Kit().buy(1, "heal", reroll="1")
