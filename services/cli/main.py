"""The command `diceledger`: one program for players, hosts, judges and operators."""

import io
import logging
import sys
from typing import Annotated

import typer

from diceledger import __version__
from services.cli import (
    cards,
    demo,
    export,
    games,
    play,
    replay,
    scenario,
    serve,
    simulate,
    token,
    topics,
    up,
    verify,
)
from services.cli.main_guard import guarded

app = typer.Typer(
    name="diceledger",
    help="Table games on a log: every roll recorded, every game replayable, every die provable.\n\n"
    "Begin with [bold]diceledger demo[/]: it starts a server, lets three bots play a match over "
    "the network, replays it and proves that the dice were fair.",
    epilog="Exit codes: 0 done, 1 failed (the reason is printed), 2 wrong usage. "
    "`diceledger COMMAND --help` explains a command.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"diceledger {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and stop.", callback=_show_version, is_eager=True
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the trace of an unexpected failure.")
    ] = False,
) -> None:
    pass


for _part in (
    demo,
    play,
    replay,
    verify,
    export,
    games,
    cards,
    scenario,
    simulate,
    up,
    token,
    serve,
    topics,
):
    _part.register(app)


def main() -> None:
    """Entry point: run the command line and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that knows fewer characters shows question marks, not a failure.
            stream.reconfigure(errors="replace")
    arguments = sys.argv[1:]
    debug = "--debug" in arguments
    if debug:
        logging.basicConfig(level=logging.INFO)
    sys.exit(guarded(lambda: app(arguments, prog_name="diceledger"), debug=debug))


if __name__ == "__main__":
    main()
