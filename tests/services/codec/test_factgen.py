"""The generated messages: current, complete, and with numbers that never change."""

from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from engine import Fact, GameState, Public, Seat, catalogue
from services.common import factgen, protogen
from services.common.factgen import area_folder, committed_locks, differences, generated, outputs
from services.common.factlock import BreakingChange, Lock, LockedField
from services.common.factschema import (
    Inexpressible,
    area_of,
    engine_roots,
    shape_of,
    shapes_of,
)
from tests.services.codec import toys
from tests.services.codec.toys import of_engine


def test_the_committed_messages_are_those_of_the_engine() -> None:
    """Run ``python -m services.common.factgen`` when this fails, and commit what it writes."""
    assert differences(protogen.PROTO_ROOT, shapes_of(engine_roots())) == []


def test_the_committed_python_code_is_that_of_the_protos() -> None:
    """Run ``python -m services.common.protogen`` when this fails, and commit what it writes."""
    assert protogen.differences() == []


def test_every_fact_and_state_of_every_game_has_a_message() -> None:
    locks = committed_locks(protogen.PROTO_ROOT)
    for game in catalogue().values():
        for cls in (*game.facts, game.state):
            shape = shape_of(cls)
            assert shape.name in locks[shape.area].messages


def lock_of(*roots: type[msgspec.Struct], before: Lock | None = None) -> Lock:
    texts = generated(shapes_of(roots), {"toys": before} if before else {})
    return Lock.loads(texts["toys"][1])


def faults_of(before: Lock, *roots: type[msgspec.Struct]) -> str:
    with pytest.raises(BreakingChange) as caught:
        generated(shapes_of(roots), {"toys": before})
    return "\n".join(caught.value.faults)


def thing_happened(
    fields: list[Any], name: str = "ThingHappened", tag: str = "thing_happened"
) -> type[msgspec.Struct]:
    """A fact type with these fields, as another version of the software may have it."""
    return of_engine(
        msgspec.defstruct(name, fields, bases=(Fact,), frozen=True, tag=tag, module=__name__)
    )


# As a plain value, so that types can be put into it at run time.
PUBLIC: Any = Public
PUBLIC_INT = ("amount", Public[int])
PUBLIC_TEXT = ("cause", Public[str])
BEFORE = lock_of(thing_happened([PUBLIC_INT, PUBLIC_TEXT]))


def test_numbers_follow_the_order_of_the_fields() -> None:
    assert BEFORE.messages["ThingHappened"].fields == {
        "amount": LockedField(1, "int64"),
        "cause": LockedField(2, "string"),
    }


def test_a_new_field_gets_the_next_number_wherever_it_stands() -> None:
    new = ("seat", Public[Seat], Seat(0))
    fields: list[Any] = [new, ("amount", Public[int], 0), ("cause", Public[str], "")]
    after = lock_of(thing_happened(fields), before=BEFORE)
    numbers = {name: each.number for name, each in after.messages["ThingHappened"].fields.items()}
    assert numbers == {"amount": 1, "cause": 2, "seat": 3}


def test_a_removed_field_stays_reserved_for_ever() -> None:
    without = thing_happened([PUBLIC_INT])
    after = lock_of(without, before=BEFORE)
    assert after.messages["ThingHappened"].reserved == {"cause": LockedField(2, "string")}
    text = generated(shapes_of([without]), {"toys": BEFORE})["toys"][0]
    assert '  reserved 2;\n  reserved "cause";\n' in text
    again = lock_of(thing_happened([PUBLIC_INT, ("other", Public[int], 0)]), before=after)
    assert again.messages["ThingHappened"].fields["other"].number == 3
    assert "take another" in faults_of(after, thing_happened([PUBLIC_INT, PUBLIC_TEXT]))


def test_the_order_of_fields_in_the_struct_means_nothing() -> None:
    swapped = thing_happened([PUBLIC_TEXT, PUBLIC_INT])
    assert lock_of(swapped, before=BEFORE).dumps() == BEFORE.dumps()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ([("amount", Public[str]), PUBLIC_TEXT], "amount: was 'int64', is 'string' now"),
        ([("amount", PUBLIC[int | None]), PUBLIC_TEXT], "is 'optional int64' now"),
        ([("amount", Public[int], 5)], "is 'optional int64' now"),
        ([("amount", Public[tuple[int, ...]]), PUBLIC_TEXT], "is 'repeated int64' now"),
        ([("amount", Public[toys.Token]), PUBLIC_TEXT], "is 'toys.Token' now"),
        ([PUBLIC_INT, PUBLIC_TEXT, ("seat", Public[Seat])], "seat: a new field needs a default"),
    ],
)  # fmt: skip
def test_what_written_logs_would_not_survive_is_refused(fields: list[Any], words: str) -> None:
    assert words in faults_of(BEFORE, thing_happened(fields))


def test_a_fact_cannot_go_while_logs_hold_it() -> None:
    other = thing_happened([PUBLIC_INT], "OtherHappened", "other_happened")
    assert "'thing_happened' is gone" in faults_of(BEFORE, other)


def test_all_that_is_wrong_is_said_at_once() -> None:
    said = faults_of(BEFORE, thing_happened([("amount", Public[str]), ("cause", Public[int])]))
    assert len(said.splitlines()) == 2


def test_a_state_may_gain_fields_without_default_and_lose_messages() -> None:
    """States are not in logs; only their numbers are kept."""

    def table(fields: list[Any]) -> type[msgspec.Struct]:
        return of_engine(
            msgspec.defstruct(
                "Board", fields, bases=(GameState,), frozen=True, kw_only=True, tag="b",
                tag_field="state",
            )
        )  # fmt: skip

    before = lock_of(table([("top", toys.Token)]))
    after = lock_of(table([("next", int)]), before=before)
    assert after.messages["Token"].retired
    assert after.messages["Board"].reserved["top"].number == 4
    again = lock_of(table([("next", int), ("other", toys.Token)]), before=after)
    assert not again.messages["Token"].retired
    assert again.messages["Token"].fields == before.messages["Token"].fields


def test_the_name_of_a_fact_comes_from_its_tag() -> None:
    """So a class may be renamed while its facts lie in logs."""
    renamed = thing_happened([PUBLIC_INT, PUBLIC_TEXT], name="SomethingOccurred")
    assert lock_of(renamed, before=BEFORE).dumps() == BEFORE.dumps()


def test_a_lock_comes_back_as_it_went() -> None:
    lock = lock_of(*toys.ROOTS)
    assert Lock.loads(lock.dumps()) == lock


@pytest.mark.parametrize("text", ["", "{}", '{"version": 2, "messages": {}}', '{"version": 1}'])
def test_a_damaged_lock_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        Lock.loads(text)


@pytest.mark.parametrize(
    ("field", "words"),
    [
        (tuple[tuple[int, ...], ...], "a tuple of VarTuple has no protobuf form"),
        (tuple[int, str], "Tuple has no protobuf form"),
        (tuple[int, ...] | None, "an empty tuple and None look the same"),
        (dict[str, int], "Dict has no protobuf form"),
        (frozenset[int], "FrozenSet has no protobuf form"),
        (float, "Float has no protobuf form"),
        (int | str, "a field has one type"),
        (Literal[1, 2], "a Literal of something else than texts"),
        (tuple[GameState, ...], "one game state at most"),
    ],
)  # fmt: skip
def test_what_has_no_protobuf_form_is_refused_by_name(field: Any, words: str) -> None:
    fact = thing_happened([("odd", PUBLIC[field])])
    with pytest.raises(Inexpressible) as caught:
        shape_of(fact)
    assert words in str(caught.value)
    assert "ThingHappened.odd" in str(caught.value)


@pytest.mark.parametrize(("kind", "default"), [(tuple[int, ...], (1,)), (int | None, 1)])
def test_defaults_that_cannot_be_told_from_nothing_are_refused(kind: Any, default: Any) -> None:
    with pytest.raises(Inexpressible):
        shape_of(thing_happened([("odd", PUBLIC[kind], default)]))


def test_two_structs_of_one_name_are_refused() -> None:
    other = of_engine(msgspec.defstruct("Token", [("size", int)], frozen=True))
    fact = thing_happened([("one", Public[toys.Token]), ("two", PUBLIC[other])])
    with pytest.raises(Inexpressible, match=r"would both be diceledger\.facts\.toys\.v1\.Token"):
        shapes_of([fact])


def test_a_struct_from_elsewhere_is_refused() -> None:
    stray = msgspec.defstruct("Stray", [("size", int)], frozen=True, module="services.somewhere")
    with pytest.raises(Inexpressible, match=r"services\.somewhere\.Stray is outside"):
        area_of(stray)


# -- the command -----------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A proto/ folder with the toys in it, for the command to work on."""
    monkeypatch.setattr(factgen, "engine_roots", lambda: toys.ROOTS)
    monkeypatch.setattr(protogen, "write", lambda: None)
    monkeypatch.setattr(protogen, "differences", list)
    assert factgen.main([], tmp_path) == 0
    return tmp_path


def test_the_command_writes_what_it_then_finds_current(project: Path) -> None:
    assert factgen.main(["--check"], project) == 0
    names = {path.name for path in (project / area_folder("toys")).iterdir()}
    assert names == {"__init__.py", "facts.proto", "fields.lock.json"}


def test_the_check_names_what_is_out_of_date(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    proto = project / area_folder("toys") / "facts.proto"
    proto.write_text(proto.read_text().replace("= 2;", "= 3;"))
    assert factgen.main(["--check"], project) == 1
    assert "diceledger/facts/toys/v1/facts.proto is out of date" in capsys.readouterr().err


def test_a_number_that_was_changed_in_the_lock_shows(project: Path) -> None:
    lock = project / area_folder("toys") / "fields.lock.json"
    lock.write_text(lock.read_text().replace('"2 bool"', '"92 bool"'))
    assert factgen.main(["--check"], project) == 1


def test_the_command_refuses_a_breaking_change_and_writes_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_text() for path in outputs(project, toys.toy_shapes())}
    changed = thing_happened([("seat", Public[str])], "NothingHappened", "nothing_happened")
    monkeypatch.setattr(factgen, "engine_roots", lambda: (toys.EverythingHappened, changed))
    assert factgen.main([], project) == 1
    assert "toys.NothingHappened.seat: a new field needs a default" in capsys.readouterr().err
    assert before == {path: path.read_text() for path in before}
    assert factgen.main(["--renumber", "toys"], project) == 0
