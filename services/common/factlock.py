"""The committed numbers of the fields of generated messages, and which changes of them are allowed.

One JSON file per area lies beside its .proto. Numbers are given once: a new field gets the next
one, a removed one stays reserved for ever. What written logs could not survive is refused.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, Self

import msgspec

from services.common.factschema import HIDDEN_FIELDS, FieldShape, MessageShape, reachable

HIDDEN_FIELDS_NUMBER: Final = 1_000
_HIDDEN_FIELDS_TYPE: Final = "repeated string"
_VERSION: Final = 1


class BreakingChange(Exception):
    """Messages were changed in ways that written logs or clients would not survive.

    `faults` says for each what was done and what to do instead.
    """

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


class LockedField(NamedTuple):
    """Number and type, label included, as in the .proto; other messages with their area."""

    number: int
    type: str


class LockedMessage(msgspec.Struct, frozen=True):
    """The fields of one message by name, and those that it once had; `tag` is empty but for facts.

    `retired`: no struct has this form any more; kept so that its numbers are not given again.
    """

    tag: str
    fields: Mapping[str, LockedField]
    reserved: Mapping[str, LockedField]
    retired: bool = False


class Lock(msgspec.Struct, frozen=True):
    """The messages of one area, by name."""

    messages: Mapping[str, LockedMessage]

    @classmethod
    def loads(cls, text: str) -> Self:
        """Read a lock file. Raises ValueError where it is damaged."""
        try:
            raw = msgspec.json.decode(text, type=_File)
            if raw.version != _VERSION:
                raise ValueError(f"version {raw.version}")
            messages = {
                name: LockedMessage(
                    tag=each.fact,
                    fields={field: _read(entry) for field, entry in each.fields.items()},
                    reserved={field: _read(entry) for field, entry in each.reserved.items()},
                    retired=each.retired,
                )
                for name, each in raw.messages.items()
            }
        except (msgspec.MsgspecError, ValueError) as error:
            raise ValueError(f"not a lock of field numbers: {error}") from error
        return cls(messages)

    def dumps(self) -> str:
        """The text of the lock file: one field a line, sorted by message and number."""
        messages = {}
        for name, each in sorted(self.messages.items()):
            entry: dict[str, object] = {"fact": each.tag} if each.tag else {}
            entry["fields"] = _written(each.fields)
            if each.reserved:
                entry["reserved"] = _written(each.reserved)
            if each.retired:
                entry["retired"] = True
            messages[name] = entry
        return json.dumps({"version": _VERSION, "messages": messages}, indent=2) + "\n"


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    fields: dict[str, str]
    fact: str = ""
    reserved: dict[str, str] = {}
    retired: bool = False


class _File(msgspec.Struct, forbid_unknown_fields=True):
    version: int
    messages: dict[str, _Entry]


def _read(entry: str) -> LockedField:
    number, _, type_name = entry.partition(" ")
    return LockedField(int(number), type_name)


def _written(fields: Mapping[str, LockedField]) -> dict[str, str]:
    ordered = sorted(fields.items(), key=lambda item: item[1].number)
    return {name: f"{field.number} {field.type}" for name, field in ordered}


def field_type(field: FieldShape, messages: Mapping[type[msgspec.Struct], MessageShape]) -> str:
    """How the lock names a field's type: "repeated int64", "optional string", "core.Prompt"."""
    name: str = field.scalar
    if field.struct is not None:
        shape = messages[field.struct]
        name = f"{shape.area}.{shape.name}"
    label = "repeated " if field.repeated else "optional " if field.has_presence else ""
    return label + name


def merge(lock: Lock | None, area: str, shapes: Iterable[MessageShape]) -> Lock:
    """The lock that fits the shapes (of all areas), going on from the committed one.

    Raises BreakingChange with everything that is wrong in this area.
    """
    everything = tuple(shapes)
    by_class = {shape.cls: shape for shape in everything}
    logged = {shape.cls for shape in reachable(everything)}
    before = dict(lock.messages) if lock is not None else {}
    after: dict[str, LockedMessage] = {}
    faults: list[str] = []
    for shape in everything:
        if shape.area == area:
            after[shape.name] = _merged(
                before.pop(shape.name, None), shape, by_class, shape.cls in logged, faults
            )
    for name, gone in before.items():
        if gone.tag:
            faults.append(
                f"{area}.{name}: the fact {gone.tag!r} is gone; logs hold it: keep the struct "
                "(and its evolve function) even when no rule records it any more"
            )
        after[name] = msgspec.structs.replace(gone, retired=True)
    if faults:
        raise BreakingChange(faults)
    return Lock(after)


def _merged(
    old: LockedMessage | None,
    shape: MessageShape,
    by_class: Mapping[type[msgspec.Struct], MessageShape],
    is_logged: bool,
    faults: list[str],
) -> LockedMessage:
    where = f"{shape.area}.{shape.name}"
    known = dict(old.fields) if old is not None else {}
    reserved = dict(old.reserved) if old is not None else {}
    if old is not None and old.tag != shape.tag:
        faults.append(f"{where}: was {old.tag or 'no fact'!r}, is {shape.tag or 'no fact'!r} now")
    numbers = [f.number for f in (*known.values(), *reserved.values())]
    following = max((n for n in numbers if n != HIDDEN_FIELDS_NUMBER), default=0) + 1
    fields: dict[str, LockedField] = {}
    for field in shape.fields:
        type_name = field_type(field, by_class)
        locked = known.pop(field.name, None)
        if locked is None:
            if field.name in reserved:
                faults.append(f"{where}.{field.name}: a removed field had this name; take another")
            if old is not None and is_logged and field.default is msgspec.NODEFAULT:
                faults.append(
                    f"{where}.{field.name}: a new field needs a default; facts without it are "
                    "in logs already"
                )
            locked = LockedField(following, type_name)
            following += 1
        elif locked.type != type_name:
            faults.append(
                f"{where}.{field.name}: was {locked.type!r}, is {type_name!r} now; add a field of "
                "another name instead"
            )
        fields[field.name] = locked
    had_hidden = known.pop(HIDDEN_FIELDS, None)
    if shape.names_hidden or had_hidden is not None:
        fields[HIDDEN_FIELDS] = LockedField(HIDDEN_FIELDS_NUMBER, _HIDDEN_FIELDS_TYPE)
    return LockedMessage(tag=shape.tag, fields=fields, reserved={**reserved, **known})
