"""What cards may react to: proposals (about to happen), windows (when optional actions fit) and
happenings.

Proposals are nouns and may be replaced or cancelled; happenings have happened.
"""

from __future__ import annotations

import msgspec

from engine.core.cards import Stat
from engine.core.visibility import NOBODY, Seat
from engine.games.kings.faces import Face

# -- numbers that cards change ---------------------------------------------------------------------

DICE = Stat("dice", 6)
ROLLS = Stat("rolls", 3, low=1)
PRICE = Stat("price", 0, low=-99)
HEARTS_MAX = Stat("hearts_max", 10, high=12)
SMASHES = Stat("smashes", 0)
"""Smashes added whatever was rolled (NOTES 1.5: flat additions come first)."""
SMASHES_ON_SMASH = Stat("smashes_on_smash", 0)
"""Smashes added to a result that already has one, added ones included."""

# -- proposals -------------------------------------------------------------------------------------


class Loss(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A monster is about to lose hearts: one entry per victim and event.

    wounds: by smashes of another monster, so it may yield and gets tokens. held: kept back until
    the yield decision. settled: was kept back, and is due now.
    """

    target: Seat
    source: Seat = NOBODY
    amount: int
    cause: str
    wounds: bool = False
    held: bool = False
    settled: bool = False

    def less(self, amount: int) -> Loss | None:
        """The loss with so much of it cancelled; None when nothing is left."""
        left = self.amount - amount
        return msgspec.structs.replace(self, amount=left) if left > 0 else None


class Assault(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Everything one monster is about to do to others at once: by smashes (then smashes may be 1 or
    more, and
    a target's amount may still be 0) or by a card."""

    source: Seat
    by_dice: bool
    smashes: int
    losses: tuple[Loss, ...]

    def plus(self, target: Seat, amount: int, cause: str) -> Assault:
        """With more hearts lost by the target; part of the same loss where it already has one."""
        losses = list(self.losses)
        for index, loss in enumerate(losses):
            if loss.target == target:
                losses[index] = msgspec.structs.replace(loss, amount=loss.amount + amount)
                break
        else:
            losses.append(Loss(target=target, source=self.source, amount=amount, cause=cause))
        return msgspec.structs.replace(self, losses=tuple(losses))


class Aim(msgspec.Struct, frozen=True, gc=False):
    """Whom the smashes of the source hit."""

    source: Seat
    targets: tuple[Seat, ...]


class EnergyGain(msgspec.Struct, frozen=True, gc=False):
    """A seat is about to get energy."""

    seat: Seat
    amount: int
    cause: str


class Heal(msgspec.Struct, frozen=True, gc=False):
    """A monster is about to gain hearts, through `by`."""

    target: Seat
    by: Seat
    amount: int
    cause: str


class Ware(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Something the buyer may buy now. provider: the holding that makes it possible (0: the
    rules).
    """

    id: str
    card: str
    price: int
    slot: int = -1
    position: int = -1
    holding: int = 0
    seller: Seat = NOBODY
    provider: int = 0


class Shelf(msgspec.Struct, frozen=True, gc=False):
    """All that the buyer may buy now; cards add to it."""

    buyer: Seat
    wares: tuple[Ware, ...]


class HeartUse(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One way to use heart dice. limit: dice that can be used so. provider: as in Ware."""

    id: str
    subject: str
    limit: int
    target: Seat
    provider: int = 0


class HeartUses(msgspec.Struct, frozen=True, gc=False):
    """All ways to use this turn's heart dice; cards add to it."""

    seat: Seat
    hearts: int
    uses: tuple[HeartUse, ...]


# -- windows: nothing is changed unless somebody takes an offer ------------------------------------


class RollWindow(msgspec.Struct, frozen=True, gc=False):
    """Between two rolls. rolls_left: offers may add to it."""

    seat: Seat
    rolls_left: int


class ChangeWindow(msgspec.Struct, frozen=True, gc=False):
    """After the last roll, when its owner may still change dice (NOTES 1.4.2)."""

    seat: Seat


class ThrownDice(msgspec.Struct, frozen=True, gc=False):
    """Dice thrown for a card; its owner may still change them."""

    seat: Seat
    faces: tuple[Face, ...]
    cause: str


class ProbedDie(msgspec.Struct, frozen=True, gc=False):
    """The seat has rerolled one of the active monster's dice and may still use cards on
    that die.
    """

    seat: Seat
    die: int


class EnergyAtRisk(msgspec.Struct, frozen=True, gc=False):
    """A monster is about to lose energy to something that it may still spend it on."""

    target: Seat


class EndWindow(msgspec.Struct, frozen=True, gc=False):
    """Cards were sold; nothing else of the turn's end has happened yet. (In revision 1 also where
    none were: there were no actions at any time.)
    """

    seat: Seat


# -- happenings ------------------------------------------------------------------------------------


class TurnStarted(msgspec.Struct, frozen=True, gc=False):
    """Start effects that come before the Tokyo bonus."""

    seat: Seat


class BonusPaid(msgspec.Struct, frozen=True, gc=False):
    """The monster started its turn in Tokyo and got its bonus."""

    seat: Seat


class StartEnded(msgspec.Struct, frozen=True, gc=False):
    """The last thing before rolling."""

    seat: Seat


class LastRollDone(msgspec.Struct, frozen=True, gc=False):
    """The active seat will not roll again; others may interfere (NOTES 1.4.1)."""

    seat: Seat


class ResolutionBegan(msgspec.Struct, frozen=True, gc=False):
    """The result is final (NOTES 1.6.1: effects of combinations)."""

    seat: Seat


class NumberScored(msgspec.Struct, frozen=True, gc=False):
    """Three or more of a number were scored."""

    seat: Seat
    face: Face
    count: int


class SmashesResolved(msgspec.Struct, frozen=True, gc=False):
    """The smashes of this turn have been dealt; targets may be empty."""

    seat: Seat
    smashes: int
    targets: tuple[Seat, ...]


class HeartsSpent(msgspec.Struct, frozen=True, gc=False):
    """Heart dice were used for something that a card provides."""

    seat: Seat
    use: HeartUse
    amount: int


class HeartsWereLost(msgspec.Struct, frozen=True, gc=False):
    """A monster really lost hearts and lives."""

    seat: Seat
    amount: int
    by: Seat


class Wounded(msgspec.Struct, frozen=True, gc=False):
    """A monster really lost hearts to the smashes of another one and lives."""

    seat: Seat
    by: Seat


class ZeroReached(msgspec.Struct, frozen=True, gc=False):
    """A monster fell to 0 hearts (NOTES 1.8.4)."""

    seat: Seat
    by: Seat


class Dying(msgspec.Struct, frozen=True, gc=False):
    """A monster at 0 hearts is about to be eliminated unless something brings it back."""

    seat: Seat
    by: Seat


class Yielded(msgspec.Struct, frozen=True, gc=False):
    """A monster left Tokyo by choice. taker: who is about to take the place (0: nobody)."""

    seat: Seat
    place: str
    taker: Seat


class Bought(msgspec.Struct, frozen=True, gc=False):
    """A card was bought and has had its effect. holding: 0 for discard cards. provider: as
    in Ware.
    """

    seat: Seat
    card: str
    holding: int
    provider: int


class Revealed(msgspec.Struct, frozen=True, gc=False):
    """New cards are for sale; numbers: their reveal numbers."""

    numbers: tuple[int, ...]


class SaleTime(msgspec.Struct, frozen=True, gc=False):
    """Cards may be sold, before all other end effects (NOTES 1.12.1)."""

    seat: Seat


class TurnEnding(msgspec.Struct, frozen=True, gc=False):
    """End effects (NOTES 1.12.3)."""

    seat: Seat
