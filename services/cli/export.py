"""`diceledger export`: fetch a finished match from a server as one file."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from services.cli.main_options import (
    CaFileOption,
    JsonOption,
    ReplayServerOption,
    ServerOption,
    TokenFileOption,
    remote_client,
    run_async,
)
from services.cli.render_console import console, print_json
from services.cli.verify import checked_file, show_identity


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="export", rich_help_panel="Recorded matches")(_export)


def _export(
    server: ServerOption,
    match: Annotated[str, typer.Option("--match", metavar="ID", help="The match to fetch.")],
    token: TokenFileOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Where to; default: ./<match>.dlmatch"),
    ] = None,
    ca_file: CaFileOption = None,
    replay_server: ReplayServerOption = "",
    json: JsonOption = False,
) -> None:
    """Fetch a finished match as one file; `diceledger verify FILE` checks it without a server."""
    path = out or Path(f"{match}.dlmatch")
    size = run_async(_fetch(server, token, ca_file, replay_server, match, path))
    report = checked_file(path)
    if json:
        identity = {"commitment": report.commitment.hex(), "last_hash": report.last_hash.hex()}
        print_json({"match_id": match, "file": str(path), "bytes": size, **identity})
        return
    screen = console()
    screen.print(f"[green]✓[/] {escape(str(path))} ({size:,} bytes)")
    show_identity(screen, report)


async def _fetch(
    server: str,
    token: Path | None,
    ca_file: Path | None,
    replay_server: str,
    match: str,
    path: Path,
) -> int:
    async with remote_client(server, token, ca_file, replay_server=replay_server) as client:
        return await client.replays.export_to(match, path)
