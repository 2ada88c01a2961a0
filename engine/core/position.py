"""A table laid by hand: what a game must offer so that positions can be written down and looked at.

Scenario files and tests use it. A position becomes ordinary facts, so a match that starts from one
is folded, rebuilt and redacted like any other. Nothing here knows a game.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import msgspec

from engine.core.state import GameState
from engine.core.visibility import Fact, Seat

LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Written positions call the seats A, B, C, … in turn order."""


def letter_of(seat: Seat) -> str:
    """The letter of a seat: A for seat 1."""
    return LETTERS[seat - 1]


class BadPosition(ValueError):  # named for what is wrong
    """Such a position cannot be.

    path: where in the position, e.g. ("A", "cards", 0) or ("market", 2). legal: what would be
    right, where that is a list.
    """

    def __init__(
        self, path: tuple[str | int, ...], message: str, legal: tuple[str, ...] = ()
    ) -> None:
        self.path = path
        self.message = message
        self.legal = legal
        super().__init__(message)


class Positions(Protocol):
    """How positions of one game are written.

    player and table are structs whose fields are what can be said about a seat and about the table;
    a struct whose other fields all have defaults may be written as its first field alone.
    """

    @property
    def player(self) -> type[msgspec.Struct]:
        """What can be said about one seat."""

    @property
    def table(self) -> type[msgspec.Struct]:
        """What can be said about the table."""

    @property
    def scripts(self) -> Mapping[str, str]:
        """What scripted draws are called, and the domain of the draws: {"roll": "die"}."""

    @property
    def at_setup(self) -> tuple[str, ...]:
        """What may be said about the table when a match begins with setting it up."""

    def lay(
        self,
        players: Sequence[msgspec.Struct],
        table: msgspec.Struct,
        *,
        turn: Seat,
        options: Mapping[str, str],
    ) -> tuple[Fact, ...]:
        """The facts, after MatchStarted, that make the position; the next turn is that of `turn`.

        Raises BadPosition.
        """

    def prepared(self, table: msgspec.Struct) -> Mapping[str, Sequence[str]]:
        """Draws that the position itself decides, by domain: the order of a deck."""

    def look(self, state: GameState) -> tuple[Sequence[msgspec.Struct], msgspec.Struct]:
        """The opposite of `lay`: how a table would be written down as it is now."""

    def values(self, state: GameState, domain: str, words: Sequence[str]) -> tuple[int, ...]:
        """Scripted words as values of a draw. Raises BadPosition with the index of a bad word."""
