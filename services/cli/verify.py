"""`diceledger verify`: check an exported match without a server."""

from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from services.cli.main_guard import FAILED, CommandFailed
from services.cli.main_options import JsonOption, Locale
from services.cli.render_console import console, print_json
from services.cli.render_words import say
from services.common.verify import Check, CheckStatus, Report, verify_file, with_origin

_DIGEST_BYTES: Final = 32
_SIGNS: Final[dict[CheckStatus, str]] = {
    CheckStatus.PASSED: "[bold green]✓[/]",
    CheckStatus.FAILED: "[bold red]✗[/]",
    CheckStatus.NOT_APPLICABLE: "[dim]–[/]",
}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="verify", rich_help_panel="Recorded matches")(_verify)


def _verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file made by an export.")],
    commitment: Annotated[
        str,
        typer.Option(
            "--commitment",
            metavar="HEX",
            help="The commitment to the seed that you noted, from the reply to CreateMatch.",
        ),
    ] = "",
    last_hash: Annotated[
        str,
        typer.Option(
            "--hash",
            metavar="HEX",
            help="The hash of the last commit that you saw: every client computes it.",
        ),
    ] = "",
    json: JsonOption = False,
) -> None:
    """Check a recorded match: its bytes, its chain of hashes, its rules and its dice.

    Needs no server and no network. Exits 0 when everything is right, else 1, and says where the
    first fault of each kind is. Only --commitment and --hash tell the match that you saw from one
    that was made up as a whole.
    """
    noted = (_digest("--commitment", commitment), _digest("--hash", last_hash))
    report = checked_file(file)
    if any(noted):
        report = with_origin(report, commitment=noted[0], last_hash=noted[1])
    if json:
        print_json({"file": str(file), **report_json(report)})
    else:
        out = console()
        show_checks(out, report.checks)
        show_identity(out, report)
        verdict = "[bold green]verified[/]" if report.passed else "[bold red]NOT verified[/]"
        match = f", match {report.match_id}" if report.match_id else ""
        out.print(f"{verdict}{match}: {escape(str(file))}", soft_wrap=True)
    if not report.passed:
        raise typer.Exit(FAILED)


def _digest(option: str, text: str) -> bytes:
    """What was noted. Raises typer.BadParameter when it is no SHA-256 in hexadecimal."""
    try:
        digest = bytes.fromhex(text)
    except ValueError:
        digest = b"?"
    if len(digest) not in (0, _DIGEST_BYTES):
        raise typer.BadParameter("64 hexadecimal digits are wanted.", param_hint=option)
    return digest


def checked_file(file: Path) -> Report:
    """Check a file. Raises CommandFailed when it cannot be read."""
    if file.is_dir():
        raise CommandFailed(f"{file} is a directory; name a .dlmatch file.")
    try:
        return verify_file(file)
    except FileNotFoundError:
        raise CommandFailed(f"There is no file {file}.") from None
    except OSError as error:
        raise CommandFailed(f"{file} cannot be read: {error.strerror or error}.") from None


def show_checks(out: Console, checks: tuple[Check, ...], locale: Locale = "en") -> None:
    """Print a line for each check: what it means, and where its first fault is."""
    grid = Table(box=None, show_header=False, padding=(0, 1), pad_edge=True)
    for check in checks:
        if check.status is CheckStatus.NOT_APPLICABLE:
            # What could not be checked here is no news, unless it says why not yet.
            grid.add_row(_SIGNS[check.status], _title(check), "", _dim(check.finding))
            continue
        count = f"[dim]{check.count:,}[/]" if check.count else ""
        meaning = say(locale, f"check.{check.check}")
        grid.add_row(_SIGNS[check.status], _title(check), count, escape(meaning))
        if check.finding:
            where = f"sequence {check.sequence}: " if check.sequence else ""
            grid.add_row("", "", "", f"[red]{escape(where + check.finding)}[/]")
    out.print(grid)


def show_identity(out: Console, report: Report, locale: Locale = "en") -> None:
    """Print what to note: what makes this match this match, and who kept its dice honest."""
    for key, value in (("id.commitment", report.commitment), ("id.hash", report.last_hash)):
        out.print(f"   [dim]{say(locale, key)}[/] {value.hex()}", soft_wrap=True)
    key = "id.committed" if report.committed else "id.uncommitted"
    seats = ", ".join(str(seat) for seat in report.committed)
    out.print(f"   [dim]{say(locale, key, seats, report.seats)}[/]")


def _title(check: Check) -> str:
    return check.check.replace("_", " ")


def _dim(text: str) -> str:
    return f"[dim]{escape(text)}[/]"


def report_json(report: Report) -> dict[str, object]:
    """A report for programs."""
    return {
        "passed": report.passed,
        "match_id": report.match_id,
        "last_sequence": report.last_sequence,
        "state_hash": report.state_hash.hex(),
        "commitment": report.commitment.hex(),
        "last_hash": report.last_hash.hex(),
        "seats": report.seats,
        "committed_seats": list(report.committed),
        "checks": [
            {
                "check": check.check,
                "status": str(check.status),
                "count": check.count,
                "sequence": check.sequence,
                "finding": check.finding,
            }
            for check in report.checks
        ],
    }
