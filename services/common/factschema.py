"""How the engine's structs look as protobuf messages: the one place that knows the mapping.

``factgen`` writes the .proto files from it, ``factcodec`` converts values by it. An *area* is a
protobuf package, ``diceledger.facts.<area>.v1``: ``core`` for engine.core, and one for each package
directly under engine.games.

The mapping: int is int64; bool, bytes as such; str, its NewTypes and Literals are string; a tuple
``tuple[T, ...]`` is repeated; a nested struct is a message; ``T | None`` and a field whose default
is not the zero value are ``optional``; a game's state inside the match state is a
``google.protobuf.Any``. A field that may hold HIDDEN is left out when it does, and named: beside a
fact, in ``hidden_fields`` of ``RedactedFact``; in any other message, in its own ``hidden_fields``.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final, Literal, NamedTuple

import msgspec
from msgspec import inspect

from engine import CORE_FACTS, Fact, GameState, Hidden, MatchState, catalogue, visibility_of

Scalar = Literal["int64", "bool", "string", "bytes", "message", "any"]

CORE_AREA: Final = "core"
PACKAGE: Final = "diceledger.facts.{area}.v1"
TYPE_URL_PREFIX: Final = "type.googleapis.com/"
HIDDEN_FIELDS: Final = "hidden_fields"
"""Name of the extra field that names the hidden ones in messages that are not facts."""

_ZERO: Final[dict[Scalar, object]] = {"int64": 0, "bool": False, "string": "", "bytes": b""}
_SCALARS: Final[tuple[tuple[type[inspect.Type], Scalar], ...]] = (
    (inspect.BoolType, "bool"),
    (inspect.IntType, "int64"),
    (inspect.StrType, "string"),
    (inspect.LiteralType, "string"),
    (inspect.BytesType, "bytes"),
)


class Inexpressible(TypeError):
    """A field of the engine has a type that no protobuf field can carry; the message names it."""


class FieldShape(NamedTuple):
    """One field of a message.

    `struct` is set where `scalar` is "message". `has_presence`: the .proto says ``optional``.
    `default` is msgspec.NODEFAULT where the struct demands a value. `words` are the only values of
    a Literal, empty for other types. `visibility` is "public", "secret" or "sealed", "" outside
    facts.
    """

    name: str
    scalar: Scalar
    struct: type[msgspec.Struct] | None
    repeated: bool
    none_ok: bool
    hidden_ok: bool
    has_presence: bool
    default: object
    words: frozenset[str]
    visibility: str


class MessageShape(NamedTuple):
    """One message: a fact (`tag` is its tag) or another struct (`tag` is empty)."""

    cls: type[msgspec.Struct]
    area: str
    name: str
    tag: str
    fields: tuple[FieldShape, ...]

    @property
    def full_name(self) -> str:
        """The protobuf name, package included."""
        return f"{PACKAGE.format(area=self.area)}.{self.name}"

    @property
    def type_url(self) -> str:
        """What stands in the ``Any`` that carries it."""
        return TYPE_URL_PREFIX + self.full_name

    @property
    def names_hidden(self) -> bool:
        """Does the message itself name its hidden fields?"""
        return not self.tag and any(field.hidden_ok for field in self.fields)


def engine_roots() -> tuple[type[msgspec.Struct], ...]:
    """All facts and states of the engine; what they contain follows from them."""
    roots: dict[type[msgspec.Struct], None] = dict.fromkeys((*CORE_FACTS, MatchState))
    for game in catalogue().values():
        roots.update(dict.fromkeys((*game.facts, game.state)))
    return tuple(roots)


def shapes_of(roots: Iterable[type[msgspec.Struct]]) -> tuple[MessageShape, ...]:
    """The messages of these structs and of all structs inside them, sorted by area and name.

    Raises Inexpressible, also when two structs of one area would have the same name.
    """
    found: dict[type[msgspec.Struct], MessageShape] = {}
    waiting = list(roots)
    while waiting:
        cls = waiting.pop()
        if cls in found:
            continue
        shape = found[cls] = shape_of(cls)
        waiting.extend(field.struct for field in shape.fields if field.struct is not None)
    taken: dict[str, type[msgspec.Struct]] = {}
    for shape in found.values():
        other = taken.setdefault(shape.full_name, shape.cls)
        if other is not shape.cls:
            names = sorted((_where(other), _where(shape.cls)))
            raise Inexpressible(f"{names[0]} and {names[1]} would both be {shape.full_name}")
    return tuple(sorted(found.values(), key=lambda shape: (shape.area, shape.name)))


def reachable(shapes: Iterable[MessageShape]) -> Iterator[MessageShape]:
    """The facts among the shapes, and what they contain: the messages that lie in logs."""
    by_class = {shape.cls: shape for shape in shapes}
    waiting = [shape for shape in by_class.values() if shape.tag]
    seen: set[type[msgspec.Struct]] = set()
    while waiting:
        shape = waiting.pop()
        if shape.cls not in seen:
            seen.add(shape.cls)
            yield shape
            waiting += (by_class[f.struct] for f in shape.fields if f.struct is not None)


@cache
def shape_of(cls: type[msgspec.Struct]) -> MessageShape:
    """The message of one struct. Raises Inexpressible."""
    info = inspect.type_info(cls)
    assert isinstance(info, inspect.StructType), cls
    is_fact = issubclass(cls, Fact)
    tag = str(cls.__struct_config__.tag) if is_fact else ""
    seen_by = visibility_of(cls) if issubclass(cls, Fact) else {}
    fields = tuple(_field(cls, each, seen_by.get(each.name, "")) for each in info.fields)
    name = "".join(part.capitalize() for part in tag.split("_")) if is_fact else cls.__name__
    return MessageShape(cls=cls, area=area_of(cls), name=name, tag=tag, fields=fields)


def area_of(cls: type[msgspec.Struct]) -> str:
    """The area whose package a struct's message belongs to, from the module that defines it."""
    match cls.__module__.split("."):
        case ["engine", "core", *_]:
            return CORE_AREA
        case ["engine", "games", area, *_]:
            return area
        case _:
            raise Inexpressible(f"{_where(cls)} is outside engine.core and engine.games")


def _where(cls: type[msgspec.Struct], field: str = "") -> str:
    return f"{cls.__module__}.{cls.__qualname__}" + (f".{field}" if field else "")


def _field(cls: type[msgspec.Struct], field: inspect.Field, visibility: str) -> FieldShape:
    where = _where(cls, field.name)
    if field.name == HIDDEN_FIELDS:
        raise Inexpressible(f"{where}: the name is taken, it lists the hidden fields")
    members = list(field.type.types) if isinstance(field.type, inspect.UnionType) else [field.type]
    none_ok = any(isinstance(each, inspect.NoneType) for each in members)
    hidden_ok = any(_is_hidden(each) for each in members)
    members = [e for e in members if not isinstance(e, inspect.NoneType) and not _is_hidden(e)]
    if len(members) != 1:
        raise Inexpressible(f"{where}: a field has one type, besides None and HIDDEN")
    content = members[0]
    repeated = isinstance(content, inspect.VarTupleType)
    if isinstance(content, inspect.VarTupleType):
        content = content.item_type
    scalar = _scalar(where, content, repeated=repeated)
    default = _default(where, field)
    if repeated and none_ok:
        raise Inexpressible(f"{where}: a tuple or None; an empty tuple and None look the same")
    if repeated and default not in (msgspec.NODEFAULT, ()):
        raise Inexpressible(f"{where}: the default of a tuple can only be the empty tuple")
    if none_ok and default not in (msgspec.NODEFAULT, None):
        raise Inexpressible(f"{where}: the default of a field that may be None can only be None")
    struct = content.cls if isinstance(content, inspect.StructType) else None
    other_default = default is not msgspec.NODEFAULT and default != _ZERO.get(scalar)
    return FieldShape(
        name=field.name,
        scalar=scalar,
        struct=struct if scalar == "message" else None,
        repeated=repeated,
        none_ok=none_ok,
        hidden_ok=hidden_ok,
        has_presence=not repeated and struct is None and (none_ok or other_default),
        default=default,
        words=_words(content),
        visibility=visibility,
    )


def _words(info: inspect.Type) -> frozenset[str]:
    return (
        frozenset(map(str, info.values)) if isinstance(info, inspect.LiteralType) else frozenset()
    )


def _is_hidden(info: inspect.Type) -> bool:
    return isinstance(info, inspect.StructType) and info.cls is Hidden


def _scalar(where: str, info: inspect.Type, *, repeated: bool) -> Scalar:
    if isinstance(info, inspect.StructType):
        if info.cls is not GameState:
            return "message"
        if repeated:
            raise Inexpressible(f"{where}: one game state at most")
        return "any"
    if isinstance(info, inspect.LiteralType) and not all(isinstance(v, str) for v in info.values):
        raise Inexpressible(f"{where}: a Literal of something else than texts")
    for kind, scalar in _SCALARS:
        if isinstance(info, kind):
            return scalar
    inside = "a tuple of " if repeated else ""
    name = type(info).__name__.removesuffix("Type")
    raise Inexpressible(
        f"{where}: {inside}{name} has no protobuf form; use int, bool, str, bytes, a Literal of "
        "texts, a struct, tuple[one of these, ...], or one of these | None"
    )


def _default(where: str, field: inspect.Field) -> object:
    if field.default_factory is not msgspec.NODEFAULT:
        value: object = field.default_factory()
        if value not in ((), []):
            raise Inexpressible(f"{where}: a default made by a function")
        return ()
    return field.default
