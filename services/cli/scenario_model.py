"""A scenario as it was written: position, script and expectations, checked as far as possible
without playing. The format is explained in tests/scenarios/README.md.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from engine import AnyGame, Refusal, Seat, find_game
from engine.core.position import LETTERS, Positions
from services.cli.scenario_struct import StructReader, field_of, fields_of
from services.cli.scenario_text import (
    Entries,
    Part,
    ScenarioError,
    Sequel,
    Text,
    entries_of,
    items_of,
    near,
    read_documents,
    text_of,
    words_of,
)

DEFAULT_GAME: Final = "king_of_tokyo"
NOTHING: Final = ("nothing", "nobody", "none")
_KEYS: Final = (
    "title",
    "rule",
    "source",
    "number",
    "cards",
    "game",
    "preset",
    "options",
    "players",
    "turn",
    "defaults",
    "steps",
)
_USES: Final = "uses"
_NEEDED: Final = ("title", "rule", "source", "players", "turn", "steps")


def is_nothing(part: Part) -> bool:
    """Whether it is a word for nothing."""
    return isinstance(part, Text) and part.text in NOTHING


@dataclass(frozen=True, slots=True)
class Draws:
    """What chance brings next. script: which kind of draw, as the game calls it."""

    line: int
    script: str
    words: tuple[str, ...]
    turn: int
    """How many `turn` steps stand before it."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A seat answers a question of a kind."""

    line: int
    seat: Seat
    kind: Text
    answer: Part


@dataclass(frozen=True, slots=True)
class Action:
    """A seat uses a card that may be used at any time, whoever is asked."""

    line: int
    seat: Seat
    card: Text


@dataclass(frozen=True, slots=True)
class Refused:
    """A seat tries to answer, or to use a card, and is refused."""

    line: int
    what: Reply | Action
    reason: Text


@dataclass(frozen=True, slots=True)
class Asked:
    """Exactly these questions are open: (seat, kind, what is offered or None)."""

    line: int
    questions: tuple[tuple[Seat, Text, Part | None], ...]


@dataclass(frozen=True, slots=True)
class MayUse:
    """Exactly these cards may be used now, whoever is asked; a card once for each copy."""

    line: int
    cards: tuple[tuple[Seat, Text], ...]


@dataclass(frozen=True, slots=True)
class Expect:
    """What is to be seen on the table, or has happened since the last answer."""

    line: int
    entries: tuple[tuple[Text, Part], ...]


@dataclass(frozen=True, slots=True)
class TurnOf:
    """The next turn is that of a seat; because: the card or rule that grants it ("" by order)."""

    line: int
    seat: Seat
    because: str


@dataclass(frozen=True, slots=True)
class EndTurn:
    """The turn is over now: nobody is asked anything any more."""

    line: int


Step = Draws | Reply | Action | Refused | Asked | MayUse | Expect | TurnOf | EndTurn


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario. name: where it stands, for people. turn: whose turn it is at first (None: the
    match begins with setting up).
    """

    path: Path
    name: str
    line: int
    title: str
    rule: str
    sources: tuple[str, ...]
    number: str
    cards: tuple[str, ...]
    game: AnyGame
    positions: Positions
    preset: str
    options: dict[str, str]
    players: tuple[msgspec.Struct, ...]
    table: msgspec.Struct
    turn: Seat | None
    defaults: frozenset[str]
    steps: tuple[Step, ...]
    reader: StructReader = field(repr=False)


def read_scenarios(path: Path) -> list[Scenario]:
    """All scenarios of one file. Raises ScenarioError, or OSError when it cannot be read."""
    documents = read_documents(path)
    if not documents:
        raise ScenarioError(1, "there is no scenario in this file")
    stem = path.with_suffix("").name
    single = len(documents) == 1
    return [
        _Reading(document, path, stem if single else f"{stem}#{number}").scenario()
        for number, document in enumerate(documents, 1)
    ]


class _Reading:
    """Reads one document."""

    def __init__(self, document: Entries, path: Path, name: str) -> None:
        self._document = document
        self._path = path
        self._name = name
        self._reader = StructReader()
        self._game = self._read_game()
        if self._game.positions is None:
            raise ScenarioError(document.line, f"{self._game.id} has no written positions yet")
        self._positions: Positions = self._game.positions
        self._check_keys()
        self._seats = self._read_seats()

    # -- the head ----------------------------------------------------------------------------------

    def scenario(self) -> Scenario:
        return Scenario(
            path=self._path,
            name=self._name,
            line=self._document.line,
            title=self._text("title"),
            rule=self._text("rule"),
            sources=self._words("source"),
            number=self._text("number", needed=False),
            cards=self._read_cards(),
            game=self._game,
            positions=self._positions,
            preset=self._text("preset", needed=False),
            options=self._read_options(),
            players=self._read_players(),
            table=self._read_table(),
            turn=self._read_turn(),
            defaults=frozenset(self._words("defaults")),
            steps=self._read_steps(),
            reader=self._reader,
        )

    def _part(self, key: str) -> Part:
        part = self._document.get(key)
        assert part is not None, key
        return part

    def _text(self, key: str, *, needed: bool = True) -> str:
        part = self._document.get(key)
        return text_of(part, key) if part is not None or needed else ""  # type: ignore[arg-type]  # needed keys are there

    def _words(self, key: str) -> tuple[str, ...]:
        part = self._document.get(key)
        return () if part is None else tuple(word.text for word in words_of(part, key))

    def _read_game(self) -> AnyGame:
        part = self._document.get("game")
        game = DEFAULT_GAME if part is None else text_of(part, "game")
        try:
            return find_game(game)
        except Refusal as refusal:
            line = self._document.line if part is None else part.line
            raise ScenarioError(line, f"{refusal.message()}{near(game, refusal.legal)}") from None

    def _check_keys(self) -> None:
        legal = (*_KEYS, *fields_of(self._positions.table))
        for key, _ in self._document.entries:
            if key.text not in legal:
                hint = near(key.text, legal)
                raise ScenarioError(key.line, f"a scenario has no {key.text!r}{hint}")
        for needed in _NEEDED:
            if self._document.get(needed) is None:
                raise ScenarioError(self._document.line, f"the scenario lacks {needed!r}")

    def _read_seats(self) -> tuple[Seat, ...]:
        players = entries_of(self._part("players"), "players")
        for index, (letter, _) in enumerate(players):
            if index >= len(LETTERS) or letter.text != LETTERS[index]:
                expected = LETTERS[min(index, len(LETTERS) - 1)]
                raise ScenarioError(
                    letter.line, f"players are A, B, C, … in turn order: {expected} is next"
                )
        low, high = self._game.seats_low, self._game.seats_high
        if not low <= len(players) <= high:
            line = self._part("players").line
            raise ScenarioError(line, f"{low} to {high} play, not {len(players)}")
        return tuple(Seat(seat) for seat in range(1, len(players) + 1))

    def _seat(self, part: Part, what: str) -> Seat:
        letter = text_of(part, what)
        for seat in self._seats:
            if LETTERS[seat - 1] == letter:
                return seat
        letters = ", ".join(LETTERS[: len(self._seats)])
        raise ScenarioError(part.line, f"{what}: there is no player {letter!r}. Legal: {letters}")

    def _read_turn(self) -> Seat | None:
        part = self._part("turn")
        self._reader.note(("turn",), part.line)
        if not is_nothing(part):
            return self._seat(part, "turn")
        for letter, value in entries_of(self._part("players"), "players"):
            if entries_of(value, letter.text):
                raise ScenarioError(
                    value.line, "when the match begins with setting up, nobody has anything yet"
                )
        fields = fields_of(self._positions.table)
        for key, _ in self._document.entries:
            if key.text in fields and key.text not in self._positions.at_setup:
                raise ScenarioError(
                    key.line, f"{key.text} comes from setting up, when the match begins with it"
                )
        return None

    def _read_players(self) -> tuple[msgspec.Struct, ...]:
        struct = self._positions.player
        return tuple(
            self._reader.struct(value, struct, (letter.text,), f"player {letter.text}")
            for letter, value in entries_of(self._part("players"), "players")
        )

    def _read_table(self) -> msgspec.Struct:
        fields = fields_of(self._positions.table)
        entries = tuple(entry for entry in self._document.entries if entry[0].text in fields)
        part = Entries(self._document.line, entries)
        return self._reader.struct(part, self._positions.table, (), "the table")

    def _read_options(self) -> dict[str, str]:
        part = self._document.get("options")
        chosen: dict[str, str] = {}
        for option, value in () if part is None else entries_of(part, "options"):
            chosen[option.text] = text_of(value, option.text)
            try:
                self._game.resolve_options("", chosen)
            except Refusal as refusal:
                hint = near(refusal.detail.partition("=")[0], refusal.legal)
                raise ScenarioError(
                    option.line, f"option {refusal.detail}: unknown{hint}"
                ) from None
        preset = self._text("preset", needed=False)
        if preset and preset not in self._game.presets:
            hint = near(preset, tuple(self._game.presets))
            raise ScenarioError(self._part("preset").line, f"there is no preset {preset!r}{hint}")
        return chosen

    def _read_cards(self) -> tuple[str, ...]:
        part = self._document.get("cards")
        words = [] if part is None else words_of(part, "cards")
        for word in words:
            self._need_card(word)
            if not self._is_on_the_table(word.text):
                raise ScenarioError(
                    word.line, f"{word.text} is said to be covered, but is nowhere on the table"
                )
        return tuple(word.text for word in words)

    def _is_on_the_table(self, card: str) -> bool:
        keys = ("players", *fields_of(self._positions.table))
        parts = [self._document.get(key) for key in keys]
        return any(part is not None and _mentions(part, card) for part in parts)

    # -- the steps ---------------------------------------------------------------------------------

    def _read_steps(self) -> tuple[Step, ...]:
        steps: list[Step] = []
        for item in items_of(self._part("steps"), "steps"):
            entries = entries_of(item, "a step")
            if len(entries) != 1:
                raise ScenarioError(item.line, "a step is one thing: `- roll: …` or `- A: …`")
            key, value = entries[0]
            turn = sum(isinstance(step, TurnOf) for step in steps)
            steps += self._read_step(key, value, turn)
        return tuple(steps)

    def _read_step(self, key: Text, value: Part, turn: int) -> list[Step]:
        line = key.line
        letters = tuple(LETTERS[: len(self._seats)])
        if key.text in letters:
            return list(self._replies(key, value))
        if key.text in self._positions.scripts:
            words = tuple(word.text for word in words_of(value, key.text))
            return [Draws(line, key.text, words, turn)]
        match key.text:
            case "refuse":
                return [self._refused(line, value)]
            case "asked":
                return [self._asked(line, value)]
            case "may_use":
                return [self._may_use(line, value)]
            case "expect":
                return [self._expect(line, value)]
            case "turn":
                return [self._turn_of(line, value)]
            case "end" if text_of(value, "end") == "turn":
                return [EndTurn(line)]
            case "end":
                raise ScenarioError(value.line, "only a turn can be ended: `- end: turn`")
        own = ("refuse", "asked", "may_use", "expect", "turn", "end")
        legal = (*letters, *self._positions.scripts, *own)
        raise ScenarioError(line, f"there is no step {key.text!r}{near(key.text, legal)}")

    def _replies(self, letter: Text, value: Part) -> list[Reply | Action]:
        seat = self._seat(letter, "the player")
        replies: list[Reply | Action] = []
        for kind, answer in entries_of(value, f"what {letter.text} answers"):
            if kind.text == _USES:
                cards = self._cards_of(answer, _USES)
                replies += [Action(card.line, seat, card) for card in cards]
            else:
                replies.append(Reply(kind.line, seat, kind, answer))
        if not replies:
            raise ScenarioError(letter.line, "an answer names its question: `- A: {reroll: 1 2}`")
        return replies

    def _cards_of(self, part: Part, what: str) -> list[Text]:
        """Short names of cards of the game, at least one."""
        words = words_of(part, what)
        if not words:
            raise ScenarioError(part.line, f"{what} names a card: {{{what}: rapid_healing}}")
        for word in words:
            self._need_card(word)
        return words

    def _need_card(self, word: Text) -> None:
        if word.text not in self._game.cards:
            hint = near(word.text, tuple(self._game.cards))
            raise ScenarioError(word.line, f"there is no card {word.text!r}{hint}")

    def _refused(self, line: int, value: Part) -> Refused:
        reason: Text | None = None
        replies: list[Reply | Action] = []
        for key, part in entries_of(value, "refuse"):
            if key.text == "reason":
                reason = Text(part.line, text_of(part, "reason"))
            else:
                replies += self._replies(key, part)
        if reason is None or len(replies) != 1:
            raise ScenarioError(
                line,
                "a refusal has one answer or card used, and a reason: "
                "{A: {buy: wings}, reason: ILLEGAL_ANSWER}",
            )
        return Refused(line, replies[0], reason)

    def _asked(self, line: int, value: Part) -> Asked:
        if is_nothing(value):
            return Asked(line, ())
        questions: list[tuple[Seat, Text, Part | None]] = []
        for letter, part in entries_of(value, "asked"):
            seat = self._seat(letter, "asked")
            if isinstance(part, Text):
                questions.append((seat, Text(part.line, text_of(part, "asked")), None))
                continue
            for kind, offered in entries_of(part, f"what {letter.text} is asked"):
                questions.append((seat, kind, offered))
        return Asked(line, tuple(questions))

    def _may_use(self, line: int, value: Part) -> MayUse:
        if is_nothing(value):
            return MayUse(line, ())
        cards: list[tuple[Seat, Text]] = []
        for letter, part in entries_of(value, "may_use"):
            seat = self._seat(letter, "may_use")
            if not is_nothing(part):
                cards += [(seat, card) for card in self._cards_of(part, f"may_use: {letter.text}")]
        return MayUse(line, tuple(cards))

    def _expect(self, line: int, value: Part) -> Expect:
        entries = entries_of(value, "expect")
        letters = LETTERS[: len(self._seats)]
        table = tuple(fields_of(self._positions.table))
        legal = (*letters, *table, "winner", "happened", "not_happened")
        for key, part in entries:
            if key.text not in legal:
                raise ScenarioError(
                    key.line, f"{key.text!r} cannot be expected{near(key.text, legal)}"
                )
            if key.text in letters:
                for name, _ in entries_of(part, key.text):
                    field_of(self._positions.player, name, f"player {key.text}")
        if not entries:
            raise ScenarioError(line, "nothing is expected here")
        return Expect(line, entries)

    def _turn_of(self, line: int, value: Part) -> TurnOf:
        if isinstance(value, Text):
            return TurnOf(line, self._seat(value, "turn"), "")
        because, of = "", None
        for key, part in entries_of(value, "turn"):
            if key.text == "of":
                of = self._seat(part, "turn")
            elif key.text == "because":
                because = text_of(part, "because")
            else:
                raise ScenarioError(key.line, "a turn is {of: B, because: frenzy}")
        if of is None:
            raise ScenarioError(line, "whose turn? {of: B, because: frenzy}")
        return TurnOf(line, of, because)


def _mentions(part: Part, word: str) -> bool:
    match part:
        case Text(text=text):
            return word in text.split()
        case Sequel(items=items):
            return any(_mentions(item, word) for item in items)
        case Entries(entries=entries):
            return any(_mentions(value, word) for _, value in entries)
