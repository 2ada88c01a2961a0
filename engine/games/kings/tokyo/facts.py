"""Facts and state that only King of Tokyo has."""

from __future__ import annotations

from engine.core.state import begins
from engine.core.visibility import Fact, Public, Seat
from engine.games.kings.state import MARKET_SIZE, OUTSIDE, KingsState, Monster, Slot


class TokyoState(KingsState, frozen=True, omit_defaults=True, kw_only=True, tag="king_of_tokyo"):
    """The table of King of Tokyo."""


class TokyoLaid(Fact, frozen=True, tag="tokyo_laid"):
    """The table is laid: so many monsters, and this deck as a sorted multiset."""

    seats: Public[int]
    hearts: Public[int]
    deck: Public[tuple[str, ...]]


@begins(TokyoLaid)
def evolve_tokyo_laid(fact: TokyoLaid) -> TokyoState:
    seats = range(1, fact.seats + 1)
    return TokyoState(
        monsters=tuple(
            [Monster(seat=Seat(seat), hearts=fact.hearts, place=OUTSIDE) for seat in seats]
        ),
        market=tuple([Slot() for _ in range(MARKET_SIZE)]),
        deck=fact.deck,
    )
