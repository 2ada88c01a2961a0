"""`diceledger replay`: show a recorded match step by step, as one of its viewers saw it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from engine import Fact, Seat, describe_fact, redact, state_hash
from services.cli.main_guard import CommandFailed
from services.cli.main_options import JsonOption, Locale, LocaleOption
from services.cli.render import Narrator
from services.cli.render_console import console, print_json
from services.common.bundle import Bundle, BundleDamaged, load_bundle
from services.common.commits import ParsedCommit


@dataclass(frozen=True, slots=True)
class _Viewer:
    """Whose eyes: everything (an ended match is open), a spectator's, or a seat's."""

    everything: bool
    seat: Seat | None

    def seen(self, commit: ParsedCommit) -> tuple[Fact, ...]:
        """The commit's facts as this viewer saw them while the match ran."""
        facts = commit.facts()
        return facts if self.everything else tuple(redact(fact, self.seat) for fact in facts)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="replay", rich_help_panel="Recorded matches")(_replay)


def _replay(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file made by an export.")],
    at: Annotated[
        int | None,
        typer.Option("--at", metavar="SEQUENCE", help="Show only this commit and the table then."),
    ] = None,
    viewer: Annotated[
        str,
        typer.Option(
            "--viewer",
            metavar="SEAT|spectator",
            help="As this seat, or a spectator, saw it at the time; default: everything.",
        ),
    ] = "",
    locale: LocaleOption = "en",
    json: JsonOption = False,
) -> None:
    """Show a recorded match, step by step or at one point."""
    bundle = load_recorded(file)
    eyes = _viewer(viewer, bundle)
    commits = [each.commit for each in bundle.commits]
    if at is not None and not 1 <= at <= len(commits):
        raise CommandFailed(f"This match has the sequences 1 to {len(commits)}, not {at}.")
    if json:
        _print_as_json(commits, eyes, at, locale)
    elif at is not None:
        show_at(console(), commits[:at], eyes.seen, locale)
    else:
        _show_all(console(), commits, eyes, locale)


def load_recorded(file: Path) -> Bundle:
    """Read a recorded match. Raises CommandFailed with the reason."""
    if file.is_dir():
        raise CommandFailed(f"{file} is a directory; name a .dlmatch file.")
    try:
        return load_bundle(file)
    except FileNotFoundError:
        raise CommandFailed(f"There is no file {file}.") from None
    except OSError as error:
        raise CommandFailed(f"{file} cannot be read: {error.strerror or error}.") from None
    except BundleDamaged as damage:
        raise CommandFailed(f"{file} is damaged: {damage}.") from None


def _viewer(text: str, bundle: Bundle) -> _Viewer:
    if not text:
        return _Viewer(everything=True, seat=None)
    if text == "spectator":
        return _Viewer(everything=False, seat=None)
    seats = next((getattr(f, "seats", 0) for f in bundle.commits[0].commit.facts()), 0)
    if not text.isdecimal() or not 1 <= int(text) <= seats:
        raise typer.BadParameter(f"a seat from 1 to {seats}, or spectator", param_hint="'--viewer'")
    return _Viewer(everything=False, seat=Seat(int(text)))


def show_at(
    out: Console,
    commits: Sequence[ParsedCommit],
    seen: Callable[[ParsedCommit], tuple[Fact, ...]],
    locale: Locale,
) -> None:
    """Print the last of the commits and the table after it."""
    narrator = Narrator(out, locale)
    for commit in commits[:-1]:
        narrator.skip(seen(commit))
    last = commits[-1]
    out.print(_heading(last, locale))
    narrator.tell(seen(last))
    out.print()
    narrator.show_table()
    out.print(Text(f"  state hash {state_hash(narrator.state).hex()}", style="dim"))


def _show_all(out: Console, commits: Sequence[ParsedCommit], eyes: _Viewer, locale: Locale) -> None:
    narrator = Narrator(out, locale)
    for commit in commits:
        narrator.tell(eyes.seen(commit))
    out.print(Text(f"  {len(commits)} commits; --at SEQUENCE shows one of them.", style="dim"))


def _heading(commit: ParsedCommit, locale: Locale) -> Rule:
    label = "第 {0} 条提交" if locale == "zh" else "Commit {0}"
    return Rule(label.format(commit.sequence), align="left", style="grey42")


def _print_as_json(
    commits: Sequence[ParsedCommit], eyes: _Viewer, at: int | None, locale: Locale
) -> None:
    narrator = Narrator(Console(quiet=True), locale)
    steps = []
    for commit in commits[:at]:
        facts = eyes.seen(commit)
        narrator.skip(facts)
        lines = [describe_fact(narrator.state, fact, locale) for fact in facts]
        steps.append(
            {
                "sequence": commit.sequence,
                "hash": commit.hash.hex(),
                "state_hash": state_hash(narrator.state).hex(),
                "facts": len(facts),
                "lines": [line for line in lines if line],
            }
        )
    shown = steps if at is None else steps[-1:]
    print_json({"match_id": commits[0].match_id, "steps": shown})
