"""How a King game looks on a terminal: dice with symbols, turn headings, the monsters' table."""

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from engine import Fact, Holding, MatchState, Option, Seat, Words, find_game
from engine.games.kings import facts as f
from engine.games.kings.state import KingsState, Monster
from services.cli.main_options import Locale
from services.cli.render_words import say

# Face: its symbol and its colour.
_FACES: Final[dict[str, tuple[str, str]]] = {
    "one": ("1", "bold white on grey30"),
    "two": ("2", "bold white on grey30"),
    "three": ("3", "bold white on grey30"),
    "heart": ("♥", "bold white on red3"),
    "energy": ("⚡", "bold black on green3"),
    "smash": ("✊", "bold black on orange1"),
    "destruction": ("▣", "bold white on purple4"),
    "celebrity": ("★", "bold black on yellow3"),
    "ouch": ("☠", "bold white on grey15"),
}
_HEART, _ENERGY, _POINT = "♥", "⚡", "★"
_OUTSIDE: Final = "outside"
# Room for "rerolls", and the space that sets the dice off.
_LABEL_CELLS: Final = 9
_SUBSTITUTE: Final = ("?", "reverse")

# What a fact is about, at a glance: symbol and colour in front of the engine's line.
_MARKS: Final[dict[type[Fact], tuple[str, str]]] = {
    f.PointsGained: (_POINT, "yellow"),
    f.PointsLost: (_POINT, "yellow dim"),
    f.EnergyGained: (_ENERGY, "green"),
    f.EnergyLost: (_ENERGY, "green dim"),
    f.EnergyGiven: (_ENERGY, "green"),
    f.HeartsGained: (_HEART, "red"),
    f.HeartsLost: (_HEART, "bold red"),
    f.HeartsTrimmed: (_HEART, "red dim"),
    f.PlaceEntered: ("▲", "bold cyan"),
    f.PlaceYielded: ("▼", "cyan"),
    f.PlaceHeld: ("■", "cyan"),
    f.MonsterMoved: ("▸", "cyan"),
    f.CardBought: ("✚", "magenta"),
    f.CardTakenOver: ("✚", "magenta"),
    f.CardCopied: ("✚", "magenta"),
    f.CardDiscarded: ("✖", "magenta dim"),
    f.CardsSwept: ("✖", "magenta dim"),
    f.MonsterEliminated: ("☠", "bold white on red3"),
    f.MonsterReborn: ("☼", "bold yellow"),
}


class KingsLook:
    """The look of King of Tokyo and King of New York."""

    def __init__(self, locale: Locale) -> None:
        self._locale: Locale = locale
        # Cards that were revealed one after the other, told together.
        self._revealed: list[str] = []
        self._rolls_for_first = False

    @property
    def legend(self) -> str:
        """Hearts, energy, points and smashes."""
        return say(self._locale, "legend.kings")

    def show(
        self, before: MatchState, after: MatchState, fact: Fact
    ) -> Sequence[RenderableType] | None:
        """Headings, dice, and the engine's lines with what they lead to."""
        match fact:
            case f.FirstPlayerRolled():
                return self._first_roll(after, fact)
            case f.TurnBegan():
                return self._heading(before, after, fact)
            case f.DiceRolled():
                return [self._dice(say(self._locale, "rolls"), fact.faces, None)]
            case f.DiceRerolled():
                label = self._cause(after, fact.cause) or say(self._locale, "rerolls")
                return [self._dice(label, _table_of(after).dice, fact.dice)]
            case f.DiceThrown():
                return [self._dice(self._cause(after, fact.cause), fact.faces, None)]
            case f.CardRevealed():
                self._revealed.append(fact.card)
                return []
            case _:
                return None

    def pending(self, state: MatchState) -> Sequence[RenderableType]:
        """One line for all cards that were revealed in a row."""
        revealed, self._revealed = self._revealed, []
        if not revealed:
            return []
        line = f"· {say(self._locale, 'for_sale')} {self._wares(state, revealed)}"
        return [Padding(Text(line, style="dim"), (0, 0, 0, 2), expand=False)]

    def aside(self, state: MatchState, fact: Fact) -> str:
        """What a fact leads to: the new number, or what a bought card does."""
        match fact:
            case f.HeartsGained() | f.HeartsLost():
                return f"→ {_HEART} {_table_of(state).monster(fact.seat).hearts}"
            case f.EnergyGained() | f.EnergyLost():
                return f"→ {_ENERGY} {_table_of(state).monster(fact.seat).energy}"
            case f.PointsGained() | f.PointsLost():
                return f"→ {_POINT} {_table_of(state).monster(fact.seat).points}"
            case f.CardBought():
                card = find_game(state.game).cards[fact.card]
                return card.text_zh if self._locale == "zh" else card.text
            case _:
                return ""

    def label(self, state: MatchState, option: Option, label: str) -> Text:
        """A die as it lies there; a card with what it does."""
        head, *parts = option.subject.split(":")
        if head == "die" and len(parts) == 2:
            symbol, style = _FACES.get(parts[1], _SUBSTITUTE)
            return Text(f"[{symbol}]", style=style)
        text = Text(label)
        card = find_game(state.game).cards.get(parts[0]) if parts else None
        if card is not None:
            does = card.text_zh if self._locale == "zh" else card.text
            text.append(f"  {does}", style="dim")
        return text

    def lasts(self, option: Option) -> bool:
        """Not so dice and cards for sale: their ids say only where they lie."""
        return option.subject.partition(":")[0] not in ("die", "ware")

    def mark(self, fact: Fact) -> tuple[str, str]:
        """Symbol and colour for the engine's line about a fact."""
        return _MARKS.get(type(fact), ("·", "dim"))

    def _words(self, match: MatchState) -> Words:
        return Words(find_game(match.game), match, self._locale)

    def _first_roll(self, match: MatchState, fact: f.FirstPlayerRolled) -> Sequence[RenderableType]:
        row = self._dice(self._padded(match, fact.seat), fact.faces, None)
        if self._rolls_for_first:
            return [row]
        self._rolls_for_first = True
        question = Text.assemble(("· ", "dim"), say(self._locale, "who_begins"))
        return [Padding(question, (0, 0, 0, 2), expand=False), row]

    def _cause(self, match: MatchState, cause: str) -> str:
        """The card that lets dice roll; "" for the turn's own rolls."""
        return "" if cause in ("", "roll") else self._words(match).word(cause)

    def _padded(self, match: MatchState, seat: Seat) -> str:
        """A name, as wide as the longest one at the table."""
        width = max(cell_len(player.name) for player in match.players)
        name = match.name_of(seat)
        return name + " " * (width - cell_len(name))

    def _heading(
        self, before: MatchState, after: MatchState, fact: f.TurnBegan
    ) -> Sequence[RenderableType]:
        parts: list[RenderableType] = [Text()]
        table = before.table
        # Once a round everybody's state is shown as a whole.
        if isinstance(table, KingsState) and fact.round_seat == _round_leader(table):
            parts += [Padding(self._table(before, table), (0, 0, 0, 2), expand=False), Text()]
        title = Text.assemble(
            (say(self._locale, "turn", fact.turn), "bold"),
            " · ",
            (after.name_of(fact.seat), "bold cyan"),
        )
        if fact.cause:
            title.append(f"  ({say(self._locale, 'again', self._words(after).word(fact.cause))})")
        parts.append(Rule(title, align="left", style="grey42"))
        return parts

    def _dice(
        self, label: str, faces: Sequence[str], fresh: Sequence[int] | None
    ) -> RenderableType:
        """A row of dice; with `fresh`, only those (counted from 1) are framed: others were kept."""
        padded = label + " " * (_LABEL_CELLS - cell_len(label))
        line = Text.assemble((padded, "dim"))
        for number, face in enumerate(faces, 1):
            symbol, style = _FACES.get(face, _SUBSTITUTE)
            if fresh is None or number in fresh:
                line.append(" ").append(f"[{symbol}]", style=style)
            else:
                line.append("  ").append(symbol, style="dim").append(" ")
        return Padding(line, (0, 0, 0, 2), expand=False)

    def table(self, state: MatchState) -> RenderableType | None:
        """Monsters with hearts, energy, points, place and cards; then what is for sale."""
        table = state.table
        return self._table(state, table) if isinstance(table, KingsState) else None

    def _table(self, match: MatchState, table: KingsState) -> RenderableType:
        words = self._words(match)
        grid = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
        grid.add_column(say(self._locale, "monster"))
        for symbol, style in ((_HEART, "red"), (_ENERGY, "green"), (_POINT, "yellow")):
            grid.add_column(symbol, justify="right", style=style)
        grid.add_column(say(self._locale, "place"))
        grid.add_column(say(self._locale, "cards"), ratio=1)
        for monster in table.monsters:
            grid.add_row(*self._row(words, match, table, monster))
        on_sale = [slot.card for slot in table.market if slot.card]
        if not on_sale:
            return grid
        line = f"{say(self._locale, 'for_sale')} {self._wares(match, on_sale)}"
        return Group(grid, Text(line, style="dim"))

    def _wares(self, match: MatchState, cards: Sequence[str]) -> str:
        """Cards with what is printed on them as their price."""
        words, known = self._words(match), find_game(match.game).cards
        return ", ".join(f"{words.word(card)} {known[card].cost}{_ENERGY}" for card in cards)

    def _row(
        self, words: Words, match: MatchState, table: KingsState, monster: Monster
    ) -> list[RenderableType]:
        name = match.name_of(monster.seat)
        if not monster.alive:
            gone = Text(name, style="dim strike")
            return [gone, "", "", "", Text(say(self._locale, "out"), style="dim"), ""]
        in_tokyo = monster.place != _OUTSIDE
        place = Text(words.word(monster.place), style="bold cyan" if in_tokyo else "dim")
        tokens = "".join(
            f" +{count} {words.word(token)}"
            for token, count in (("poison", monster.poison), ("shrink", monster.shrink))
            if count
        )
        return [
            Text(name + tokens, style="bold" if monster.seat == table.active else ""),
            str(monster.hearts),
            str(monster.energy),
            str(monster.points),
            place,
            Text(", ".join(_card(words, table, each) for each in table.held_by(monster.seat))),
        ]


def _table_of(state: MatchState) -> KingsState:
    assert isinstance(state.table, KingsState), "a King's fact at a King's table"
    return state.table


def _card(words: Words, table: KingsState, holding: Holding) -> str:
    name = words.word(holding.card)
    if holding.copies:
        model = next((each for each in table.holdings if each.id == holding.copies), None)
        if model is not None:
            name += f" = {words.word(model.card)}"
    return f"{name} ({holding.counter})" if holding.counter else name


def _round_leader(table: KingsState) -> Seat:
    """The seat whose turn opens a round: who began, or the next one still alive."""
    living = table.living()
    if not table.turn:
        return Seat(0)
    if table.first in living:
        return table.first
    return table.clockwise(table.first)[0] if living else Seat(0)
