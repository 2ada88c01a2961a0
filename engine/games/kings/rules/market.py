"""Cards: the deck, what is for sale, buying, sweeping, leaving play (NOTES 1.11)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from engine.core.prompts import Option
from engine.core.state import Holding
from engine.core.visibility import Hidden, Seat
from engine.games.kings.board import KingTable
from engine.games.kings.facts import (
    CardBought,
    CardCopied,
    CardDiscarded,
    CardRevealed,
    CardsSwept,
    CardTakenOver,
    DeckPeeked,
    DeckReshuffled,
    EnergyLost,
)
from engine.games.kings.proposals import PRICE, Bought, Revealed, Shelf, Ware
from engine.games.kings.rules.gains import trim_hearts
from engine.games.kings.state import MARKET_SIZE

SWEEP_PRICE: Final = 2
KEEP: Final = "keep"
_SLOTS: Final = tuple([f"market:{slot}" for slot in range(MARKET_SIZE)])


# -- the deck --------------------------------------------------------------------------------------


def lay_market(table: KingTable) -> None:
    """Reveal the first cards; nobody may react."""
    for slot in range(MARKET_SIZE):
        _refill(table, slot)


def _shuffle_if_empty(table: KingTable) -> None:
    state = table.state
    if not state.deck and state.discard:
        table.record(DeckReshuffled(tuple(sorted(state.discard))))


def _refill(table: KingTable, slot: int) -> None:
    """Put the top card of the deck into a slot; with no cards left the slot stays empty."""
    _shuffle_if_empty(table)
    state = table.state
    if not state.deck:
        return
    if state.tops:
        card = state.tops[0].card
        assert not isinstance(card, Hidden), "rules run on the whole truth"
    else:
        card = state.deck[table.chance("power deck", len(state.deck))[0]]
    table.record(CardRevealed(slot, card, state.reveals + 1))


def peek(table: KingTable, seat: Seat, position: int) -> str | None:
    """Let a seat look at a card on top of the deck; the card, or None when there is none.

    A seat looks at them in order, so it knows every card that lies above.
    """
    _shuffle_if_empty(table)
    state = table.state
    if position < len(state.tops):
        card = state.tops[position].card
        assert not isinstance(card, Hidden), "rules run on the whole truth"
    else:
        unseen = list(state.deck)
        for top in state.tops:
            assert not isinstance(top.card, Hidden), "rules run on the whole truth"
            unseen.remove(top.card)
        if not unseen:
            return None
        (index,) = table.chance("power deck", len(unseen), audience=(seat,))
        card = unseen[index]
    table.record(DeckPeeked(seat, position, card))
    return card


# -- buying ----------------------------------------------------------------------------------------


def price_of(table: KingTable, seat: Seat, card_id: str) -> int:
    """What a card costs this seat now, never below 0."""
    return max(table.cost(card_id) + table.stat(PRICE, seat), 0)


def market_wares(table: KingTable, seat: Seat, numbers: tuple[int, ...] = ()) -> tuple[Ware, ...]:
    """The face-up cards as wares; only those with the given reveal numbers, if any are given."""
    discount = table.stat(PRICE, seat)
    return tuple(
        [
            Ware(
                id=_SLOTS[index],
                card=slot.card,
                price=max(table.cost(slot.card) + discount, 0),
                slot=index,
            )
            for index, slot in enumerate(table.state.market)
            if slot.card and (not numbers or slot.number in numbers)
        ]
    )


def ware_options(table: KingTable, seat: Seat, wares: tuple[Ware, ...]) -> tuple[Option, ...]:
    """The wares that the seat can pay for."""
    energy = table.state.monster(seat).energy
    return tuple(
        [_ware_option(ware.id, ware.card, ware.price) for ware in wares if ware.price <= energy]
    )


@lru_cache(maxsize=4_096)
def _ware_option(ware: str, card: str, price: int) -> Option:
    return Option(ware, f"ware:{card}:{price}")


async def buy_step(table: KingTable, seat: Seat) -> None:
    """Buy and sweep until the monster has enough (NOTES 1.11.2)."""
    while table.state.monster(seat).alive and not table.state.cut_short:
        shelf = table.adjust(Shelf(seat, market_wares(table, seat)))
        wares = () if shelf is None else shelf.wares
        options = ware_options(table, seat, wares)
        if table.state.monster(seat).energy >= SWEEP_PRICE:
            options = (*options, Option("sweep", "sweep"))
        hidden = any(ware.position >= 0 for ware in wares)
        if not options and not (hidden and _might_afford_any(table, seat)):
            return
        high = min(len(options), 1)
        answer = await table.ask(seat, "buy", high=high, options=options, secret=hidden)
        if not answer.picks:
            return
        shown = table.state.reveals
        if answer.picks[0] == "sweep":
            sweep(table, seat)
        else:
            await purchase(table, seat, next(w for w in wares if w.id == answer.picks[0]))
        await offer_revealed(table, shown)


def _might_afford_any(table: KingTable, seat: Seat) -> bool:
    """Could a card that only the seat sees be affordable, as far as the others know?

    Then the question is put even when it is not, so that nobody learns the card's price from it.
    """
    energy = table.state.monster(seat).energy
    match = table.match
    return any(
        price_of(table, seat, card.id) <= energy
        for deck in table.game.decks_of(match.expansions)
        for card in deck.dealt(match.revision)
    )


def sweep(table: KingTable, seat: Seat) -> None:
    """Pay to replace all face-up cards."""
    table.record(EnergyLost(seat, SWEEP_PRICE, "sweep"))
    cards = tuple([slot.card for slot in table.state.market if slot.card])
    table.record(CardsSwept(seat, cards))
    for slot in range(len(table.state.market)):
        _refill(table, slot)


async def purchase(table: KingTable, seat: Seat, ware: Ware) -> None:
    """Pay, take, replace from the deck, have the effect; then what others make of it."""
    if ware.seller:
        holding = await _take_over(table, seat, ware)
    else:
        holding = _take(table, seat, ware)
    me = table.game.me(table, seat, holding)
    await table.comes_into_play(me, table.acts_as(holding))
    if table.state.monster(seat).alive:
        await table.announce(Bought(seat, ware.card, holding.id, ware.provider), first=seat)


def _take(table: KingTable, seat: Seat, ware: Ware) -> Holding:
    card = table.card(ware.card)
    kept = card.kind == KEEP
    number = table.state.next_holding if kept else 0
    tokens = card.tokens_in(table.options)
    table.record(
        CardBought(seat, ware.card, ware.price, ware.slot, ware.position, kept, number, tokens)
    )
    if ware.slot >= 0:
        _refill(table, ware.slot)
    if kept:
        return table.state.holdings[-1]
    return Holding(id=0, seat=seat, card=ware.card, paid=ware.price)


async def _take_over(table: KingTable, seat: Seat, ware: Ware) -> Holding:
    before = next(each for each in table.state.holdings if each.id == ware.holding)
    table.record(CardTakenOver(seat, ware.seller, ware.card, ware.price, ware.holding))
    await left(table, before, table.acts_as(before))
    return table.state.holdings[-1]


async def offer_revealed(table: KingTable, shown: int) -> None:
    """Let cards react to everything revealed since, until nothing new is (NOTES 1.11.2)."""
    while table.state.reveals > shown:
        numbers = tuple(range(shown + 1, table.state.reveals + 1))
        shown = table.state.reveals
        await table.announce(Revealed(numbers))


# -- leaving play ----------------------------------------------------------------------------------


async def discard(table: KingTable, holding: Holding, cause: str) -> None:
    """A card in front of a monster goes to the discard pile."""
    acts_as = table.acts_as(holding)
    table.record(CardDiscarded(holding.seat, holding.card, holding.id, cause))
    await left(table, holding, acts_as)


async def left(table: KingTable, holding: Holding, acts_as: str) -> None:
    """What a monster loses with a card, and with every copy of it."""
    await table.leaves_play(table.game.me(table, holding.seat, holding), acts_as)
    trim_hearts(table, holding.seat)
    if all(each.id != holding.id for each in table.state.holdings):
        await copies_end(table, holding, acts_as)


async def copies_end(table: KingTable, holding: Holding, acts_as: str) -> None:
    """A card has left play: whatever copied it is idle now, and its owners lose what it
    gave them.
    """
    for copy in table.state.holdings:
        if copy.copies == holding.id:
            await table.leaves_play(table.game.me(table, copy.seat, copy), acts_as)
            trim_hearts(table, copy.seat)


async def copy_card(table: KingTable, holding: Holding, model: Holding) -> None:
    """The holding acts as the model from now on, as if that had just been bought."""
    before = table.acts_as(holding)
    tokens = table.card(model.card).tokens_in(table.options)
    table.record(CardCopied(holding.seat, holding.id, model.id, model.card, tokens))
    if before != holding.card:
        await table.leaves_play(table.game.me(table, holding.seat, holding), before)
    trim_hearts(table, holding.seat)
    me = table.game.me(table, holding.seat, holding)
    await table.comes_into_play(me, model.card, intrinsic=False)
