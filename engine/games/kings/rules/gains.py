"""Gaining and losing points and energy, healing, tokens."""

from __future__ import annotations

from typing import Final

from engine.core.visibility import Seat
from engine.games.kings.board import KingTable
from engine.games.kings.facts import (
    EnergyGained,
    EnergyLost,
    HeartsGained,
    HeartsTrimmed,
    PointsGained,
    PointsLost,
)
from engine.games.kings.proposals import HEARTS_MAX, EnergyGain, Heal

POINTS_TO_WIN: Final = 20


def gain_points(table: KingTable, seat: Seat, amount: int, cause: str) -> None:
    """Points for a living monster; a dial ends at 20 (NOTES 2.13, option score_cap_20)."""
    monster = table.state.monster(seat)
    if table.options["score_cap_20"] == "true":
        amount = min(amount, POINTS_TO_WIN - monster.points)
    if amount > 0 and monster.alive:
        table.record(PointsGained(seat, amount, cause))


def lose_points(table: KingTable, seat: Seat, amount: int, cause: str) -> None:
    """Never below 0."""
    amount = min(amount, table.state.monster(seat).points)
    if amount > 0:
        table.record(PointsLost(seat, amount, cause))


def gain_energy(table: KingTable, seat: Seat, amount: int, cause: str) -> None:
    """Energy from the bank; cards may add to a gain."""
    if amount <= 0 or not table.state.monster(seat).alive:
        return
    gain = table.adjust(EnergyGain(seat, amount, cause))
    if gain is not None:
        table.record(EnergyGained(seat, gain.amount, cause))


def recover_energy(table: KingTable, seat: Seat, amount: int, cause: str) -> None:
    """Energy that is not a gain in the sense of the cards: nothing adds to it."""
    if amount > 0:
        table.record(EnergyGained(seat, amount, cause))


def lose_energy(table: KingTable, seat: Seat, amount: int, cause: str) -> None:
    """Spent or taken away; never below 0."""
    amount = min(amount, table.state.monster(seat).energy)
    if amount > 0:
        table.record(EnergyLost(seat, amount, cause))


def heal(table: KingTable, target: Seat, amount: int, cause: str, *, by: Seat) -> int:
    """Hearts for a living monster, up to its maximum; how many it really gained."""
    monster = table.state.monster(target)
    if amount <= 0 or not monster.alive:
        return 0
    healing = table.adjust(Heal(target, by, amount, cause))
    if healing is None:
        return 0
    gained = min(healing.amount, table.stat(HEARTS_MAX, target) - monster.hearts)
    if gained > 0:
        table.record(HeartsGained(target, gained, cause))
    return max(gained, 0)


def trim_hearts(table: KingTable, seat: Seat) -> None:
    """Hearts above the maximum are gone (B28: after a card that raised it has left)."""
    monster = table.state.monster(seat)
    over = monster.hearts - table.stat(HEARTS_MAX, seat)
    if monster.alive and over > 0:
        table.record(HeartsTrimmed(seat, over))
