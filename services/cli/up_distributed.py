"""What `diceledger up --distributed` shows, and how it ends."""

import json
import os
from pathlib import Path

from rich.console import Console
from rich.table import Table

from services.cli.runtime import run_until, stop_requested
from services.cli.supervisor import Distributed, distributed


async def run_distributed(
    data: Path,
    *,
    port: int,
    metrics_port: int,
    match_processes: int,
    partitions: int | None,
    log_level: str,
    as_json: bool,
) -> None:
    """Run the set-up until it is told to stop; StartupError when a process ends before."""
    # With --json nothing but the object goes to standard output.
    console = Console(stderr=as_json)

    def say(text: str) -> None:
        console.print(text, highlight=False)

    with stop_requested() as stop:
        async with distributed(
            data,
            match_processes=match_processes,
            port=port,
            metrics_port=metrics_port,
            partitions=partitions,
            log_level=log_level,
            say=say,
        ) as running:
            if as_json:
                print(json.dumps(_summary(running)), flush=True)
            else:
                console.print(_table(running))
                say(f"token: diceledger token --subject YOU --data {running.data_dir}")
                say("stop:  Ctrl-C")
            await run_until(stop, running.failed)
            say("Stopping …")


def _summary(running: Distributed) -> dict[str, object]:
    return {
        "mode": "distributed",
        "match": list(running.addresses),
        "replay": running.replay_address,
        "kafka": running.kafka,
        "topic": running.topic,
        "redis": running.redis_server.url,
        "processes": {
            name: {"address": each.address, "metrics": each.metrics_address, "pid": each.pid}
            for name, each in running.members.items()
        },
        "data": str(running.data_dir),
        "pid": os.getpid(),
    }


def _table(running: Distributed) -> Table:
    table = Table(title="diceledger is up", title_justify="left")
    for heading in ("process", "pid", "listens at", "/metrics at"):
        table.add_column(heading, overflow="fold")
    for name, each in running.members.items():
        table.add_row(name, str(each.pid), each.address, each.metrics_address)
    table.add_section()
    broker = running.broker
    table.add_row("Kafka", str(broker.pid) if broker else "", running.kafka, "")
    table.add_row("Redis", str(running.redis_server.pid), running.redis_server.url, "")
    table.caption = f"data and logs: {running.data_dir}"
    table.caption_justify = "left"
    return table
