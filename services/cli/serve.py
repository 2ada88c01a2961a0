"""`diceledger serve`: one service process, told by its environment variables."""

from typing import Annotated, Literal

import typer

from services.common.settings import settings_table


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("serve", rich_help_panel="Servers", epilog=_settings_help())(serve)


def serve(
    service: Annotated[
        Literal["match", "projector", "replay"], typer.Argument(help="Which service to run.")
    ],
) -> None:
    """Run one service until SIGTERM, then drain and end. Its settings are environment variables.

    The log is Kafka, the read models are in Redis. `diceledger up` runs everything on one machine
    without either.
    """
    # The services are loaded only by the command that runs them.
    from services.cli.runtime import run_service
    from services.cli.serve_process import run_process

    run_service(run_process(service))


def _settings_help() -> str:
    """Return every setting in one line each, for the end of the help text."""
    lines = [
        f"{variable}: {meaning}" + (f" [dim]\\[{default}][/]" if default else "")
        for variable, default, meaning in settings_table()
    ]
    return "\n\n".join(["[bold]Settings[/]", *lines])
