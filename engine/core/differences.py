"""What is different between two facts, in words for whoever looks for the reason."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

import msgspec

from engine.core.visibility import Fact


def comparison(expected: Fact | None, got: Fact | None) -> str:
    """The logged fact and that of the rules (None: there is none).

    Of two facts of one type only the fields that differ, and of those only the first difference.
    """
    if type(expected) is not type(got) or expected is None:
        return f"the log has {expected!r}, the rules gave {got!r}"
    parts = [
        f"{path}: the log has {ours!r}, the rules gave {theirs!r}"
        for path, ours, theirs in _differences(expected, got, "")
    ]
    return f"{type(expected).__name__} {'; '.join(parts)}"


def _differences(one: object, other: object, path: str) -> Iterator[tuple[str, object, object]]:
    """Paths to what differs ("deck[3]", "prompt.options[0].id"), and both values; of tuples only
    the first.
    """
    if one == other:
        return
    if isinstance(one, tuple) and isinstance(other, tuple):
        pairs = zip_longest(one, other)
        index, (ours, theirs) = next(
            (i, pair) for i, pair in enumerate(pairs) if pair[0] != pair[1]
        )
        yield from _differences(ours, theirs, f"{path}[{index}]")
    elif isinstance(one, msgspec.Struct) and type(one) is type(other):
        for name in one.__struct_fields__:
            below = f"{path}.{name}" if path else name
            yield from _differences(getattr(one, name), getattr(other, name), below)
    else:
        yield path, one, other
