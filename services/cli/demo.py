"""`diceledger demo`: a whole match between bots, from the first roll to the proof of fairness."""

import asyncio
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table

from engine import MatchState, find_game, state_hash
from services.cli.demo_cast import Cast, cast_of
from services.cli.demo_proof import look_back, opened, prove, show_promise
from services.cli.main_guard import CommandFailed
from services.cli.main_options import JsonOption, Locale, LocaleOption, run_async
from services.cli.render import Narrator, look_of
from services.cli.render_console import console, print_json
from services.cli.render_words import say
from services.client import Client, MatchUpdate, connect
from services.client.matches import Record, open_match, play_on

_DEFAULT_GAME = "king_of_tokyo"


@dataclass(slots=True)
class Summary:
    """What the demo did, for its closing lines and for `--json`."""

    game: str
    match_id: str = ""
    players: Sequence[Mapping[str, object]] = ()
    winners: list[str] = field(default_factory=list)
    reason: str = ""
    turns: int = 0
    commits: int = 0
    facts: int = 0
    state_hash: str = ""
    replayed: list[dict[str, object]] = field(default_factory=list)
    checks: list[dict[str, object]] = field(default_factory=list)
    verified: bool = False
    # Path of the exported file; empty when it was not to be kept.
    file: str = ""
    file_bytes: int = 0
    file_verified: bool = False
    # What the players saw: for `diceledger verify FILE --commitment … --hash …`.
    commitment: str = ""
    last_hash: str = ""
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
    pace: Annotated[
        float, typer.Option("--pace", metavar="SECONDS", help="Wait before each turn.", min=0.0)
    ] = 0.0,
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
        stage = Stage(out, locale, Path(scratch) / "data", target, 0.0 if json else pace)
        summary = run_async(run_demo(cast, stage))
    if export is None:
        # It is gone by now.
        summary.file = ""
    if not json:
        _close(out, locale, summary, kept=export is not None)
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


@dataclass(frozen=True, slots=True)
class Stage:
    """Where a demo is given: printed to, served from, exported to, at which pace (s per turn)."""

    out: Console
    locale: Locale
    data_dir: Path
    target: Path
    pace_s: float


async def run_demo(cast: Cast, stage: Stage) -> Summary:
    """Play, look back, prove; print as it goes."""
    # Loaded here: it brings all the services along, which no other command needs.
    from services.cli.embedded import embedded

    began = time.monotonic()
    players = [
        {"seat": seat, "name": role.name, "bot": role.kind}
        for seat, role in enumerate(cast.roles, 1)
    ]
    summary = Summary(game=cast.game, players=players)
    async with (
        embedded(stage.data_dir) as server,
        connect(server.address, locale=stage.locale) as anybody,
    ):
        _open_curtain(stage, cast, server.address)
        host = anybody.for_token(server.token("host", "player", name="Host"))
        spectator = anybody.for_token(server.token("spectator", "player", name="Spectator"))
        bots = cast.players(anybody, server.token)
        summary.match_id = await open_match(host, bots, cast.game)
        narrator = Narrator(stage.out, stage.locale, lobby=False)
        hashes: dict[int, bytes] = {}

        async def spectate(update: MatchUpdate) -> None:
            turn = _turn(narrator.state)
            narrator.tell(update.facts)
            hashes[update.sequence] = state_hash(narrator.state)
            if stage.pace_s and _turn(narrator.state) != turn:
                await asyncio.sleep(stage.pace_s)

        records = await play_on(summary.match_id, bots, spectator=spectator, spectate=spectate)
        await _epilogue(stage, spectator, summary, hashes, records[0])
    summary.seconds = round(time.monotonic() - began, 2)
    return summary


async def _epilogue(
    stage: Stage, spectator: Client, summary: Summary, hashes: dict[int, bytes], record: Record
) -> None:
    """Look back and prove, once the match is over."""
    out, locale, match_id = stage.out, stage.locale, summary.match_id
    # The end opens what was hidden from the spectator: the last state is that of the open match.
    state = await opened(spectator, match_id)
    hashes[max(hashes)] = state_hash(state)
    _count(summary, state, hashes)
    summary.replayed = await look_back(out, locale, spectator, match_id, hashes)
    show_promise(out, locale, state)
    assert record.state is not None, "the first player saw the match"
    seen = (record.state.commitment, record.commit_hashes[max(record.commit_hashes)])
    await prove(out, locale, spectator, match_id, stage.target, summary, seen)


def _turn(state: MatchState) -> int:
    return 0 if state.table is None else state.table.turn


def _open_curtain(stage: Stage, cast: Cast, address: str) -> None:
    game = find_game(cast.game)
    names = " · ".join(f"[bold]{escape(each.name)}[/] [dim]({each.kind})[/]" for each in cast.roles)
    legend = look_of(cast.game, stage.locale).legend
    stage.out.print(
        Panel.fit(
            f"[bold]{escape(game.name)}[/] {escape(game.name_zh)}\n"
            f"{names}\n"
            + (f"{escape(legend)}\n" if legend else "")
            + f"[dim]server {address}, log and read models in {escape(str(stage.data_dir))}[/]",
            title="diceledger demo",
            border_style="cyan",
        )
    )


def _count(summary: Summary, state: MatchState, hashes: dict[int, bytes]) -> None:
    last = max(hashes)
    summary.winners = [state.name_of(seat) for seat in state.winners]
    summary.reason = state.end_reason
    summary.turns = _turn(state)
    summary.commits = last
    summary.facts = state.fact_count
    summary.state_hash = hashes[last].hex()


def _close(out: Console, locale: Locale, summary: Summary, *, kept: bool) -> None:
    out.print()
    out.print(Rule(style="grey42"))
    totals = (summary.turns, summary.commits, summary.facts, f"{summary.seconds:.1f}")
    out.print(f"  {say(locale, 'totals', *totals)}")
    if kept:
        name = escape(summary.file)
        rows = [(f"diceledger replay {name}", ""), (f"diceledger verify {name}", "")]
    else:
        rows = [
            ("diceledger demo --export .", say(locale, "next.keep")),
            ("diceledger play", say(locale, "next.play")),
        ]
    grid = Table(box=None, show_header=False, padding=(0, 1))
    for number, (command, meaning) in enumerate(rows):
        lead = "" if number else say(locale, "next")
        grid.add_row(f" [bold]{lead}[/]", command, f"[dim]{meaning}[/]")
    out.print(grid)
