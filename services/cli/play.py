"""`diceledger play`: play at the terminal, against bots or with others on a server."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from diceledger.match.v1 import match_pb2
from services.cli.datadir import data_path, default_data_dir
from services.cli.demo_cast import cast_of, known_game
from services.cli.main_guard import CommandFailed
from services.cli.main_options import (
    CaFileOption,
    Locale,
    LocaleOption,
    TokenFileOption,
    remote_client,
    run_async,
)
from services.cli.play_table import Table
from services.cli.render_console import console
from services.cli.render_words import say
from services.client import Client, Player, RetryPolicy, connect, take_part, token_file
from services.client.bots import make_bot
from services.client.matches import reveal_all

_YOU = "you"
_BOT_PREFIX = "bot-"
_NAME_MAX = 40


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What was asked for on the command line."""

    game: str
    players: int
    name: str
    match: str
    seed: str
    locale: Locale
    # The command that comes back to a match of this kind.
    again: str


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="play", rich_help_panel="Start here")(_play)


def _checked_name(name: str) -> str:
    # Blanks around it are nobody's name, and no token may hold them.
    stripped = name.strip()
    fits = not name or (stripped and len(stripped) <= _NAME_MAX and stripped.isprintable())
    if not fits:
        raise typer.BadParameter(f"a name is 1 to {_NAME_MAX} printable characters.")
    return stripped


def _play(
    game: Annotated[
        str, typer.Option("--game", metavar="GAME", help="`diceledger games` lists them.")
    ] = "king_of_tokyo",
    players: Annotated[int, typer.Option("--players", help="Seats at the table, yours too.")] = 3,
    name: Annotated[
        str,
        typer.Option("--name", callback=_checked_name, help="Your name at the table."),
    ] = "",
    match: Annotated[
        str, typer.Option("--match", metavar="ID", help="Go on with this match, or join it.")
    ] = "",
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            parser=data_path,
            metavar="DIR",
            help="Where your matches are kept.  [default: ~/.local/share/diceledger/play]",
        ),
    ] = None,
    server: Annotated[
        str,
        typer.Option(
            "--server",
            envvar="DICELEDGER_SERVER",
            metavar="HOST:PORT[,…]",
            help="Play on this server instead of one of your own.",
        ),
    ] = "",
    token: TokenFileOption = None,
    bot_token: Annotated[
        list[Path] | None,
        typer.Option(
            "--bot-token-file",
            metavar="FILE",
            help="With --server: the token of a bot to seat. May be repeated; other seats stay "
            "free for others.",
        ),
    ] = None,
    ca_file: CaFileOption = None,
    seed: Annotated[str, typer.Option("--seed", help="Of the bots' choices.")] = "",
    locale: LocaleOption = "en",
) -> None:
    """Play at the terminal.

    By default a server of your own is started and bots take the other seats; quit whenever you
    like, the match is kept. With --server you play on somebody's server: --match joins a match or
    goes on with one, without it a new match is opened.
    """
    place = f" --data {data}" if data else ""
    place = f" --server {server} --token-file {token}" if server else place
    again = f"diceledger play{place}"
    wanted = _Wanted(game, players, name, match, seed or "play", locale, again)
    if server:
        if token is None:
            raise CommandFailed(say(locale, "need_token"))
        client = remote_client(server, token, ca_file, locale=locale, policy=RetryPolicy())
        run_async(_play_remote(console(), client, wanted, bot_token or []))
    else:
        run_async(_play_at_home(console(), wanted, data or default_data_dir() / "play"))


# -- a server of one's own -------------------------------------------------------------------------


async def _play_at_home(out: Console, wanted: _Wanted, data: Path) -> None:
    # Loaded here: it brings all the services along, which no other command needs.
    from services.cli.embedded import embedded

    cast = cast_of(wanted.game, wanted.players, wanted.seed)
    async with embedded(data) as server, connect(server.address, locale=wanted.locale) as anybody:

        def client_of(subject: str, name: str = "") -> Client:
            return anybody.for_token(server.token(subject, "player", name=name))

        name = wanted.name or say(wanted.locale, "you")
        you = client_of(_YOU, name)
        match_id = wanted.match
        if not match_id:
            await _mention_unfinished(out, you, wanted)
            seats = [role.subject for role in cast.roles[1:]]
            match_id = (await you.create(wanted.game, wanted.players)).match_id
            await you.join(match_id, name=name, seat=1)
            others = [client_of(subject) for subject in seats]
            for other, role in zip(others, cast.roles[1:], strict=True):
                await other.join(match_id, name=role.name)
            for other in others:
                await other.reveal(match_id)
            await you.start(match_id)
        summary = (await you.get(match_id)).summary
        seat = _own_seat(summary, wanted.locale)
        bots = {
            info.seat: Player(
                client_of(info.player), make_bot("greedy", summary.game, f"{wanted.seed}/{seat}")
            )
            for info in summary.seats
            if info.player.startswith(_BOT_PREFIX)
        }
        table = Table(out, wanted.locale, match_id, wanted.again)
        await _sit_down(table, you, seat, bots)


async def _mention_unfinished(out: Console, you: Client, wanted: _Wanted) -> None:
    running = match_pb2.MATCH_STATUS_RUNNING
    unfinished = [each.match_id async for each in you.list_matches(status=running, mine=True)]
    if unfinished:
        words = say(wanted.locale, "unfinished", wanted.again, unfinished[0])
        out.print(f"[dim]{escape(words)}[/]")


def _own_seat(summary: match_pb2.MatchSummary, locale: Locale) -> int:
    for info in summary.seats:
        if info.player == _YOU:
            return info.seat
    raise CommandFailed(say(locale, "no_seat", summary.match_id))


# -- somebody's server -----------------------------------------------------------------------------


async def _play_remote(
    out: Console, client: Client, wanted: _Wanted, bot_tokens: list[Path]
) -> None:
    async with client:
        table = Table(out, wanted.locale, wanted.match, wanted.again)
        if wanted.match:
            seat = await _own_or_free_seat(client, wanted)
            bots: dict[int, Player] = {}
        else:
            known_game(wanted.game)
            created = await client.create(wanted.game, wanted.players)
            table.match_id = created.match_id
            seat = (await client.join(created.match_id, name=wanted.name)).seat
            bots = await _seat_bots(client, created.match_id, wanted, bot_tokens)
            out.print(f"{say(wanted.locale, 'match')} [bold]{created.match_id}[/]")
            await _wait_for_players(out, client, created.match_id, wanted.locale)
            await reveal_all(created.match_id, bots.values())
            await client.start(created.match_id)
        await _sit_down(table, client, seat, bots)


async def _own_or_free_seat(client: Client, wanted: _Wanted) -> int:
    seen = await client.get(wanted.match)
    if seen.viewer_seat:
        return seen.viewer_seat
    return (await client.join(wanted.match, name=wanted.name)).seat


async def _seat_bots(
    client: Client, match_id: str, wanted: _Wanted, tokens: list[Path]
) -> dict[int, Player]:
    bots: dict[int, Player] = {}
    for number, path in enumerate(tokens, 1):
        if not path.is_file():
            raise CommandFailed(say(wanted.locale, "no_token_file", path))
        bot_client = client.for_token(token_file(path))
        seat = (await bot_client.join(match_id, name=say(wanted.locale, "bot", number))).seat
        bot = make_bot("greedy", wanted.game, f"{wanted.seed}/{seat}")
        bots[seat] = Player(bot_client, bot)
    return bots


async def _wait_for_players(out: Console, client: Client, match_id: str, locale: Locale) -> None:
    async for update in client.watch(match_id, fold=True):
        state = update.state
        assert state is not None, "the watch was asked to fold"
        free = state.seats - len(state.players)
        if not free:
            return
        if update.live:
            out.print(f"[dim]{escape(say(locale, 'waiting', free, match_id))}[/]")


# -- both ------------------------------------------------------------------------------------------


async def _sit_down(table: Table, you: Client, seat: int, bots: dict[int, Player]) -> None:
    async with _playing(table.match_id, bots):
        await table.play(you, seat)


@contextlib.asynccontextmanager
async def _playing(match_id: str, bots: dict[int, Player]) -> AsyncIterator[None]:
    """Let the bots play for the length of the block."""

    async def play(seat: int, player: Player) -> None:
        async with player.client.play() as stream:
            await take_part(stream, match_id, seat, player.bot)

    tasks = [asyncio.create_task(play(seat, player)) for seat, player in bots.items()]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
