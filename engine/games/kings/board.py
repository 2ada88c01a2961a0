"""What the shared rules must know about the map of one of the games, and nothing more."""

from __future__ import annotations

from typing import Protocol, cast

from engine.core.table import Me, Table
from engine.games.kings.state import KingsState

KingTable = Table[KingsState]
KingMeBase = Me[KingsState]


class Board(Protocol):
    """The map of a King game."""

    @property
    def prized(self) -> tuple[str, ...]:
        """The places that everybody fights for; a monster there is "in Tokyo"."""

    def monster_gone(self, table: KingTable, *, by_dice: bool) -> None:
        """A monster was eliminated and its place is free."""


def board_of(table: KingTable) -> Board:
    """The board of the table's game."""
    return cast("Board", table.game.board)


def is_prized(table: KingTable, place: str) -> bool:
    """Is the place one that everybody fights for?"""
    return place in board_of(table).prized
