"""Structs as a game might have them, for tests of the mapping; no game knows them."""

import subprocess
import sys
from pathlib import Path
from typing import Any, Literal, NewType, TypeVar

import google.protobuf
import msgspec
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

from engine import Fact, GameState, Hidden, Public, Sealed, Seat, Secret
from services.common.factcodec import Codec
from services.common.factgen import area_folder, generated
from services.common.factlock import Lock
from services.common.factschema import MessageShape, shapes_of

CardId = NewType("CardId", str)
S = TypeVar("S", bound=type[Any])


def of_engine(cls: S) -> S:
    """Move a struct to where the mapping looks for those of a game."""
    cls.__module__ = "engine.games.toys.facts"
    return cls


@of_engine
class Token(msgspec.Struct, frozen=True, tag="token", tag_field="type"):
    """Something small.

    It has a second paragraph.
    """

    color: Literal["red", "blue"] = "red"
    count: int = 1


@of_engine
class Hand(msgspec.Struct, frozen=True, kw_only=True):
    seat: Seat = Seat(0)
    cards: tuple[CardId, ...] | Hidden = ()
    best: CardId | Hidden | None = None
    token: Token | Hidden = Token()
    is_open: bool | Hidden = True


@of_engine
class EverythingHappened(Fact, frozen=True, tag="everything_happened"):
    """All kinds of fields."""

    seat: Public[Seat]
    is_true: Public[bool]
    blob: Public[bytes]
    card: Public[CardId]
    color: Public[Literal["red", "blue"]]
    colors: Public[tuple[Literal["red", "blue"], ...]]
    numbers: Public[tuple[int, ...]]
    token: Public[Token]
    tokens: Public[tuple[Token, ...]]
    maybe_number: Public[int | None]
    maybe_word: Public[Literal["yes"] | None]
    maybe_token: Public[Token | None]
    secret_number: Secret[int]
    secret_word: Secret[Literal["yes", "no"]]
    secret_maybe: Secret[int | None]
    secret_token: Secret[Token]
    secret_cards: Secret[tuple[CardId, ...]]
    seed: Sealed[bytes]
    later: Public[int] = 7
    later_word: Public[str] = ""


@of_engine
class NothingHappened(Fact, frozen=True, tag="nothing_happened"):
    """A fact without fields."""


@of_engine
class Table(GameState, frozen=True, omit_defaults=True, kw_only=True, tag="toys"):
    """The state of the game."""

    hands: tuple[Hand, ...] = ()
    top: Hand | None = None


ROOTS = (EverythingHappened, NothingHappened, Table)


def toy_shapes() -> tuple[MessageShape, ...]:
    """The messages of the toys, and those of the core that they contain."""
    return shapes_of(ROOTS)


def codec_for(folder: Path, shapes: tuple[MessageShape, ...], locks: dict[str, Lock]) -> Codec:
    """Converters through freshly generated protos, compiled in `folder`."""
    paths = []
    for area, (proto, _) in generated(shapes, locks).items():
        path = folder / area_folder(area) / "facts.proto"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(proto, encoding="utf-8")
        paths.append(str(path))
    target = folder / "descriptors"
    well_known = Path(google.protobuf.__file__).parents[2]
    subprocess.run(
        [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", f"-I{well_known}",
         "--include_imports", f"--descriptor_set_out={target}", *paths],
        check=True,
    )  # fmt: skip
    pool = descriptor_pool.DescriptorPool()
    for each in descriptor_pb2.FileDescriptorSet.FromString(target.read_bytes()).file:
        pool.Add(each)

    def message_class(name: str) -> type[Message]:
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))

    return Codec(shapes, message_class)
