"""`diceledger demo`: a whole match between bots, from the first roll to the proof of fairness."""

import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text

from engine import MatchState, find_game, state_hash
from services.cli.demo_cast import Cast, cast_of
from services.cli.demo_proof import look_back, prove
from services.cli.main_guard import CommandFailed
from services.cli.main_options import JsonOption, Locale, LocaleOption, run_async
from services.cli.render import Narrator
from services.cli.render_console import console, print_json
from services.client import MatchUpdate, connect
from services.client.matches import open_match, play_on

_DEFAULT_GAME = "king_of_tokyo"


@dataclass(slots=True)
class Summary:
    """What the demo did, for its closing lines and for `--json`."""

    game: str
    match_id: str = ""
    players: list[dict[str, object]] = field(default_factory=list)
    winners: list[str] = field(default_factory=list)
    reason: str = ""
    turns: int = 0
    commits: int = 0
    facts: int = 0
    state_hash: str = ""
    replayed: list[dict[str, object]] = field(default_factory=list)
    checks: list[dict[str, object]] = field(default_factory=list)
    verified: bool = False
    file: str = ""
    file_bytes: int = 0
    file_verified: bool = False
    seconds: float = 0.0

    def as_json(self) -> dict[str, object]:
        """In the order of the story."""
        return {name: getattr(self, name) for name in self.__slots__}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="demo", rich_help_panel="Start here")(_demo)


def _demo(
    game: Annotated[
        str, typer.Option("--game", metavar="GAME", help="`diceledger games` lists them.")
    ] = _DEFAULT_GAME,
    players: Annotated[int, typer.Option("--players", help="How many bots play.")] = 3,
    export: Annotated[
        Path | None,
        typer.Option("--export", metavar="DIR", help="Keep the recorded match in this directory."),
    ] = None,
    seed: Annotated[
        str,
        typer.Option(
            "--seed",
            help="Of the bots' choices. The dice come from the server's secret, which nobody "
            "chooses.",
        ),
    ] = "",
    locale: LocaleOption = "en",
    json: JsonOption = False,
) -> None:
    """Start a server, let bots play a whole match over the network, replay it and prove it fair.

    Everything is real, only small: the server of `diceledger up` on free ports and in a temporary
    directory, bots that connect over gRPC like any client, a replay from the log alone, an export,
    and the check of the exported file. Nothing is left behind but the file.
    """
    cast = cast_of(game, players, seed or "demo")
    out = Console(quiet=True) if json else console()
    # Without --export the file lives as long as the command.
    with tempfile.TemporaryDirectory(prefix="diceledger-demo-") as scratch:
        target = _export_directory(export, Path(scratch))
        summary = run_async(run_demo(out, cast, locale, Path(scratch) / "data", target))
    if not json:
        _close(out, summary, kept=export is not None)
    if not (summary.verified and summary.file_verified):
        if json:
            print_json(summary.as_json())
        raise CommandFailed("The match was played, but it could not be verified; see above.")
    if json:
        print_json(summary.as_json())


def _export_directory(export: Path | None, scratch: Path) -> Path:
    if export is None:
        return scratch
    try:
        export.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandFailed(f"{export} cannot be used: {error.strerror}.") from error
    return export


async def run_demo(
    out: Console, cast: Cast, locale: Locale, data_dir: Path, target: Path
) -> Summary:
    """Play, look back, prove; print as it goes."""
    # Loaded here: it brings all the services along, which no other command needs.
    from services.cli.embedded import embedded

    began = time.monotonic()
    summary = Summary(game=cast.game)
    async with embedded(data_dir) as server, connect(server.address, locale=locale) as anybody:
        players = cast.players(anybody, server.token)
        host = anybody.for_token(server.token("host", "host", "player", name="Host"))
        _open_curtain(out, cast, server.address, data_dir)
        match_id = await open_match(host, players, cast.game)
        summary.match_id = match_id
        narrator = Narrator(out, locale, lobby=False)
        hashes: dict[int, bytes] = {}

        def spectate(update: MatchUpdate) -> None:
            narrator.tell(update.facts)
            hashes[update.sequence] = state_hash(narrator.state)

        spectator = anybody.for_token(server.token("spectator", name="Spectator"))
        await play_on(match_id, players, spectator=spectator, spectate=spectate)
        _count(summary, cast, narrator.state, hashes)
        await look_back(out, spectator, match_id, hashes, summary.replayed)
        await prove(out, spectator, match_id, target, summary)
    summary.seconds = round(time.monotonic() - began, 2)
    return summary


def _open_curtain(out: Console, cast: Cast, address: str, data_dir: Path) -> None:
    game = find_game(cast.game)
    names = " · ".join(f"[bold]{escape(each.name)}[/] [dim]({each.kind})[/]" for each in cast.roles)
    out.print(
        Panel.fit(
            f"[bold]{escape(game.name)}[/] {escape(game.name_zh)}\n"
            f"{names}\n"
            f"[dim]server {address}, log and read models in {escape(str(data_dir))}[/]",
            title="diceledger demo",
            border_style="cyan",
        )
    )


def _count(summary: Summary, cast: Cast, state: MatchState, hashes: dict[int, bytes]) -> None:
    last = max(hashes)
    summary.players = [
        {"seat": seat, "name": role.name, "bot": role.kind}
        for seat, role in enumerate(cast.roles, 1)
    ]
    summary.winners = [state.name_of(seat) for seat in state.winners]
    summary.reason = state.end_reason
    summary.turns = 0 if state.table is None else state.table.turn
    summary.commits = last
    summary.facts = state.fact_count
    summary.state_hash = hashes[last].hex()


def _close(out: Console, summary: Summary, *, kept: bool) -> None:
    out.print()
    out.print(Rule(style="grey42"))
    out.print(
        f"  {summary.turns} turns, {summary.commits} commands in the log, {summary.facts} facts, "
        f"{summary.seconds:.1f} s."
    )
    if kept:
        name = escape(summary.file)
        out.print(Text.assemble("  ", ("Next: ", "bold")), end="")
        out.print(f"diceledger replay {name}")
        out.print(f"        diceledger verify {name}")
    else:
        out.print("  Next: diceledger demo --export .   keeps the file of the match")
        out.print("        diceledger play              lets you play against the bots")
