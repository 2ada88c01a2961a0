"""Recorded matches as text: a header, then one fact a line, each a JSON object.

Reading one needs no tool, and a difference between two is a difference between lines. A file never
changes: it shows for ever what the rules of its revision did. Its name begins with that revision
("r1-online-3-2.jsonl": preset, seats, number). Beside them "r1.json" says which cards and options
there were then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache, reduce
from operator import or_
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from engine import AnyGame, Fact, catalogue, fact_types, find_game, fold, state_hash

FOLDER: Final = Path(__file__).parent
FORMAT: Final = "diceledger.golden.v1"


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first line. digest: of all other lines; state_hash: of the state they fold to."""

    format: str
    game: str
    revision: int
    preset: str
    seats: int
    options: dict[str, str]
    bots: tuple[str, ...]
    winners: tuple[int, ...]
    reason: str
    turns: int
    facts: int
    digest: str
    state_hash: str


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """What a revision of a game has, and its recorded matches therefore show: options with their
    values.
    """

    cards: tuple[str, ...]
    options: dict[str, tuple[str, ...]]


class Golden(msgspec.Struct, frozen=True):
    """One recorded match."""

    header: Header
    lines: tuple[bytes, ...]

    def facts(self) -> tuple[Fact, ...]:
        """The facts of the lines."""
        decoder = _decoder(self.header.game)
        return tuple(cast("Fact", decoder.decode(line)) for line in self.lines)


@cache
def _decoder(game_id: str) -> msgspec.json.Decoder[Any]:
    types = fact_types(find_game(game_id))
    return msgspec.json.Decoder(reduce(or_, types[1:], cast("Any", types[0])))


def lines_of(facts: Sequence[Fact]) -> tuple[bytes, ...]:
    """Facts as lines, without line ends."""
    return tuple(msgspec.json.encode(fact) for fact in facts)


def digest_of(lines: Sequence[bytes]) -> str:
    """SHA-256 of the lines with their ends."""
    return hashlib.sha256(b"".join(line + b"\n" for line in lines)).hexdigest()


def golden_of(
    game: AnyGame, facts: Sequence[Fact], *, preset: str, bots: tuple[str, ...]
) -> Golden:
    """A finished match as it is written."""
    state = fold(facts)
    assert state.status == "finished", state.status
    assert state.table is not None
    lines = lines_of(facts)
    header = Header(
        format=FORMAT,
        game=game.id,
        revision=state.revision,
        preset=preset,
        seats=state.seats,
        options={each.id: each.value for each in state.options},
        bots=bots,
        winners=tuple(state.winners),
        reason=state.end_reason,
        turns=state.table.turn,
        facts=len(facts),
        digest=digest_of(lines),
        state_hash=state_hash(state).hex(),
    )
    return Golden(header, lines)


def write(path: Path, golden: Golden) -> None:
    """Write a file; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (msgspec.json.encode(golden.header), *golden.lines)
    path.write_bytes(b"".join(line + b"\n" for line in lines))


def read(path: Path) -> Golden:
    """Read a file. Raises msgspec.DecodeError where its header is none."""
    first, *lines = path.read_bytes().splitlines()
    return Golden(msgspec.json.decode(first, type=Header), tuple(lines))


def path_of(game: AnyGame, preset: str, seats: int, number: int) -> Path:
    """Where a match of the current revision is kept."""
    return FOLDER / game.id / f"r{game.revision}-{preset or 'plain'}-{seats}-{number}.jsonl"


def recorded(game_id: str) -> list[Path]:
    """The files of a game, sorted by name."""
    return sorted((FOLDER / game_id).glob("*.jsonl"))


def contents_of(game: AnyGame) -> Contents:
    """What the current revision has."""
    options = {spec.id: spec.values for spec in game.options}
    return Contents(cards=tuple(sorted(game.cards)), options=options)


def write_contents(game: AnyGame) -> None:
    """Note what the current revision has."""
    path = FOLDER / game.id / f"r{game.revision}.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(contents_of(game))) + b"\n")


def noted(game_id: str) -> dict[int, Contents]:
    """Revision to what it had."""
    return {
        int(path.stem.removeprefix("r")): msgspec.json.decode(path.read_bytes(), type=Contents)
        for path in (FOLDER / game_id).glob("r*.json")
    }


def every_file() -> list[Path]:
    """The files of all games of the catalogue."""
    return [path for game_id in catalogue() for path in recorded(game_id)]
