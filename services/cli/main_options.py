"""Options that several commands share, and what they mean."""

import asyncio
import logging
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer

from services.cli.main_guard import CommandFailed
from services.client import Client, RetryPolicy, Tls, connect, token_file

T = TypeVar("T")
Locale = Literal["en", "zh"]

# A person waits in front of the screen: say sooner than a bot would that nobody answers.
_IMPATIENT = RetryPolicy(total_s=5.0, attempt_s=5.0)

JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON object, for programs, and nothing else.")
]
LocaleOption = Annotated[Locale, typer.Option("--locale", help="Language of the game's texts.")]
ServerOption = Annotated[
    str,
    typer.Option(
        "--server",
        envvar="DICELEDGER_SERVER",
        metavar="HOST:PORT[,…]",
        help="Where the server listens; several addresses are tried in turn.",
    ),
]
ReplayServerOption = Annotated[
    str,
    typer.Option(
        "--replay-server",
        envvar="DICELEDGER_REPLAY_SERVER",
        metavar="HOST:PORT",
        help="Where the replay service listens, if not at --server.",
    ),
]
TokenFileOption = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        envvar="DICELEDGER_TOKEN_FILE",
        metavar="FILE",
        help="File with your bearer token.",
    ),
]
CaFileOption = Annotated[
    Path | None,
    typer.Option(
        "--ca-file",
        metavar="FILE",
        help="Use TLS, and trust the authorities in this PEM file.",
    ),
]


def remote_client(
    server: str,
    token: Path | None,
    ca_file: Path | None = None,
    *,
    replay_server: str = "",
    locale: Locale = "en",
    policy: RetryPolicy = _IMPATIENT,
) -> Client:
    """A client of a server that somebody else runs. Raises CommandFailed for an unusable file."""
    if not server.strip(" ,"):
        raise CommandFailed("Say where the server is: --server HOST:PORT.")
    if token is not None and not token.is_file():
        raise CommandFailed(f"There is no token file {token}; `diceledger token` makes one.")
    try:
        tls = None if ca_file is None else Tls(ca_file)
        source = None if token is None else token_file(token)
        return connect(
            server,
            source,
            locale=locale,
            tls=tls,
            policy=policy,
            replay_addresses=replay_server,
        )
    except OSError as error:
        raise CommandFailed(f"The CA file {ca_file} cannot be read: {error.strerror}.") from error


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's asynchronous part to its end, for a person who watches.

    What libraries say to developers is kept from the screen, unless `--debug` set up logging.
    """
    if not logging.root.handlers:
        logging.root.addHandler(logging.NullHandler())
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    return asyncio.run(work)
