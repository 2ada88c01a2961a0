"""Generates the protobuf messages of the engine's facts and states: a developer's task.

Run as ``python -m services.common.factgen`` after a fact or state of the engine was changed: it
writes ``proto/diceledger/facts/<area>/v1/facts.proto`` and the lock of its field numbers beside it,
then the Python code of all protos. ``--check`` writes nothing and exits 1 when something committed
is not what would be generated. A breaking change is refused with what to do instead; until an area
was released for the first time, ``--renumber AREA`` forgets its numbers.
"""

import argparse
import sys
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from services.common import protogen
from services.common.factlock import BreakingChange, Lock, LockedField, LockedMessage, merge
from services.common.factschema import (
    HIDDEN_FIELDS,
    PACKAGE,
    FieldShape,
    Inexpressible,
    MessageShape,
    engine_roots,
    shapes_of,
)

LOCK_NAME: Final = "fields.lock.json"
_ANY: Final = "google.protobuf.Any"
_COLUMNS: Final = 100

_HEAD: Final = """\
// Written by `python -m services.common.factgen` from the structs of the engine; not by hand.
// The numbers are locked in {lock}.
syntax = "proto3";

package {package};
{imports}
// A field is for everybody's eyes unless it says otherwise: `secret` is for the fact's seat, or for
// the seats in its audience where it has one; `sealed` is for nobody until the match is over.
"""


def area_folder(area: str) -> str:
    """Where the files of an area lie, below proto/."""
    return PACKAGE.format(area=area).replace(".", "/")


def generated(
    shapes: Iterable[MessageShape], locks: Mapping[str, Lock]
) -> dict[str, tuple[str, str]]:
    """For each area the texts of its .proto and of its lock, going on from the committed locks.

    Raises BreakingChange, and Inexpressible for a struct that has no protobuf form.
    """
    everything = tuple(shapes)
    texts: dict[str, tuple[str, str]] = {}
    faults: list[str] = []
    for area in sorted({shape.area for shape in everything} | set(locks)):
        try:
            lock = merge(locks.get(area), area, everything)
        except BreakingChange as change:
            faults += change.faults
            continue
        texts[area] = (_proto_text(area, everything, lock), lock.dumps())
    if faults:
        raise BreakingChange(faults)
    return texts


def _proto_text(area: str, everything: Iterable[MessageShape], lock: Lock) -> str:
    mine = [shape for shape in everything if shape.area == area]
    types = {f.type.split()[-1] for each in lock.messages.values() for f in each.fields.values()}
    foreign = {name.split(".")[0] for name in types if "." in name} - {area}
    imports = [f"{area_folder(other)}/facts.proto" for other in sorted(foreign)]
    if "any" in types:
        imports.append("google/protobuf/any.proto")
    lines = "".join(f'\nimport "{path}";' for path in imports) + "\n" * bool(imports)
    head = _HEAD.format(lock=LOCK_NAME, package=PACKAGE.format(area=area), imports=lines)
    facts = [shape for shape in mine if shape.tag]
    others = [shape for shape in mine if not shape.tag]
    return head + "".join(
        f"\n{_message_text(shape, lock.messages[shape.name])}" for shape in (*facts, *others)
    )


def _message_text(shape: MessageShape, locked: LockedMessage) -> str:
    lines = _comment(shape.cls.__dict__.get("__doc__") or "", "")
    lines.append(f"message {shape.name} {{")
    if locked.reserved:
        reserved = sorted(locked.reserved.items(), key=lambda item: item[1].number)
        lines.append(f"  reserved {', '.join(str(field.number) for _, field in reserved)};")
        names = ", ".join(f'"{name}"' for name, _ in reserved)
        lines.append(f"  reserved {names};")
    by_name = {field.name: field for field in shape.fields}
    for name, field in sorted(locked.fields.items(), key=lambda item: item[1].number):
        lines += _field_lines(shape, by_name.get(name), name, field)
    if lines[-1].endswith("{"):
        lines[-1] += "}"
    else:
        lines.append("}")
    return "\n".join(lines) + "\n"


def _field_lines(
    shape: MessageShape, field: FieldShape | None, name: str, locked: LockedField
) -> list[str]:
    label, _, bare = locked.type.rpartition(" ")
    if bare == "any":
        bare = _ANY
    elif "." in bare:
        area, _, message = bare.partition(".")
        bare = message if area == shape.area else f"{PACKAGE.format(area=area)}.{message}"
    notes = _comment(_note(field, name), "  ")
    return [*notes, f"  {label}{' ' if label else ''}{bare} {name} = {locked.number};"]


def _note(field: FieldShape | None, name: str) -> str:
    if field is None:
        assert name == HIDDEN_FIELDS, name
        return "Names of the fields that this viewer may not see."
    notes = [field.visibility] if field.visibility in ("secret", "sealed") else []
    if field.words:
        notes.append(f"one of {', '.join(sorted(field.words))}")
    if field.scalar == "any":
        notes.append("the state of the game, a message of its facts package")
    return "; ".join(notes).capitalize() + "." if notes else ""


def _comment(text: str, indent: str) -> list[str]:
    paragraphs = textwrap.dedent(text).strip().split("\n\n")
    prefix = f"{indent}// "
    lines: list[str] = []
    for paragraph in paragraphs:
        words = " ".join(paragraph.split())
        if not words:
            continue
        lines += [f"{indent}//"] if lines else []
        lines += textwrap.wrap(
            words, _COLUMNS, initial_indent=prefix, subsequent_indent=prefix, break_long_words=False
        )
    return lines


def committed_locks(root: Path) -> dict[str, Lock]:
    """The locks below a proto/ folder, by area. Raises ValueError that names a damaged one."""
    locks = {}
    for path in sorted(root.glob(area_folder("*") + f"/{LOCK_NAME}")):
        try:
            locks[path.parent.parent.name] = Lock.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
    return locks


def outputs(root: Path, shapes: Iterable[MessageShape], forget: str = "") -> dict[Path, str]:
    """Every file that factgen writes, with its text; `forget` names an area to be renumbered."""
    locks = {area: lock for area, lock in committed_locks(root).items() if area != forget}
    files: dict[Path, str] = {}
    facts = root / "diceledger" / "facts"
    files[facts / "__init__.py"] = '"""Generated code of the facts and states of the games."""\n'
    for area, (proto, lock) in generated(shapes, locks).items():
        folder = root / area_folder(area)
        about = f'"""Generated code of diceledger.facts.{area}."""\n'
        files[folder.parent / "__init__.py"] = about
        files[folder / "__init__.py"] = about.replace('."""', '.v1."""')
        files[folder / "facts.proto"] = proto
        files[folder / LOCK_NAME] = lock
    return files


def differences(root: Path, shapes: Iterable[MessageShape]) -> list[Path]:
    """Files below proto/ that are missing or are not what would be generated."""
    return [
        path
        for path, text in outputs(root, shapes).items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]


def main(arguments: list[str] | None = None, root: Path = protogen.PROTO_ROOT) -> int:
    """Command-line entry: generate everything, or compare with ``--check``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 on drift")
    parser.add_argument("--renumber", metavar="AREA", default="", help="forget an area's numbers")
    options = parser.parse_args(arguments)
    try:
        shapes = shapes_of(engine_roots())
        if options.check:
            stale = [path.relative_to(root) for path in differences(root, shapes)]
            for path in stale or protogen.differences():
                sys.stderr.write(f"proto/{path} is out of date; run factgen\n")
            return 1 if stale or protogen.differences() else 0
        files = outputs(root, shapes, options.renumber)
    except (BreakingChange, Inexpressible, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    protogen.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
