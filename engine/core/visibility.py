"""Who may see which field of a fact, and what a viewer gets instead of what it may not see.

Every field of every fact is annotated ``Public[T]``, ``Secret[T]`` or ``Sealed[T]``. A field
without one of them makes the import fail, so nothing can be published by forgetting. Rules do not
belong here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final, NewType, TypeVar, cast, get_type_hints

import msgspec

Seat = NewType("Seat", int)
"""A place at the table, 1 to N; 0 is nobody."""

NOBODY: Final = Seat(0)

T = TypeVar("T")
F = TypeVar("F", bound="Fact")


class Hidden(msgspec.Struct, frozen=True, gc=False, tag="hidden", tag_field="type"):
    """What stands in a field that the viewer may not see. Test with ``isinstance(value,
    Hidden)``.
    """


HIDDEN: Final = Hidden()

_PUBLIC: Final = "visibility:public"
_SECRET: Final = "visibility:secret"  # noqa: S105  # not a password
_SEALED: Final = "visibility:sealed"

Public = Annotated[T, _PUBLIC]
"""Everybody may see it."""
Secret = Annotated[T | Hidden, _SECRET]
"""The fact's ``seat`` may see it, or the seats in its ``audience`` where the fact has that field.
"""
Sealed = Annotated[T | Hidden, _SEALED]
"""Nobody may see it before the match is over."""


class UndeclaredVisibility(TypeError):
    """A field of a fact does not say who may see it."""


class Fact(msgspec.Struct, frozen=True, gc=False, tag_field="fact"):
    """Something that happened: the only thing that changes a state, and the only thing in
    the log.
    """

    def __init_subclass__(cls) -> None:
        """Refuse fields without a declared visibility and compile the redactor."""
        super().__init_subclass__()
        _declare(cls)


class _Rule(msgspec.Struct, frozen=True, gc=False):
    """The hidden fields of one type of fact."""

    secret: tuple[str, ...]
    sealed: tuple[str, ...]
    has_audience: bool


_RULES: dict[type[Fact], _Rule] = {}
_REDACTORS: dict[type[Fact], Callable[[Fact, Seat | None], Fact]] = {}


def _declare(fact_type: type[Fact]) -> None:
    hints = get_type_hints(fact_type, include_extras=True)
    kinds = {name: _visibility(fact_type, name, hint) for name, hint in hints.items()}
    secret = tuple(name for name, kind in kinds.items() if kind == _SECRET)
    sealed = tuple(name for name, kind in kinds.items() if kind == _SEALED)
    rule = _Rule(secret=secret, sealed=sealed, has_audience="audience" in kinds)
    if secret and not rule.has_audience and "seat" not in kinds:
        message = f"{fact_type.__qualname__} has secret fields but neither seat nor audience"
        raise UndeclaredVisibility(message)
    _RULES[fact_type] = rule
    if secret or sealed:
        _REDACTORS[fact_type] = _redactor(rule)


def _visibility(fact_type: type[Fact], name: str, hint: object) -> str:
    for mark in getattr(hint, "__metadata__", ()):
        if mark in (_PUBLIC, _SECRET, _SEALED):
            return str(mark)
    message = f"{fact_type.__qualname__}.{name} must be Public[...], Secret[...] or Sealed[...]"
    raise UndeclaredVisibility(message)


def _redactor(rule: _Rule) -> Callable[[Fact, Seat | None], Fact]:
    sealed = dict.fromkeys(rule.sealed, HIDDEN)
    everything = dict.fromkeys(rule.secret + rule.sealed, HIDDEN)

    def redact_fact(fact: Fact, viewer: Seat | None) -> Fact:
        if viewer is None:
            seen = False
        elif rule.has_audience:
            seen = viewer in cast("tuple[Seat, ...]", fact.audience)  # type: ignore[attr-defined]  # declared
        else:
            seen = viewer == cast("Seat", fact.seat)  # type: ignore[attr-defined]  # checked by _declare
        if not seen:
            return msgspec.structs.replace(fact, **everything)
        return msgspec.structs.replace(fact, **sealed) if sealed else fact

    return redact_fact


def redact(fact: F, viewer: Seat | None) -> F:
    """The fact as the viewer may see it while the match runs (None: a spectator)."""
    redactor = _REDACTORS.get(type(fact))
    return fact if redactor is None else cast("F", redactor(fact, viewer))


def has_hidden(fact_type: type[Fact]) -> bool:
    """Can a fact of this type ever be redacted?"""
    return fact_type in _REDACTORS


def hidden_fields(fact: Fact) -> tuple[str, ...]:
    """Names of the fields whose value is HIDDEN in this very fact."""
    rule = _RULES[type(fact)]
    names = rule.secret + rule.sealed
    return tuple(name for name in names if isinstance(getattr(fact, name), Hidden))


def visibility_of(fact_type: type[Fact]) -> dict[str, str]:
    """Field name to "public", "secret" or "sealed", in the order of the fields."""
    rule = _RULES[fact_type]
    names = fact_type.__struct_fields__
    return {
        name: "secret" if name in rule.secret else "sealed" if name in rule.sealed else "public"
        for name in names
    }
