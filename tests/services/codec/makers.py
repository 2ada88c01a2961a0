"""Commits and facts for the tests of this folder: real core facts, drawn at random where wanted."""

from typing import Any

import msgspec
from hypothesis import strategies as st

from engine import CORE_FACTS, Answer, Answered, Fact, Seat
from services.common.commits import Cause, How, ParsedCommit, Ruleset, make_commit
from services.common.factschema import engine_roots

CAUSE = Cause(
    request_id="r-1",
    actor="alice",
    seat=2,
    prompt_id="p4",
    answer=b"\x10\x03",
    how=How.ANSWER,
    digest=b"d" * 32,
)
SEATS = st.integers(1, 4).map(Seat)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.integers(-(2**63), 2**63 - 1)


def fields(**changed: Any) -> Any:
    """What make_commit wants, for the second commit of some match."""
    return {
        "log_id": "log-1",
        "partition": 3,
        "writer": "match-0",
        "epoch": 41,
        "match_id": "abcdefghijklmnopqrstuvwxyz",
        "sequence": 2,
        "first_fact": 5,
        "facts": [Answered(Seat(2), "p4", Answer(number=3))],  # type: ignore[arg-type]  # an id
        "cause": CAUSE,
        "previous_hash": b"p" * 32,
        "ruleset": Ruleset("king_of_tokyo", ("bay",), 7),
        "deadline_ms": 1_700_000_030_000,
        "recorded_at_ms": 1_700_000_000_000,
        **changed,
    }


def chain(steps: list[list[Fact]]) -> list[ParsedCommit]:
    """The commits of one match, one for each step's facts."""
    commits: list[ParsedCommit] = []
    written = 0
    for sequence, facts in enumerate(steps, 1):
        commit = make_commit(
            **fields(
                facts=facts,
                sequence=sequence,
                first_fact=written,
                previous_hash=commits[-1].hash if commits else b"",
                cause=msgspec.structs.replace(CAUSE, request_id=f"r{sequence}", seat=sequence % 3),
            )
        )
        commits.append(commit)
        written += len(facts)
    return commits


def structs(cls: type[Any]) -> st.SearchStrategy[Any]:
    """Random values of a struct of the engine, by the types of its fields."""
    info = msgspec.inspect.type_info(cls)
    assert isinstance(info, msgspec.inspect.StructType)
    return st.builds(cls, **{field.name: _values(field.type) for field in info.fields})


def _values(info: msgspec.inspect.Type) -> st.SearchStrategy[Any]:
    kinds = msgspec.inspect
    match info:
        case kinds.IntType():
            return st.one_of(SEATS, NUMBERS)
        case kinds.StrType():
            return TEXTS
        case kinds.BytesType():
            return st.binary(max_size=8)
        case kinds.BoolType():
            return st.booleans()
        case kinds.NoneType():
            return st.none()
        case kinds.LiteralType():
            return st.sampled_from(info.values)
        case kinds.VarTupleType():
            return st.lists(_values(info.item_type), max_size=3).map(tuple)
        case kinds.StructType():
            return structs(info.cls)
        case kinds.UnionType():
            shown = [each for each in info.types if "Hidden" not in str(getattr(each, "cls", ""))]
            return st.one_of(*map(_values, shown))
        case _:
            raise AssertionError(info)


# Those of the kernel can be folded in any order; those of a game need a table that fits.
CORE: st.SearchStrategy[Fact] = st.one_of(*map(structs, CORE_FACTS))
FACTS: st.SearchStrategy[Fact] = st.one_of(
    *[structs(cls) for cls in engine_roots() if issubclass(cls, Fact)]
)
