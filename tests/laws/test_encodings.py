"""Equal states have equal encodings, however they came about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args, get_type_hints

import msgspec
import pytest

from engine import GameState, MatchState, catalogue, encode_state, fold, state_hash
from tests.engine.playing import Match, eager_answer

SINGLETONS = (None, True, False, "", b"", ())


def structs_in(root: type, seen: set[type]) -> Iterator[type[msgspec.Struct]]:
    """A struct and every struct that its fields may hold."""
    if root in seen:
        return
    seen.add(root)
    if isinstance(root, type) and issubclass(root, msgspec.Struct):
        yield root
        for hint in get_type_hints(root).values():
            yield from structs_in(hint, seen)
    for part in get_args(root):
        yield from structs_in(part, seen)


@pytest.mark.parametrize("root", [MatchState, *(game.state for game in catalogue().values())])
def test_only_singletons_are_left_out_of_an_encoding(root: type[msgspec.Struct]) -> None:
    """msgspec omits a default by identity, so a default that is no singleton must be written."""
    for struct in structs_in(root, set()):
        if not struct.__struct_config__.omit_defaults:
            continue
        for default in struct.__struct_defaults__:
            if default is msgspec.NODEFAULT:
                continue
            is_small = type(default) is int and 0 <= default <= 256
            assert is_small or any(default is each for each in SINGLETONS), (struct, default)


def test_a_state_of_decoded_facts_has_the_same_hash() -> None:
    match = Match(seats=5, seed=8)
    while match.session.waiting:
        match.answer_one(eager_answer)
    decoded = [
        msgspec.msgpack.decode(msgspec.msgpack.encode(fact), type=type(fact))
        for fact in match.facts
    ]
    for end in range(1, len(match.facts), 37):
        live, again = fold(match.facts[:end]), fold(decoded[:end])
        assert encode_state(live) == encode_state(again)
        assert state_hash(live) == state_hash(again)


def test_every_games_state_inherits_from_the_common_one() -> None:
    assert all(issubclass(game.state, GameState) for game in catalogue().values())
