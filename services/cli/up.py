"""`diceledger up`: the whole service on this machine, until it is told to stop."""

import json
import os
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.panel import Panel

from services.cli.datadir import DataOption

DEFAULT_PORT = 50051
DEFAULT_METRICS_PORT = 9464
_MATCH_PROCESSES = 2


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("up", rich_help_panel="Servers")(up)


def up(
    data: DataOption,
    port: Annotated[
        int,
        typer.Option("--port", help="gRPC port on 127.0.0.1; 0: any.", min=0, max=65535),
    ] = DEFAULT_PORT,
    metrics_port: Annotated[
        int,
        typer.Option("--metrics-port", help="Port of /metrics; 0: any free one.", min=0, max=65535),
    ] = DEFAULT_METRICS_PORT,
    distributed: Annotated[
        bool,
        typer.Option(
            "--distributed",
            help="Run a real Kafka, a real Redis and each service as a process of its own.",
        ),
    ] = False,
    match_processes: Annotated[
        int | None,
        typer.Option(
            "--match-processes", help="With --distributed: how many, by default 2.", min=1, max=32
        ),
    ] = None,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions", help="Of a new log, by default 8; fixed for its life.", min=1, max=512
        ),
    ] = None,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        typer.Option("--log-level", help="Least level logged."),
    ] = "warning",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object when everything serves.")
    ] = False,
) -> None:
    """Start the whole service on this machine; Ctrl-C stops it.

    Everything is kept in the data directory: the next start goes on where this one ended, also
    after a crash. It listens on the loopback interface only.
    """
    from services.cli.runtime import run_service

    if match_processes is not None and not distributed:
        raise typer.BadParameter("--match-processes goes with --distributed.")
    if distributed:
        # Kafka's client is loaded only by those who use it.
        from services.cli.up_distributed import run_distributed

        work = run_distributed(
            data,
            port=port,
            metrics_port=metrics_port,
            match_processes=match_processes or _MATCH_PROCESSES,
            partitions=partitions,
            log_level=log_level,
            as_json=as_json,
        )
    else:
        work = _run_embedded(data, port, metrics_port, partitions, log_level, as_json)
    run_service(work)


async def _run_embedded(
    data: Path,
    port: int,
    metrics_port: int,
    partitions: int | None,
    log_level: str,
    as_json: bool,
) -> None:
    # The services are loaded only by the commands that run them.
    from services.cli.embedded import Embedded, embedded
    from services.cli.runtime import calm_collector, run_until, stop_requested
    from services.common.logging import configure_logging

    def announce(running: Embedded) -> None:
        if as_json:
            ready = {
                "mode": "embedded",
                "address": running.address,
                "metrics": running.metrics_address,
                "data": str(running.data_dir),
                "pid": os.getpid(),
            }
            print(json.dumps(ready), flush=True)
            return
        Console().print(
            Panel.fit(
                f"gRPC      [bold]{running.address}[/]  (matches and replays)\n"
                f"metrics   http://{running.metrics_address}/metrics\n"
                f"data      {running.data_dir}\n"
                f"token     diceledger token --subject YOU --data {running.data_dir}\n"
                "stop      Ctrl-C",
                title="diceledger is up",
            )
        )

    configure_logging(log_level, "console", process="embedded")
    with stop_requested() as stop:
        async with embedded(
            data, port=port, metrics_port=metrics_port, partitions=partitions
        ) as running:
            calm_collector()
            announce(running)
            await run_until(stop, running.failed)
            if not as_json:
                Console().print("Stopping …")
