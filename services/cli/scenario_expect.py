"""Does the table look as a scenario says, and did the facts happen that it names?"""

from collections.abc import Sequence

import msgspec

from engine import Fact, Game, GameState
from engine.core.game import fact_types
from engine.core.position import LETTERS
from services.cli.scenario_model import NOTHING, is_nothing
from services.cli.scenario_struct import fields_of
from services.cli.scenario_text import (
    Entries,
    Part,
    ScenarioError,
    Sequel,
    Text,
    entries_of,
    items_of,
    near,
    number_of,
    text_of,
    truth_of,
    words_of,
)

AnyGame = Game[GameState]


# -- the table -------------------------------------------------------------------------------------


def differences(actual: msgspec.Struct, part: Part, what: str) -> list[tuple[int, str]]:
    """(line, sentence) for each key that is not as written."""
    found: list[tuple[int, str]] = []
    for key, written in entries_of(part, what):
        sentence = difference(getattr(actual, key.text), written, f"{what}: {key.text}")
        if sentence:
            found.append((written.line, sentence))
    return found


def difference(actual: object, written: Part, what: str) -> str:
    """How a value differs from what is written; "" when it does not."""
    if isinstance(actual, bool):
        same = truth_of(written, what) == actual
        return "" if same else f"{what} is {'yes' if actual else 'no'}"
    if isinstance(actual, int):
        expected = number_of(written, what)
        return "" if expected == actual else f"{what} is {actual}, not {expected}"
    if isinstance(actual, tuple):
        return _difference_of_many(actual, written, what)
    word = "" if is_nothing(written) else text_of(written, what)
    return "" if word == str(actual) else f"{what} is {actual or 'nothing'}, not {word}"


def _difference_of_many(actual: tuple[object, ...], written: Part, what: str) -> str:
    """The same things in any order."""
    left = list(actual)
    missing: list[str] = []
    for item in () if is_nothing(written) else _items(written, what):
        match = next((each for each in left if _is_like(each, item, what)), None)
        if match is None:
            missing.append(_shown_part(item))
        else:
            left.remove(match)
    if not left and not missing:
        return ""
    parts = [f"lacks {', '.join(missing)}"] if missing else []
    parts += [f"also has {', '.join(_shown(each) for each in left)}"] if left else []
    return f"{what} {' and '.join(parts)}"


def _items(written: Part, what: str) -> Sequence[Part]:
    return words_of(written, what) if isinstance(written, Text) else items_of(written, what)


def _is_like(actual: object, item: Part, what: str) -> bool:
    if not isinstance(actual, msgspec.Struct):
        return str(actual) == text_of(item, what)
    fields = fields_of(type(actual))
    if isinstance(item, Text):
        first = next(iter(fields))
        return str(getattr(actual, first)) == item.text
    for key, written in entries_of(item, what):
        if key.text not in fields:
            hint = near(key.text, tuple(fields))
            raise ScenarioError(key.line, f"{what} has no {key.text!r}{hint}")
        if difference(getattr(actual, key.text), written, key.text):
            return False
    return True


def _shown(actual: object) -> str:
    if not isinstance(actual, msgspec.Struct):
        return str(actual)
    values = {key: value for key, value in msgspec.structs.asdict(actual).items() if value}
    return ", ".join(f"{key} {value}" for key, value in values.items())


def _shown_part(part: Part) -> str:
    match part:
        case Text(text=text):
            return text
        case Sequel(items=items):
            return ", ".join(_shown_part(item) for item in items)
        case Entries(entries=entries):
            return ", ".join(f"{key.text} {_shown_part(value)}" for key, value in entries)


# -- facts -----------------------------------------------------------------------------------------


class FactPattern:
    """A fact as a scenario writes it: its tag, and those fields that matter."""

    def __init__(self, part: Part, game: AnyGame) -> None:
        self.line = part.line
        self._tag, self._fields = _tag_and_fields(part)
        types = {str(each.__struct_config__.tag): each for each in fact_types(game)}
        if self._tag not in types:
            hint = near(self._tag, tuple(types))
            raise ScenarioError(part.line, f"there is no fact {self._tag!r}{hint}")
        legal = types[self._tag].__struct_fields__
        for key, _ in self._fields:
            if key.text not in legal:
                hint = near(key.text, legal)
                raise ScenarioError(key.line, f"{self._tag} has no {key.text!r}{hint}")

    def __str__(self) -> str:
        fields = ", ".join(f"{key.text}: {_shown_part(value)}" for key, value in self._fields)
        return f"{self._tag} ({fields})" if fields else self._tag

    def fits(self, fact: Fact) -> bool:
        """Is it such a fact?"""
        if fact.__struct_config__.tag != self._tag:
            return False
        return all(_equal(getattr(fact, key.text), value) for key, value in self._fields)


def _tag_and_fields(part: Part) -> tuple[str, tuple[tuple[Text, Part], ...]]:
    if isinstance(part, Text):
        return text_of(part, "a fact"), ()
    entries = entries_of(part, "a fact")
    if len(entries) != 1:
        raise ScenarioError(part.line, "a fact is written {hearts_lost: {seat: A, amount: 2}}")
    tag, fields = entries[0]
    return tag.text, entries_of(fields, tag.text)


def _equal(actual: object, written: Part) -> bool:
    if isinstance(actual, tuple):
        items = () if is_nothing(written) else _items(written, "a list")
        return len(items) == len(actual) and all(map(_equal, actual, items))
    if not isinstance(written, Text):
        return False
    word = written.text
    if isinstance(actual, bool):
        return word == ("yes" if actual else "no")
    if isinstance(actual, int):
        seat = LETTERS.index(word) + 1 if len(word) == 1 and word in LETTERS else None
        return actual == (0 if word in NOTHING else seat if seat else _int(word))
    return str(actual) == ("" if word in NOTHING else word)


def _int(word: str) -> int | None:
    try:
        return int(word)
    except ValueError:
        return None


def missing_fact(facts: Sequence[Fact], part: Part, game: AnyGame) -> FactPattern | None:
    """The first of the written facts that did not happen, in the written order."""
    rest = iter(facts)
    for item in _patterns(part):
        pattern = FactPattern(item, game)
        if not any(pattern.fits(fact) for fact in rest):
            return pattern
    return None


def unwanted_fact(facts: Sequence[Fact], part: Part, game: AnyGame) -> FactPattern | None:
    """The first of the written facts that did happen."""
    for item in _patterns(part):
        pattern = FactPattern(item, game)
        if any(pattern.fits(fact) for fact in facts):
            return pattern
    return None


def _patterns(part: Part) -> Sequence[Part]:
    return (part,) if isinstance(part, Entries) else _items(part, "the facts")
