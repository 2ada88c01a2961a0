"""Tells a match to a person: facts in, lines out, whether live, replayed or read from a file.

What every game has is told here; how a game's table and dice look is said by its own module
(`render_kings`). Texts of facts come from the engine, in the match's language.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from engine import (
    Fact,
    MatchCreated,
    MatchEnded,
    MatchState,
    SeatTaken,
    SeedRevealed,
    describe_fact,
    empty_state,
    evolve,
)
from services.cli.main_options import Locale
from services.cli.render_kings import KingsLook
from services.cli.render_words import say

_INDENT = 2


class Look(Protocol):
    """How one game looks. `before` and `after` are the match around the fact."""

    def show(
        self, before: MatchState, after: MatchState, fact: Fact
    ) -> Sequence[RenderableType] | None:
        """What to print for a fact; None: the engine's line for it."""
        ...

    def mark(self, fact: Fact) -> tuple[str, str]:
        """Symbol and style in front of the engine's line for a fact."""
        ...

    def table(self, state: MatchState) -> RenderableType | None:
        """The whole table at a glance."""
        ...


class PlainLook:
    """The look of a game that has none of its own."""

    def show(
        self, before: MatchState, after: MatchState, fact: Fact
    ) -> Sequence[RenderableType] | None:
        """Always the engine's line."""
        return None

    def mark(self, fact: Fact) -> tuple[str, str]:
        """A dot."""
        return ("·", "")

    def table(self, state: MatchState) -> RenderableType | None:
        """None is known."""
        return None


def look_of(game: str, locale: Locale) -> Look:
    """The look of a game."""
    if game.startswith("king_of_"):
        return KingsLook(locale)
    return PlainLook()


class Narrator:
    """Prints what happens, fact by fact, and keeps the state that the facts give."""

    def __init__(self, out: Console, locale: Locale, *, lobby: bool = True) -> None:
        """`lobby`: tell also who sits down, before the first turn."""
        self.state = empty_state()
        self._out = out
        self._locale: Locale = locale
        self._lobby = lobby
        self._look: Look = PlainLook()

    def tell(self, facts: Iterable[Fact]) -> None:
        """Take over the facts of the next commit and print those that are worth a line."""
        for fact in facts:
            before = self.state
            self.state = evolve(before, fact)
            for part in self._parts(before, fact):
                self._out.print(part)

    def skip(self, facts: Iterable[Fact]) -> None:
        """Take over facts without printing them."""
        for fact in facts:
            before = self.state
            self.state = evolve(before, fact)
            if isinstance(fact, MatchCreated):
                self._look = look_of(fact.game, self._locale)

    def show_table(self) -> None:
        """Print the table as it is now."""
        table = self._look.table(self.state)
        if table is not None:
            self._out.print(Padding(table, (0, 0, 0, _INDENT)))

    def _parts(self, before: MatchState, fact: Fact) -> Sequence[RenderableType]:
        match fact:
            case MatchCreated():
                self._look = look_of(fact.game, self._locale)
                return []
            case SeatTaken() if not self._lobby:
                return []
            case SeedRevealed():
                return [indented(say(self._locale, "seed_revealed", fact.seed.hex()), "dim")]
            case MatchEnded():
                return self._ending(fact)
            case _:
                shown = self._look.show(before, self.state, fact)
                if shown is not None:
                    return shown
                line = describe_fact(self.state, fact, self._locale)
                return [marked(line, *self._look.mark(fact))] if line else []

    def _ending(self, fact: MatchEnded) -> Sequence[RenderableType]:
        winners = [self.state.name_of(seat) for seat in fact.winners]
        if winners:
            text = say(self._locale, "winners", say(self._locale, "and").join(winners))
        else:
            text = say(self._locale, "nobody_wins")
        reason = say(self._locale, f"reason.{fact.reason}") if fact.reason else ""
        parts: list[RenderableType] = [Text()]
        table = self._look.table(self.state)
        if table is not None:
            parts += [Padding(table, (0, 0, 0, _INDENT)), Text()]
        parts.append(Text.assemble(("  ★ ", "bold yellow"), (text, "bold"), f"  {reason}"))
        return parts


def marked(line: str, symbol: str, style: str) -> RenderableType:
    """One told line behind its symbol."""
    return Padding(Text.assemble((symbol, style), " ", line), (0, 0, 0, _INDENT))


def indented(line: str, style: str = "") -> RenderableType:
    """One told line without a symbol."""
    return Padding(Text(line, style=style), (0, 0, 0, _INDENT))
