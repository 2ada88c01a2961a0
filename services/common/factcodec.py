"""Between the engine's structs and protobuf: facts for the log and the wire, states for clients.

The mapping is that of ``factschema``. Converters are compiled once per type. What the log holds is
bytes: `encode_fact` makes them, `decode_fact` reads them; nothing here decides who may see what.
"""

import inspect
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from operator import attrgetter
from typing import Any, NamedTuple, cast

import msgspec
from google.protobuf import any_pb2, descriptor_pb2
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from engine import HIDDEN, Fact, Hidden, MatchState
from services.common.factschema import (
    HIDDEN_FIELDS,
    FieldShape,
    MessageShape,
    engine_roots,
    shapes_of,
)

_Encode = Callable[[msgspec.Struct], Message]
_Convert = Callable[[Any], Any]
_Read = Callable[[Message, Any], Any]


class EncodedFact(NamedTuple):
    """A fact as it lies in the log: the two fields of its ``google.protobuf.Any``."""

    type_url: str
    value: bytes


class BadFact(Exception):
    """Bytes that are no fact: `detail` says why."""

    def __init__(self, type_url: str, detail: str) -> None:
        super().__init__(f"{type_url or 'no type'}: {detail}")
        self.type_url = type_url
        self.detail = detail


class UnknownFact(BadFact):
    """A fact, or a field or word in one, that this software does not know: newer software wrote it.

    A reader must stop at it: what it does not know it cannot fold.
    """

    def __init__(self, type_url: str, detail: str = "no such type of fact") -> None:
        super().__init__(type_url, detail)


class OutOfDate(Exception):
    """The generated protobuf code is not that of the engine's structs."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is out of date: run python -m services.common.factgen")


class Codec:
    """Converters for a set of messages; `codec()` is the one for the whole engine.

    `message_class` gives the generated class of a full protobuf name. Raises OutOfDate at once
    where generated classes and shapes do not fit each other.
    """

    def __init__(
        self, shapes: Iterable[MessageShape], message_class: Callable[[str], type[Message]]
    ) -> None:
        self._shapes = {shape.cls: shape for shape in shapes}
        self._classes = {cls: _fitting(shape, message_class) for cls, shape in self._shapes.items()}
        self._encoders = {cls: self._encoder(shape) for cls, shape in self._shapes.items()}
        self._decoders = {cls: self._decoder(shape) for cls, shape in self._shapes.items()}
        self._by_url = {shape.type_url: shape for shape in self._shapes.values()}
        self._facts = {
            cls: (self._encoders[cls], shape.type_url, _hideable(shape))
            for cls, shape in self._shapes.items()
            if shape.tag
        }

    def encode(self, value: msgspec.Struct) -> Message:
        """The message of a struct; hidden fields are left out."""
        return self._encoders[type(value)](value)

    def encode_fact(self, fact: Fact) -> EncodedFact:
        """A complete fact for the log. Raises ValueError when a field of it is HIDDEN."""
        encoded, hidden = self.encode_redacted(fact)
        if hidden:
            raise ValueError(f"{type(fact).__name__}: hidden {', '.join(hidden)} cannot be logged")
        return encoded

    def encode_redacted(self, fact: Fact) -> tuple[EncodedFact, tuple[str, ...]]:
        """A fact as some viewer sees it, and the names of its hidden fields."""
        encode, type_url, hideable = self._facts[type(fact)]
        value = encode(fact).SerializeToString()
        hidden = tuple([name for name in hideable if type(getattr(fact, name)) is Hidden])
        return EncodedFact(type_url, value), hidden

    def decode_fact(self, type_url: str, value: bytes, hidden: Iterable[str] = ()) -> Fact:
        """The fact of these bytes, with HIDDEN in the fields named. Raises BadFact, UnknownFact."""
        shape = self._by_url.get(type_url)
        if shape is None or not shape.tag:
            raise UnknownFact(type_url)
        return cast("Fact", self._decode(shape, value, tuple(hidden)))

    def fact_type(self, type_url: str) -> type[Fact]:
        """The type of fact behind a type url. Raises UnknownFact."""
        shape = self._by_url.get(type_url)
        if shape is None or not issubclass(shape.cls, Fact):
            raise UnknownFact(type_url)
        return shape.cls

    def state_to_any(self, state: msgspec.Struct) -> any_pb2.Any:
        """A state (of a match or of a game) for clients."""
        shape = self._shapes[type(state)]
        return any_pb2.Any(type_url=shape.type_url, value=self.encode(state).SerializeToString())

    def state_from_any(self, packed: any_pb2.Any) -> msgspec.Struct:
        """The inverse of `state_to_any`. Raises BadFact, UnknownFact."""
        shape = self._by_url.get(packed.type_url)
        if shape is None or shape.tag:
            raise UnknownFact(packed.type_url, "no such type of state")
        return self._decode(shape, packed.value, ())

    def _decode(self, shape: MessageShape, value: bytes, hidden: tuple[str, ...]) -> msgspec.Struct:
        message = self._classes[shape.cls]()
        try:
            message.ParseFromString(value)
        except DecodeError:
            raise BadFact(shape.type_url, "not the bytes of such a message") from None
        # Fields of newer software lie in the message unseen; without them it is shorter.
        size = message.ByteSize()
        message.DiscardUnknownFields()
        if message.ByteSize() != size:
            _refuse_newer_fields(shape.type_url, type(message)(), value)
        for name in hidden:
            if name not in _hideable(shape):
                raise BadFact(shape.type_url, f"{name} cannot be hidden")
        try:
            return self._decoders[shape.cls](message, hidden)
        except _Fault as fault:
            kind = UnknownFact if fault.is_newer else BadFact
            raise kind(shape.type_url, str(fault)) from None

    # -- encoding --------------------------------------------------------------------------------

    def _encoder(self, shape: MessageShape) -> _Encode:
        make: Any = self._classes[shape.cls]
        converts = tuple(
            (field.name, self._to_message(field))
            for field in shape.fields
            if field.scalar in ("message", "any")
        )
        hideable = _hideable(shape)
        names_hidden = shape.names_hidden
        as_dict = msgspec.structs.asdict

        def encode_plain(value: msgspec.Struct) -> Message:
            return cast("Message", make(**as_dict(value)))

        def encode(value: msgspec.Struct) -> Message:
            content: dict[str, Any] = as_dict(value)
            hidden = [name for name in hideable if type(content[name]) is Hidden]
            for name in hidden:
                content[name] = None
            for name, convert in converts:
                if content[name] is not None:
                    content[name] = convert(content[name])
            if hidden and names_hidden:
                content[HIDDEN_FIELDS] = hidden
            return cast("Message", make(**content))

        return encode if converts or hideable else encode_plain

    def _to_message(self, field: FieldShape) -> _Convert:
        if field.scalar == "any":
            return self.state_to_any
        struct = field.struct
        assert struct is not None, field

        def convert(value: msgspec.Struct) -> Message:
            return self._encoders[struct](value)

        def convert_all(values: tuple[msgspec.Struct, ...]) -> list[Message]:
            encode = self._encoders[struct]
            return [encode(each) for each in values]

        return convert_all if field.repeated else convert

    # -- decoding --------------------------------------------------------------------------------

    def _decoder(self, shape: MessageShape) -> Callable[[Message, tuple[str, ...]], msgspec.Struct]:
        cls: Any = shape.cls
        names = tuple(field.name for field in shape.fields)
        if not names:
            empty: msgspec.Struct = cls()
            return lambda _message, _hidden: empty
        get = attrgetter(*names, names[0])  # one more, so that it is always a tuple
        reads = tuple(
            (index, name, read)
            for index, (name, read) in enumerate(
                (field.name, self._from_message(field)) for field in shape.fields
            )
            if read is not None
        )
        names_hidden = shape.names_hidden
        by_position = all(
            parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
            for parameter in inspect.signature(cls).parameters.values()
        )

        def decode(message: Message, hidden: tuple[str, ...]) -> msgspec.Struct:
            values: list[Any] = list(get(message))
            if names_hidden:
                hidden = tuple(getattr(message, HIDDEN_FIELDS))
            for index, name, read in reads:
                values[index] = HIDDEN if name in hidden else read(message, values[index])
            if by_position:
                return cast("msgspec.Struct", cls(*values[:-1]))
            return cast("msgspec.Struct", cls(**dict(zip(names, values, strict=False))))

        return decode

    def _from_message(self, field: FieldShape) -> _Read | None:
        """What turns the protobuf value of a field into the struct's; None: nothing to do."""
        if field.repeated:
            return self._repeated_reader(field)
        if field.scalar in ("message", "any"):
            return self._message_reader(field)
        read = _word_reader(field) if field.words else None
        if not field.has_presence:
            return read if read or not field.hidden_ok else _unchanged
        name, absent = field.name, None if field.none_ok else field.default

        def read_optional(message: Message, value: Any) -> Any:
            # The default itself, not its equal: msgspec leaves out what is identical to it.
            if not message.HasField(name) or value == absent:
                return absent
            return read(message, value) if read else value

        return read_optional

    def _repeated_reader(self, field: FieldShape) -> _Read:
        struct = field.struct
        if struct is not None:

            def read_all(_: Message, values: Any) -> tuple[msgspec.Struct, ...]:
                decode = self._decoders[struct]
                return tuple([decode(each, ()) for each in values])

            return read_all
        if field.words:
            read = _word_reader(field)
            return lambda message, values: tuple([read(message, each) for each in values])
        return lambda _, values: tuple(values)

    def _message_reader(self, field: FieldShape) -> _Read:
        name, struct = field.name, field.struct
        absent = None if field.none_ok else field.default

        def read(message: Message, value: Any) -> Any:
            if not message.HasField(name):
                if absent is msgspec.NODEFAULT:
                    raise _Fault(f"{name} is missing")
                return absent
            if struct is None:
                return self.state_from_any(value)
            decoded = self._decoders[struct](value, ())
            return absent if decoded == absent else decoded

        return read


class _Fault(Exception):
    """Something in a message that no struct can hold."""

    def __init__(self, detail: str, *, is_newer: bool = False) -> None:
        super().__init__(detail)
        self.is_newer = is_newer


def _hideable(shape: MessageShape) -> tuple[str, ...]:
    return tuple(field.name for field in shape.fields if field.hidden_ok)


def _unchanged(_: Message, value: Any) -> Any:
    return value


def _word_reader(field: FieldShape) -> _Read:
    words, name = field.words, field.name

    def read(_: Message, value: Any) -> Any:
        if value not in words:
            raise _Fault(f"{name} is {value!r}, not one of {sorted(words)}", is_newer=True)
        return value

    return read


def _refuse_newer_fields(type_url: str, message: Message, value: bytes) -> None:
    """Raise UnknownFact, unless all unknown fields are ones that were removed."""
    message.ParseFromString(value)
    waiting = [message]
    while waiting:
        each = waiting.pop()
        reserved = _reserved_numbers(each.DESCRIPTOR)
        unknown = UnknownFieldSet(each)
        for index in range(len(unknown)):
            number = unknown[index].field_number
            if not any(number in one for one in reserved):
                detail = f"{each.DESCRIPTOR.name} has an unknown field {number}"
                raise UnknownFact(type_url, detail)
        for field, content in each.ListFields():
            if field.message_type is not None:
                waiting += content if field.is_repeated else (content,)


@cache
def _reserved_numbers(descriptor: Descriptor) -> tuple[range, ...]:
    proto = descriptor_pb2.DescriptorProto()
    descriptor.CopyToProto(proto)
    return tuple(range(each.start, each.end) for each in proto.reserved_range)


def _fitting(shape: MessageShape, message_class: Callable[[str], type[Message]]) -> type[Message]:
    try:
        found = message_class(shape.full_name)
    except (ImportError, AttributeError, KeyError):
        raise OutOfDate(shape.full_name) from None
    if not {field.name for field in shape.fields} <= set(found.DESCRIPTOR.fields_by_name):
        raise OutOfDate(shape.full_name)
    return found


def _generated_class(full_name: str) -> type[Message]:
    package, _, name = full_name.rpartition(".")
    return cast("type[Message]", getattr(import_module(f"{package}.facts_pb2"), name))


@cache
def codec() -> Codec:
    """The converters of everything in the engine's catalogue."""
    return Codec(shapes_of(engine_roots()), _generated_class)


def encode_fact(fact: Fact) -> EncodedFact:
    """A complete fact for the log. Raises ValueError when a field of it is HIDDEN."""
    return codec().encode_fact(fact)


def decode_fact(type_url: str, value: bytes, hidden: Iterable[str] = ()) -> Fact:
    """The fact of these bytes, with HIDDEN in the fields named. Raises BadFact, UnknownFact."""
    return codec().decode_fact(type_url, value, hidden)


def state_to_any(state: MatchState) -> any_pb2.Any:
    """The state of a match, whole or redacted, as a ``diceledger.facts.core.v1.MatchState``."""
    return codec().state_to_any(state)


def state_from_any(packed: any_pb2.Any) -> MatchState:
    """The inverse of `state_to_any`, HIDDEN included. Raises BadFact, UnknownFact."""
    state = codec().state_from_any(packed)
    if not isinstance(state, MatchState):
        raise BadFact(packed.type_url, "not the state of a match")
    return state
