"""The state of a King game. Numbers only; what they mean is said by the rules."""

from __future__ import annotations

from typing import Final

import msgspec

from engine.core.state import GameState, Holding
from engine.core.visibility import NOBODY, Hidden, Seat
from engine.games.kings.faces import Face

OUTSIDE: Final = "outside"
HEARTS_AT_START: Final = 10
MARKET_SIZE: Final = 3


class Monster(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """One seat's monster.

    guarded: loses no hearts for the rest of the turn. harm: hearts that anybody lost through this
    monster in this turn. poison, shrink: tokens on it.
    """

    seat: Seat
    hearts: int = HEARTS_AT_START
    energy: int = 0
    points: int = 0
    place: str
    alive: bool = True
    poison: int = 0
    shrink: int = 0
    guarded: bool = False
    harm: int = 0


class Slot(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One face-up card for sale; number counts revealed cards, card is "" when the slot is
    empty.
    """

    card: str = ""
    number: int = 0


class TopCard(msgspec.Struct, frozen=True, gc=False):
    """A card on top of the deck that somebody has looked at; the first one is drawn next."""

    card: str | Hidden


class ExtraTurn(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """A turn to be played after this one. rank: lower ones of the same seat come first."""

    seat: Seat
    cause: str
    fewer_dice: int = 0
    rank: int = 0


class KingsState(GameState, frozen=True, omit_defaults=True, kw_only=True, tag="kings"):
    """The table.

    deck: the face-down cards as a sorted multiset, those in `tops` included. round_seat: who had
    the last turn in the normal order. added_smashes: by cards, this turn. cut_short: this turn ends
    without its end effects.
    """

    monsters: tuple[Monster, ...] = ()
    market: tuple[Slot, ...] = ()
    reveals: int = 0
    deck: tuple[str, ...] = ()
    tops: tuple[TopCard, ...] = ()
    discard: tuple[str, ...] = ()
    next_holding: int = 1
    dice: tuple[Face, ...] = ()
    added_smashes: int = 0
    fewer_dice: int = 0
    extra_turns: tuple[ExtraTurn, ...] = ()
    round_seat: Seat = NOBODY
    first: Seat = NOBODY
    cut_short: bool = False

    def monster(self, seat: Seat) -> Monster:
        """The monster of a seat."""
        return self.monsters[seat - 1]

    def living(self) -> tuple[Seat, ...]:
        """Seats whose monster is in the game, in seat order."""
        return tuple([each.seat for each in self.monsters if each.alive])

    def clockwise(self, after: Seat) -> tuple[Seat, ...]:
        """Living seats in turn order, starting with the one after `after`, which comes last."""
        count = len(self.monsters)
        order = [self.monsters[(after + step) % count] for step in range(count)]
        return tuple([each.seat for each in order if each.alive])

    def occupant(self, place: str) -> Seat:
        """Who is at a place, or NOBODY."""
        for each in self.monsters:
            if each.place == place:
                return each.seat
        return NOBODY

    def held_by(self, seat: Seat) -> tuple[Holding, ...]:
        """The cards in front of a seat, in order of acquisition."""
        return tuple([each for each in self.holdings if each.seat == seat])

    def count(self, face: Face) -> int:
        """How many dice show the face, smashes added by cards included."""
        rolled = self.dice.count(face)
        return rolled + self.added_smashes if face == "smash" else rolled
