"""`diceledger token`: makes a bearer token for a server whose secret lies on this machine."""

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from services.cli.datadir import DataDir, DataOption, TokenMaker, read_token_secret
from services.common.auth import ROLES
from services.common.errors import StartupError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("token", rich_help_panel="Servers")(make)


def make(
    data: DataOption,
    subject: Annotated[
        str, typer.Option("--subject", help="Who the caller is: 1 to 64 characters, no spaces.")
    ],
    role: Annotated[
        list[str] | None,
        typer.Option("--role", help=f"May be repeated: {', '.join(sorted(ROLES))}. [player]"),
    ] = None,
    name: Annotated[str, typer.Option("--name", help="The name shown at the table.")] = "",
    hours: Annotated[
        float, typer.Option("--hours", help="How long it is valid.", min=0.01, max=24 * 366)
    ] = 24.0,
    secret_file: Annotated[
        Path | None,
        typer.Option(
            "--secret-file",
            envvar="DICELEDGER_TOKEN_SECRET_FILE",
            help="Sign with this file's secret instead of the data directory's.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of the bare token.")
    ] = False,
) -> None:
    """Print a bearer token.

    The secret is that of a set-up on this machine (--data, as for `diceledger up`) or lies in a
    file (--secret-file).
    """
    maker = TokenMaker(_secret(data, secret_file))
    roles = role or ["player"]
    try:
        token = maker(subject, *roles, name=name, lifetime_s=hours * 3600)
    except ValueError as error:
        raise typer.BadParameter(f"{error}.") from None
    if as_json:
        expires = int(time.time() + hours * 3600)
        print(json.dumps({"token": token, "subject": subject, "roles": roles, "expires": expires}))
    else:
        print(token)


def _secret(data: Path, secret_file: Path | None) -> bytes:
    if secret_file is not None:
        return read_token_secret(secret_file)
    path = DataDir(data).token_secret_file
    if not path.exists():
        raise StartupError(
            f"There is no server data in {data}: start `diceledger up` first, or name its "
            "directory with --data."
        )
    return read_token_secret(path)
