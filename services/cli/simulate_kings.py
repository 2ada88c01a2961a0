"""What the simulator knows about King games: which facts are purchases, and what is conserved.

The ledger is a second, independent book-keeping from the facts: what it finds must be what the
engine's fold says.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from engine import Fact, MatchState
from engine.games.kings import facts as f
from engine.games.kings.proposals import HEARTS_MAX
from engine.games.kings.rules.gains import POINTS_TO_WIN
from engine.games.kings.state import OUTSIDE, KingsState
from engine.games.kings.tokyo.facts import TokyoLaid
from engine.games.kings.tokyo.places import BAY_OPEN_FROM, TOKYO_BAY
from services.cli.simulate_law import LawBroken

_PURCHASES: Final = (f.CardBought, f.CardTakenOver)


def purchase_of(fact: Fact) -> str:
    """The card that was bought, or ""."""
    return fact.card if isinstance(fact, _PURCHASES) else ""


class KingsLedger:
    """Hearts, energy and points of each seat, and where every card is, by the facts alone."""

    def __init__(self) -> None:
        self._deck: list[str] = []
        self._hearts: list[int] = []
        self._energy: list[int] = []
        self._points: list[int] = []

    def book(self, fact: Fact) -> None:
        """Enter a fact."""
        entry = _ENTRIES.get(type(fact))
        if entry is not None:
            entry(self, cast("Any", fact))

    def compare(self, match: MatchState) -> None:
        """Raise LawBroken unless the state says the same and is a possible one."""
        table = match.table
        if not isinstance(table, KingsState):
            return
        monsters = table.monsters
        if [each.hearts for each in monsters] != self._hearts:
            raise LawBroken("hearts are not conserved")
        if [each.energy for each in monsters] != self._energy:
            raise LawBroken("energy is not conserved")
        if [each.points for each in monsters] != self._points:
            raise LawBroken("points are not conserved")
        _check_cards(table, self._deck)
        _check_monsters(match, table)

    def between_turns(self, match: MatchState) -> None:
        """Raise LawBroken where the state may not be so when a turn begins.

        Within a turn the Bay may wait to be closed; between turns it may not.
        """
        table = match.table
        if not isinstance(table, KingsState):
            return
        if table.occupant(TOKYO_BAY) and len(table.living()) < BAY_OPEN_FROM:
            raise LawBroken("a turn began with a monster in the closed Bay")

    # -- entries -----------------------------------------------------------------------------------

    def lay(self, fact: TokyoLaid) -> None:
        self._deck = sorted(fact.deck)
        self._hearts = [fact.hearts] * fact.seats
        self._energy = [0] * fact.seats
        self._points = [0] * fact.seats

    def gain_hearts(self, fact: f.HeartsGained) -> None:
        self._hearts[fact.seat - 1] += fact.amount

    def lose_hearts(self, fact: f.HeartsLost | f.HeartsTrimmed) -> None:
        self._hearts[fact.seat - 1] -= fact.amount

    def gain_energy(self, fact: f.EnergyGained) -> None:
        self._energy[fact.seat - 1] += fact.amount

    def lose_energy(self, fact: f.EnergyLost) -> None:
        self._energy[fact.seat - 1] -= fact.amount

    def give_energy(self, fact: f.EnergyGiven) -> None:
        self._energy[fact.seat - 1] -= fact.amount
        self._energy[fact.receiver - 1] += fact.amount

    def gain_points(self, fact: f.PointsGained) -> None:
        self._points[fact.seat - 1] += fact.amount

    def lose_points(self, fact: f.PointsLost) -> None:
        self._points[fact.seat - 1] -= fact.amount

    def pay_bank(self, fact: f.CardBought) -> None:
        self._energy[fact.seat - 1] -= fact.price

    def pay_seller(self, fact: f.CardTakenOver) -> None:
        self._energy[fact.seat - 1] -= fact.price
        self._energy[fact.seller - 1] += fact.price

    def begin_anew(self, fact: f.MonsterReborn) -> None:
        self._hearts[fact.seat - 1] = fact.hearts
        self._points[fact.seat - 1] = 0

    def leave_game(self, fact: f.MonsterEliminated) -> None:
        seat = fact.seat - 1
        if self._hearts[seat]:
            raise LawBroken("a monster with hearts was eliminated")
        self._energy[seat] = self._points[seat] = 0


_Entry = Callable[[KingsLedger, Any], None]
_ENTRIES: Final[Mapping[type[Fact], _Entry]] = {
    TokyoLaid: KingsLedger.lay,
    f.HeartsGained: KingsLedger.gain_hearts,
    f.HeartsLost: KingsLedger.lose_hearts,
    f.HeartsTrimmed: KingsLedger.lose_hearts,
    f.EnergyGained: KingsLedger.gain_energy,
    f.EnergyLost: KingsLedger.lose_energy,
    f.EnergyGiven: KingsLedger.give_energy,
    f.PointsGained: KingsLedger.gain_points,
    f.PointsLost: KingsLedger.lose_points,
    f.CardBought: KingsLedger.pay_bank,
    f.CardTakenOver: KingsLedger.pay_seller,
    f.MonsterReborn: KingsLedger.begin_anew,
    f.MonsterEliminated: KingsLedger.leave_game,
}


def _check_cards(table: KingsState, deck: list[str]) -> None:
    everywhere = [each.card for each in table.holdings]
    everywhere += [slot.card for slot in table.market if slot.card]
    everywhere += table.deck
    everywhere += table.discard
    if sorted(everywhere) != deck:
        raise LawBroken("cards are not conserved")
    seats = [each.seat for each in table.holdings if not table.monster(each.seat).alive]
    if seats:
        raise LawBroken(f"seat {seats[0]} is out of the game and holds cards")


def _check_monsters(match: MatchState, table: KingsState) -> None:
    places = [each.place for each in table.monsters if each.place != OUTSIDE]
    if len(places) != len(frozenset(places)):
        raise LawBroken(f"two monsters in one place: {places}")
    capped = any(each.id == "score_cap_20" and each.value == "true" for each in match.options)
    for each in table.monsters:
        if not 0 <= each.hearts <= HEARTS_MAX.high:
            raise LawBroken(f"seat {each.seat} has {each.hearts} hearts")
        if each.energy < 0:
            raise LawBroken(f"seat {each.seat} has {each.energy} energy")
        if each.points < 0 or (capped and each.points > POINTS_TO_WIN):
            raise LawBroken(f"seat {each.seat} has {each.points} points")
        if min(each.poison, each.shrink) < 0:
            raise LawBroken(f"seat {each.seat} has fewer than no tokens")
