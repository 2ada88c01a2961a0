"""Does a test fail when a line of a card's effect is missing? Not part of the normal run.

    python -m tests.laws.mutation [--cards 20] [--seed 1] [--card ID …] [--all]

In a temporary copy of the tree one statement of each chosen card's effect is taken out; then the
card's scenarios and the tests that name it are run. Exit code 1 when a mutation survives. --all
takes out every statement of the chosen cards, one after the other.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from engine import find_game
from services.cli.scenario_covers import covers

ROOT: Final = Path(__file__).parents[2]
GAME_ID: Final = "king_of_tokyo"
_DECKS: Final = Path("engine/games/kings/tokyo/cards")
_SCENARIOS: Final = Path("tests/scenarios") / GAME_ID
_UNIT_TESTS: Final = Path("tests/engine/tokyo")
_COPIED: Final = ("engine", "services", "proto", "tests", "pyproject.toml")
_ADDS: Final = "adds="
_PATIENCE_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class Mutation:
    """A statement to take out: of a card, in a deck module, lines counted from 1."""

    card: str
    module: Path
    first: int
    last: int
    text: str

    def applied(self, source: str) -> str:
        """The module without the statement."""
        lines = source.splitlines(keepends=True)
        line = lines[self.first - 1]
        indent = line[: len(line) - len(line.lstrip())]
        instead = "" if self.text.startswith(_ADDS) else f"{indent}pass\n"
        mutated = "".join([*lines[: self.first - 1], instead, *lines[self.last :]])
        ast.parse(mutated)
        return mutated


# -- what can be taken out -------------------------------------------------------------------------


def mutations(root: Path = ROOT) -> dict[str, list[Mutation]]:
    """Every statement of every card's effect."""
    found: dict[str, list[Mutation]] = {card: [] for card in find_game(GAME_ID).cards}
    for path in sorted((root / _DECKS).glob("*.py")):
        for each in _of_module(path, path.relative_to(root)):
            found[each.card].append(each)
    return found


def _of_module(path: Path, name: Path) -> Iterator[Mutation]:
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    card = ""
    for node in ast.parse(source).body:
        card = _card_laid_by(node) or card
        for statement in _effects(node):
            last = statement.end_lineno or statement.lineno
            text = " ".join(line.strip() for line in lines[statement.lineno - 1 : last])
            yield Mutation(card, name, statement.lineno, last, text)


def _card_laid_by(node: ast.stmt) -> str:
    """The card's id when the statement is `name = keep(BASE, "id", …)`."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
        words = [each for each in node.value.args if isinstance(each, ast.Constant)]
        if words and isinstance(words[0].value, str):
            return words[0].value
    return ""


def _effects(node: ast.stmt) -> Iterator[ast.stmt]:
    """Statements of the card's functions, and numbers that it adds. A function that does nothing
    but return has its effect by being hooked: there it is the hook.
    """
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        if _only_returns(node):
            hook = node.decorator_list[0]
            yield ast.copy_location(ast.Expr(hook), hook)
            return
        for each in ast.walk(node):
            if isinstance(each, ast.stmt) and each is not node and not _is_docstring(each):
                yield each
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield node
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
        for keyword in node.value.keywords:
            if f"{keyword.arg}=" == _ADDS:
                yield ast.copy_location(ast.Expr(keyword.value), keyword)


def _only_returns(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    statements = [each for each in function.body if not _is_docstring(each)]
    return all(isinstance(each, ast.Return) and each.value is None for each in statements)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


# -- taking it out ---------------------------------------------------------------------------------


class Copy:
    """A copy of the tree in which things may be broken."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in _COPIED:
            source = ROOT / name
            if source.is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "golden")
                shutil.copytree(source, root / name, ignore=ignored)
            else:
                shutil.copy(source, root / name)

    def killer(self, mutation: Mutation) -> str:
        """What fails without the statement: "scenarios", "unit tests", or "" for nothing."""
        path = self.root / mutation.module
        source = path.read_text(encoding="utf-8")
        path.write_text(mutation.applied(source), encoding="utf-8")
        try:
            return self.failing(mutation.card)
        finally:
            path.write_text(source, encoding="utf-8")

    def failing(self, card: str) -> str:
        """Which tests of a card fail."""
        if not self._passes("-m", "services.cli.main", "scenario", *self._scenarios(card)):
            return "scenarios"
        tests = self._unit_tests(card)
        if tests and not self._passes("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests):
            return "unit tests"
        return ""

    def is_sound(self) -> bool:
        """Do all scenarios and all tests of cards pass as long as nothing is broken?"""
        return self._passes("-m", "services.cli.main", "scenario", str(_SCENARIOS)) and (
            self._passes("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", str(_UNIT_TESTS))
        )

    def _scenarios(self, card: str) -> list[str]:
        names = {name.partition("#")[0] for name in covers(card, GAME_ID)}
        return [str(_SCENARIOS / f"{name}.yaml") for name in sorted(names)]

    def _unit_tests(self, card: str) -> list[str]:
        files = sorted((self.root / _UNIT_TESTS).glob("test_*.py"))
        return [
            str(path.relative_to(self.root))
            for path in files
            if f'"{card}"' in path.read_text(encoding="utf-8")
        ]

    def _passes(self, *arguments: str) -> bool:
        # Only the copy may be found, whatever is installed.
        paths = os.pathsep.join([str(self.root), str(self.root / "proto")])
        environ = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.root,
            env=environ,
            capture_output=True,
            timeout=_PATIENCE_S,
            check=False,
        )
        return done.returncode == 0


def chosen(cards: Sequence[str], count: int, seed: str, *, every: bool) -> list[Mutation]:
    """One statement of each of so many cards, or every statement of all given ones."""
    found = mutations()
    dice = Random(seed)
    if not cards:
        cards = list(found) if every else dice.sample(sorted(found), count)
    if every:
        return [each for card in cards for each in found[card]]
    # A card that is a number in a table of the deck module has no statement of its own.
    return [dice.choice(found[card]) for card in cards if found[card]]


def main(arguments: list[str]) -> int:
    """The command; its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.laws.mutation", description=__doc__)
    parser.add_argument("--cards", type=int, default=20, help="how many cards to choose")
    parser.add_argument("--seed", default="1", help="of the choice")
    parser.add_argument("--card", action="append", default=[], help="this card")
    parser.add_argument("--all", action="store_true", help="every statement, one after the other")
    options = parser.parse_args(arguments)
    todo = chosen(options.card, options.cards, options.seed, every=options.all)
    survivors = 0
    with tempfile.TemporaryDirectory(prefix="mutation-") as directory:
        copy = Copy(Path(directory))
        assert copy.is_sound(), "tests fail without any mutation"
        for each in todo:
            killer = copy.killer(each)
            survivors += not killer
            verdict = f"found by its {killer}" if killer else "SURVIVED"
            where = f"{each.module.name}:{each.first}"
            print(f"{each.card}: {verdict}: without {where}: {each.text}", flush=True)
    print(f"{len(todo)} mutations of {len({each.card for each in todo})} cards, ", end="")
    print(f"{survivors} survived")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
