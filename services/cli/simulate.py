"""`diceledger simulate`: many matches between bots, played directly on the engine."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from engine import AnyGame, Refusal
from services.cli.demo_cast import check_players, known_game
from services.cli.main_guard import FAILED, STOPPED, CommandFailed
from services.cli.main_options import JsonOption, LocaleOption
from services.cli.render_console import console, errors_to, print_json
from services.cli.simulate_jobs import Progress as Told
from services.cli.simulate_jobs import Stopped, simulate
from services.cli.simulate_plan import Plan, parse_bots, parse_players
from services.cli.simulate_report import show
from services.cli.simulate_tally import Tally, as_json

_DEFAULT_GAME: Final = "king_of_tokyo"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="simulate", rich_help_panel="Games")(_simulate)


def _simulate(
    game: Annotated[
        str, typer.Option("--game", metavar="GAME", help="`diceledger games` lists them.")
    ] = _DEFAULT_GAME,
    players: Annotated[
        str, typer.Option("--players", metavar="N|N-M", help="How many play; a range: any of it.")
    ] = "4",
    matches: Annotated[int, typer.Option("--matches", min=1, help="How many matches.")] = 100,
    seed: Annotated[
        str, typer.Option("--seed", help="Of dice, cards, options and bots; the same, the same.")
    ] = "1",
    bots: Annotated[
        str,
        typer.Option(
            "--bots",
            metavar="KIND[,…]",
            help="random, greedy, mixed (both in turn), or a list; seats rotate.",
        ),
    ] = "random",
    preset: Annotated[str, typer.Option("--preset", help="A preset of options.")] = "",
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="NAME=VALUE", help="Set an option; may be repeated."),
    ] = None,
    mixed_options: Annotated[
        bool,
        typer.Option(
            "--mixed-options",
            help="Draw all other options for each match; some have standing answers.",
        ),
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Check each match: log against live state, what is conserved, every question.",
        ),
    ] = False,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Processes to use.")] = 1,
    first: Annotated[
        int, typer.Option("--first", min=1, help="Number of the first match, to repeat one.")
    ] = 1,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Go on after a match that failed.")
    ] = False,
    locale: LocaleOption = "en",
    json: JsonOption = False,
) -> None:
    """Play many matches between bots, without a server, and sum them up.

    The same seed gives the same matches, whatever --jobs is.
    """
    plan = _plan(known_game(game), players, bots, preset, option or (), mixed_options, check, seed)
    begun = time.perf_counter()
    stopped = False
    try:
        with _bar(matches) as progress:
            tally = simulate(
                plan, first, matches, jobs=jobs, keep_going=keep_going, progress=progress
            )
    except Stopped as stop:
        stopped, tally = True, stop.tally
    seconds = time.perf_counter() - begun
    summary = as_json(plan, matches, tally, seconds, jobs)
    if json:
        print_json(summary)
    else:
        show(console(), plan, tally, summary, locale)
    _end(plan, tally, stopped=stopped)


def _end(plan: Plan, tally: Tally, *, stopped: bool) -> None:
    """Say what went wrong, and end with the exit code for it."""
    for failure in tally.failures:
        errors_to(
            f"Match {failure.number} of seed {plan.seed} failed: {failure.error} "
            f"Play it again with: {plan.command(failure.number)}"
        )
    if tally.failures:
        raise typer.Exit(FAILED)
    if stopped:
        errors_to("Stopped; this is what had been played.")
        raise typer.Exit(STOPPED)


def _plan(
    game: AnyGame,
    players: str,
    bots: str,
    preset: str,
    options: list[str] | tuple[()],
    mixed_options: bool,
    check: bool,
    seed: str,
) -> Plan:
    """The plan. Raises BadParameter or CommandFailed for anything that cannot be."""
    try:
        low, high = parse_players(players)
    except ValueError as error:
        raise typer.BadParameter(f"{error}.", param_hint="'--players'") from None
    check_players(game, low, high)
    try:
        kinds = parse_bots(bots)
    except ValueError as error:
        raise typer.BadParameter(f"{error}.", param_hint="'--bots'") from None
    chosen = dict(_pair(each) for each in options)
    try:
        game.resolve_options(preset, chosen)
    except Refusal as refusal:
        raise CommandFailed(refusal.message("en")) from None
    return Plan(
        game=game.id,
        players_low=low,
        players_high=high,
        seed=seed,
        bots=kinds,
        preset=preset,
        options=tuple(sorted(chosen.items())),
        mixed_options=mixed_options,
        check=check,
    )


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise typer.BadParameter(
            f"{text!r} is not of the form NAME=VALUE.", param_hint="'--option'"
        )
    return name.strip(), value.strip()


@contextmanager
def _bar(matches: int) -> Iterator[Told]:
    """A progress bar on standard error, if that is a terminal."""
    stderr = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=stderr,
        transient=True,
        disable=not stderr.is_terminal,
    )
    begun = time.perf_counter()
    turns = 0
    with bar:
        task = bar.add_task("matches", total=matches, rate="")

        def told(more_matches: int, more_turns: int) -> None:
            nonlocal turns
            turns += more_turns
            seconds = time.perf_counter() - begun
            bar.update(task, advance=more_matches, rate=f"{turns / seconds:,.0f} turns/s")

        yield told
