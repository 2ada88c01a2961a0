"""Parts of a scenario as structs: the fields of a struct are the keys that may be written.

Used for positions and for what is expected of them, so both have the same words.
"""

from collections.abc import Mapping
from functools import cache

import msgspec
from msgspec import inspect

from services.cli.scenario_text import (
    Entries,
    Part,
    ScenarioError,
    Text,
    entries_of,
    items_of,
    near,
    number_of,
    text_of,
    truth_of,
    words_of,
)

Path = tuple[str | int, ...]


@cache
def fields_of(struct: type[msgspec.Struct]) -> Mapping[str, inspect.Type]:
    """The keys of a struct and their types."""
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    return {field.encode_name: field.type for field in info.fields}


def field_of(struct: type[msgspec.Struct], key: Text, what: str) -> inspect.Type:
    """The type of a key; refuses unknown ones with the near legal ones."""
    fields = fields_of(struct)
    if key.text not in fields:
        hint = near(key.text, tuple(fields))
        raise ScenarioError(key.line, f"{what} has no {key.text!r}{hint}")
    return fields[key.text]


class StructReader:
    """Reads parts into structs and remembers where each value was written."""

    def __init__(self) -> None:
        self._lines: dict[Path, int] = {}

    def note(self, path: Path, line: int) -> None:
        """Remember where something was written that is not part of a struct."""
        self._lines[path] = line

    def line_of(self, path: Path, otherwise: int) -> int:
        """The line of the value at a path, or of the nearest thing around it."""
        for length in range(len(path), 0, -1):
            if path[:length] in self._lines:
                return self._lines[path[:length]]
        return otherwise

    def struct(
        self, part: Part, struct: type[msgspec.Struct], path: Path, what: str
    ) -> msgspec.Struct:
        """A struct from a map, or from its first field alone."""
        self._lines[path] = part.line
        if isinstance(part, Text) and part.text:
            first = next(iter(fields_of(struct)))
            part = Entries(part.line, ((Text(part.line, first), part),))
        values: dict[str, object] = {}
        for key, value in entries_of(part, what):
            kind = field_of(struct, key, what)
            values[key.text] = self._value(value, kind, (*path, key.text), f"{what}: {key.text}")
        missing = [
            field
            for field in msgspec.structs.fields(struct)
            if field.required and field.encode_name not in values
        ]
        if missing:
            raise ScenarioError(part.line, f"{what} lacks {missing[0].encode_name}")
        return struct(**values)

    def _value(self, part: Part, kind: inspect.Type, path: Path, what: str) -> object:
        self._lines[path] = part.line
        match kind:
            case inspect.UnionType(types=types):
                return self._value(part, types[0], path, what)
            case inspect.BoolType():
                return truth_of(part, what)
            case inspect.IntType():
                return number_of(part, what)
            case inspect.StrType():
                return text_of(part, what)
            case inspect.VarTupleType(item_type=inspect.StructType(cls=struct)):
                return tuple(
                    self.struct(item, struct, (*path, index), what)
                    for index, item in enumerate(items_of(part, what))
                )
            case inspect.VarTupleType():
                words = words_of(part, what)
                for index, word in enumerate(words):
                    self._lines[(*path, index)] = word.line
                return tuple(word.text for word in words)
            case _:
                message = f"{what} cannot be written in a scenario"
                raise ScenarioError(part.line, message)
