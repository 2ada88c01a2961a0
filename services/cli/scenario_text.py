"""Scenario files as text: YAML read safely into parts that remember their line.

Only plain text, lists and maps; no tags, no anchors, no duplicate keys, and limits on size, depth
and number of parts. All text stays text ("no" is not false here): what a value means is decided by
whoever reads it.
"""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

SIZE_MAX: Final = 256 * 1024
DEPTH_MAX: Final = 12
PARTS_MAX: Final = 20_000
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class ScenarioError(Exception):  # what the writer of a scenario reads
    """Something is wrong with a scenario, or the rules do otherwise than it says.

    line: where in the file, from 1. The message says what was wrong and, where possible, what would
    be right.
    """

    def __init__(self, line: int, message: str) -> None:
        self.line = line
        self.message = message
        super().__init__(f"line {line}: {message}")


@dataclass(frozen=True, slots=True)
class Text:
    """A word or sentence; empty where nothing is written."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Sequel:
    """A list."""

    line: int
    items: tuple["Part", ...]


@dataclass(frozen=True, slots=True)
class Entries:
    """A map, in written order."""

    line: int
    entries: tuple[tuple[Text, "Part"], ...]

    def get(self, key: str) -> "Part | None":
        """The value of a key, or None."""
        return next((value for name, value in self.entries if name.text == key), None)


Part = Text | Sequel | Entries


def read_documents(path: Path) -> list[Entries]:
    """The scenarios of a file. Raises ScenarioError, or OSError when it cannot be read."""
    if path.stat().st_size > SIZE_MAX:
        raise ScenarioError(1, f"the file is larger than {SIZE_MAX // 1024} KiB")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ScenarioError(1, "the file is not UTF-8 text") from error
    try:
        documents = list(_compose(yaml.parse(text, Loader=_LOADER)))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise ScenarioError(line, f"this is not YAML: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise ScenarioError(1, f"this is not YAML: {error}") from error
    return [_entries_of(each) for each in documents if each != Text(each.line, "")]


def _entries_of(document: Part) -> Entries:
    if not isinstance(document, Entries):
        raise ScenarioError(document.line, "a scenario is a map: title, players, turn, steps, …")
    return document


class _Open:
    """A list or map whose end has not been read yet."""

    def __init__(self, line: int, *, is_map: bool) -> None:
        self.line = line
        self.is_map = is_map
        self.parts: list[Part] = []

    def close(self) -> Part:
        if not self.is_map:
            return Sequel(self.line, tuple(self.parts))
        entries: list[tuple[Text, Part]] = []
        for key, value in zip(self.parts[::2], self.parts[1::2], strict=True):
            if not isinstance(key, Text):
                raise ScenarioError(key.line, "a key is a word, not a list or a map")
            if any(key.text == other.text for other, _ in entries):
                raise ScenarioError(key.line, f"the key {key.text!r} is written twice")
            entries.append((key, value))
        return Entries(self.line, tuple(entries))


def _compose(events: Iterator[yaml.Event]) -> Iterator[Part]:
    """Parts from parser events, without recursion: nothing in a file can exhaust the stack."""
    stack: list[_Open] = []
    count = 0
    for event in events:
        line = event.start_mark.line + 1 if event.start_mark else 1
        _refuse_magic(event, line)
        if isinstance(event, yaml.CollectionStartEvent):
            stack.append(_Open(line, is_map=isinstance(event, yaml.MappingStartEvent)))
            if len(stack) > DEPTH_MAX:
                raise ScenarioError(line, f"nested deeper than {DEPTH_MAX} levels")
            continue
        if isinstance(event, yaml.ScalarEvent):
            part: Part = Text(line, event.value)
        elif isinstance(event, yaml.CollectionEndEvent):
            part = stack.pop().close()
        else:
            continue
        count += 1
        if count > PARTS_MAX:
            raise ScenarioError(line, f"more than {PARTS_MAX} values in one file")
        if stack:
            stack[-1].parts.append(part)
        else:
            yield part


def _refuse_magic(event: yaml.Event, line: int) -> None:
    if isinstance(event, yaml.AliasEvent):
        raise ScenarioError(line, "references (*name) are not used in scenarios; write it out")
    if getattr(event, "anchor", None):
        raise ScenarioError(line, "anchors (&name) are not used in scenarios")
    tag = getattr(event, "tag", None)
    if tag not in (None, "!"):
        raise ScenarioError(line, f"tags ({tag}) are not used in scenarios")


# -- reading parts ---------------------------------------------------------------------------------


def near(word: str, legal: Sequence[str]) -> str:
    """ "; did you mean …? Legal: …" for a word that is none of the legal ones."""
    if not legal:
        return ""
    close = difflib.get_close_matches(word, legal, n=2, cutoff=0.7)
    hint = f"; did you mean {' or '.join(close)}?" if close else "."
    shown = ", ".join(legal[:30])
    more = " …" if len(legal) > 30 else ""
    return hint if close and len(legal) > 12 else f"{hint} Legal: {shown}{more}"


def text_of(part: Part, what: str) -> str:
    """A word or sentence that must not be empty."""
    if not isinstance(part, Text) or not part.text.strip():
        raise ScenarioError(part.line, f"{what} is a word or sentence")
    return " ".join(part.text.split())


def number_of(part: Part, what: str) -> int:
    """A whole number."""
    if isinstance(part, Text):
        try:
            return int(part.text)
        except ValueError:
            pass
    raise ScenarioError(part.line, f"{what} is a whole number{_instead(part)}")


def truth_of(part: Part, what: str) -> bool:
    """Yes or no."""
    words = {"yes": True, "true": True, "no": False, "false": False}
    if isinstance(part, Text) and part.text in words:
        return words[part.text]
    raise ScenarioError(part.line, f"{what} is yes or no{_instead(part)}")


def entries_of(part: Part, what: str) -> tuple[tuple[Text, Part], ...]:
    """The entries of a map; nothing written is an empty one."""
    if isinstance(part, Text) and not part.text:
        return ()
    if not isinstance(part, Entries):
        raise ScenarioError(part.line, f"{what} is a map (key: value){_instead(part)}")
    return part.entries


def items_of(part: Part, what: str) -> tuple[Part, ...]:
    """The items of a list; nothing written is an empty one."""
    if isinstance(part, Text) and not part.text:
        return ()
    if not isinstance(part, Sequel):
        raise ScenarioError(part.line, f"{what} is a list{_instead(part)}")
    return part.items


def words_of(part: Part, what: str) -> list[Text]:
    """A list of words, or one text with spaces between them."""
    if isinstance(part, Text):
        return [Text(part.line, word) for word in part.text.split()]
    return [Text(item.line, text_of(item, what)) for item in items_of(part, what)]


def _instead(part: Part) -> str:
    match part:
        case Text(text=text):
            return f", not {text!r}" if text else ", and nothing is written"
        case Sequel():
            return ", not a list"
        case Entries():
            return ", not a map"
