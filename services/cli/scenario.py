"""`diceledger scenario`: play scenario files and say which of them hold."""

import json as jsons
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from services.cli.main_guard import CommandFailed
from services.cli.main_options import JsonOption
from services.cli.render_console import console
from services.cli.scenario_play import Outcome, run_file

_PathsArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH…", help="Scenario files (.yaml), or directories that are searched for them."
    ),
]
_VerboseOption = Annotated[
    bool, typer.Option("--verbose", "-v", help="Tell what happened in each scenario.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="scenario", rich_help_panel="Rules")(_scenario)


def _scenario(
    paths: _PathsArgument, json: JsonOption = False, verbose: _VerboseOption = False
) -> None:
    """Check rulings: play scenario files with scripted dice and compare what comes of it.

    A file holds a position, a script of rolls, answers and cards used at any time, and what must
    come of it. How to write one: tests/scenarios/README.md. Exit code 0 when every scenario holds,
    1 when one does not.
    """
    outcomes: list[Outcome] = []
    for file in scenario_files(paths):
        for outcome in run_file(file):
            outcomes.append(outcome)
            if not json:
                _show(outcome, verbose=verbose)
    failed = sum(not outcome.ok for outcome in outcomes)
    if json:
        print(jsons.dumps(_as_json(outcomes, failed), ensure_ascii=False))
    else:
        colour = "red" if failed else "green"
        console().print(f"[{colour}]{len(outcomes) - failed} passed, {failed} failed[/]")
    if failed:
        raise typer.Exit(1)


def scenario_files(paths: list[Path]) -> list[Path]:
    """The files meant, directories searched, in sorted order. Raises CommandFailed."""
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            found = sorted([*path.rglob("*.yaml"), *path.rglob("*.yml")])
            if not found:
                raise CommandFailed(f"There are no scenario files (.yaml) in {path}.")
            files += found
        elif path.is_file():
            files.append(path)
        else:
            raise CommandFailed(f"There is no file or directory {path}.")
    return files


def _show(outcome: Outcome, *, verbose: bool) -> None:
    out = console()
    title = escape(outcome.title or outcome.name)
    number = f"[bold]{escape(outcome.number)}[/] " if outcome.number else ""
    place = escape(f"{outcome.path}:{outcome.line}")
    verdict = "[green]ok  [/]" if outcome.ok else "[bold red]FAIL[/]"
    out.print(f"{verdict} {number}{title}  [dim]{place}[/]", soft_wrap=True)
    if not outcome.ok:
        out.print(f"     {escape(outcome.message)}", soft_wrap=True)
    if verbose:
        for line in outcome.story:
            out.print(f"       [dim]{escape(line)}[/]", soft_wrap=True)


def _as_json(outcomes: list[Outcome], failed: int) -> dict[str, object]:
    return {
        "passed": len(outcomes) - failed,
        "failed": failed,
        "scenarios": [
            {
                "file": str(outcome.path),
                "line": outcome.line,
                "name": outcome.name,
                "number": outcome.number,
                "title": outcome.title,
                "passed": outcome.ok,
                "message": outcome.message,
                "facts": outcome.facts,
                "seconds": round(outcome.seconds, 6),
            }
            for outcome in outcomes
        ],
    }
