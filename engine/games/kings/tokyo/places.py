"""Tokyo City, Tokyo Bay and outside: who is hit, who may yield, who enters (NOTES 1.7, 1.9,
1.10).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from engine.core.prompts import Answer, Option, Prompt, PromptId
from engine.core.visibility import NOBODY, Seat
from engine.games.kings.board import KingTable
from engine.games.kings.facts import MonsterMoved, PlaceEntered, PlaceHeld, PlaceYielded
from engine.games.kings.proposals import Loss, Yielded
from engine.games.kings.rules.gains import gain_energy, gain_points
from engine.games.kings.rules.losses import Aftermath, lose_hearts
from engine.games.kings.state import OUTSIDE, KingsState

TOKYO_CITY: Final = "tokyo_city"
TOKYO_BAY: Final = "tokyo_bay"
BAY_OPEN_FROM: Final = 5
"""The Bay is open while so many monsters live."""

_STAY: Final = "stay"
_YIELD: Final = "yield"
_STAY_OR_YIELD: Final = (Option(_STAY), Option(_YIELD))
_STAYS: Final = Answer(picks=(_STAY,))


class TokyoBoard:
    """The map of King of Tokyo."""

    prized = (TOKYO_CITY, TOKYO_BAY)

    def monster_gone(self, table: KingTable, *, by_dice: bool) -> None:
        """The Bay may have to close (B6). NOTES 2.5: who comes first when the City was just
        conquered.
        """
        if table.options["bay_close_priority"] == "attacker_first" and by_dice:
            active = table.state.monster(table.state.active)
            if active.alive and active.place == OUTSIDE and not table.state.occupant(TOKYO_CITY):
                return
        close_bay(table)


def is_two_player_energy(table: KingTable) -> bool:
    """NOTES 2.3: with two players Tokyo gives energy instead of points."""
    return table.seats == 2 and table.options["two_player_energy_variant"] == "true"


def targets_of(state: KingsState, attacker: Seat) -> tuple[Seat, ...]:
    """Whom smashes hit: from outside all in Tokyo, from Tokyo all outside (NOTES 1.7)."""
    outside = state.monster(attacker).place == OUTSIDE
    return tuple(
        [
            seat
            for seat in state.clockwise(attacker)
            if seat != attacker and (state.monster(seat).place != OUTSIDE) == outside
        ]
    )


def close_bay(table: KingTable) -> None:
    """Fewer than five monsters: whoever is in the Bay must leave it (NOTES 2.4); no points for
    that.
    """
    state = table.state
    occupant = state.occupant(TOKYO_BAY)
    if not occupant or len(state.living()) >= BAY_OPEN_FROM:
        return
    may_move = table.options["bay_close_rule"] == "move_to_city_if_empty"
    free = may_move and not state.occupant(TOKYO_CITY)
    table.record(MonsterMoved(occupant, TOKYO_CITY if free else OUTSIDE, "bay_closed"))


def free_place(state: KingsState) -> str:
    """Where a monster would enter: the City first; "" when Tokyo is full."""
    if not state.occupant(TOKYO_CITY):
        return TOKYO_CITY
    if len(state.living()) >= BAY_OPEN_FROM and not state.occupant(TOKYO_BAY):
        return TOKYO_BAY
    return ""


def enter(table: KingTable, seat: Seat, place: str) -> None:
    """Enter Tokyo: 1 point, or 1 energy in the two-player variant."""
    table.record(PlaceEntered(seat, place))
    if is_two_player_energy(table):
        gain_energy(table, seat, 1, "entering_tokyo")
    else:
        gain_points(table, seat, 1, "entering_tokyo")


def enter_step(table: KingTable, seat: Seat) -> None:
    """The active monster enters a free Tokyo (NOTES 1.10.2 and 2.1)."""
    state = table.state
    monster = state.monster(seat)
    allowed = table.options["tokyo_entry_rule"] == "mandatory_step" or state.count("smash") > 0
    if monster.alive and monster.place == OUTSIDE and allowed:
        place = free_place(state)
        if place:
            enter(table, seat, place)
    close_bay(table)


async def ask_to_yield(table: KingTable, aftermath: Aftermath) -> None:
    """Every wounded monster in Tokyo stays or yields; City and Bay decide at the same time,
    hidden.
    """
    held = {loss.target: loss for loss in aftermath.held}
    seats = [
        seat
        for seat in table.state.clockwise(table.state.active)
        if (seat in aftermath.wounded or seat in held)
        and table.state.monster(seat).place != OUTSIDE
    ]
    if not seats:
        # Whoever was moved out of Tokyo meanwhile has not yielded.
        await _settle(table, aftermath.held)
        return
    answers = await table.ask_all(
        [
            Prompt(
                PromptId(""),
                seat,
                "yield_tokyo",
                low=1,
                options=_STAY_OR_YIELD,
                default=_STAYS,
                cause="held_back" if seat in held else "",
            )
            for seat in seats
        ]
    )
    left: list[tuple[Seat, str]] = []
    for seat, answer in zip(seats, answers, strict=True):
        place = table.state.monster(seat).place
        if answer.picks == (_YIELD,):
            table.record(PlaceYielded(seat, place))
            left.append((seat, place))
        else:
            table.record(PlaceHeld(seat, place))
    gone = [seat for seat, _ in left]
    await _settle(table, [loss for seat, loss in held.items() if seat not in gone])
    await _leavers(table, left)


async def _settle(table: KingTable, losses: Iterable[Loss]) -> None:
    """Losses that were held back for a yield that did not come (NOTES 1.9.2, B4)."""
    due = [
        Loss(
            target=loss.target,
            source=loss.source,
            amount=loss.amount,
            cause=loss.cause,
            wounds=loss.wounds,
            settled=True,
        )
        for loss in losses
    ]
    if due:
        await lose_hearts(table, due, source=due[0].source, by_dice=True)


async def _leavers(table: KingTable, left: list[tuple[Seat, str]]) -> None:
    places = [place for _, place in left]
    bay = table.state.occupant(TOKYO_BAY)
    if TOKYO_CITY in places and bay and table.options["bay_shift_on_city_yield"] == "true":
        table.record(MonsterMoved(bay, TOKYO_CITY, "bay_shift"))
    for seat, place in left:
        active = table.state.monster(table.state.active)
        enters = active.alive and active.place == OUTSIDE
        taker = active.seat if enters else NOBODY
        await table.announce(Yielded(seat, place, taker), first=table.state.active)
