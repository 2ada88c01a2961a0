"""What Prometheus sees."""

import asyncio
import urllib.error
import urllib.request

import pytest

from services.common.errors import StartupError
from services.common.metrics import Metrics, MetricsServer


async def fetch(server: MetricsServer, path: str) -> tuple[int, str]:
    def get() -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://{server.host}:{server.port}{path}") as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    return await asyncio.to_thread(get)


async def test_a_scrape_shows_what_was_counted() -> None:
    metrics = Metrics("match").with_process_figures()
    metrics.command("answer", "ok", 0.004)
    metrics.command("answer", "PROMPT_CLOSED")
    metrics.owned(3, True)
    metrics.owned(4, False)
    metrics.lag("views", 3, 17)
    metrics.void("STALE_EPOCH")
    metrics.live_matches.set(5)
    server = MetricsServer(metrics, "127.0.0.1", 0)
    try:
        status, text = await fetch(server, "/metrics")
    finally:
        server.close()
    assert status == 200
    for line in (
        'diceledger_commands_total{command="answer",result="ok"} 1.0',
        'diceledger_commands_total{command="answer",result="PROMPT_CLOSED"} 1.0',
        'diceledger_command_ack_seconds_bucket{command="answer",le="0.005"} 1.0',
        'diceledger_command_ack_seconds_count{command="answer"} 1.0',
        'diceledger_partition_owned{partition="3"} 1.0',
        'diceledger_partition_owned{partition="4"} 0.0',
        'diceledger_projection_lag_records{partition="3",projection="views"} 17.0',
        'diceledger_void_records_total{reason="STALE_EPOCH"} 1.0',
        "diceledger_live_matches 5.0",
        "diceledger_watchers 0.0",
        "diceledger_commands_in_flight 0.0",
        "diceledger_incidents_total 0.0",
    ):
        assert line in text.splitlines(), line
    assert "process_resident_memory_bytes" in text


async def test_health_over_http_follows_the_process() -> None:
    healthy = [True]
    server = MetricsServer(Metrics("x"), "127.0.0.1", 0, lambda: healthy[0])
    try:
        assert await fetch(server, "/healthz") == (200, "ok\n")
        healthy[0] = False
        assert (await fetch(server, "/healthz"))[0] == 503
        assert (await fetch(server, "/"))[0] == 404
    finally:
        server.close()


def test_two_processes_in_one_interpreter_count_apart() -> None:
    one, two = Metrics("match"), Metrics("match")
    one.void("BAD_HASH")
    name, labels = "diceledger_void_records_total", {"reason": "BAD_HASH"}
    assert one.registry.get_sample_value(name, labels) == 1
    assert two.registry.get_sample_value(name, labels) is None


def test_a_metrics_port_in_use_is_one_sentence() -> None:
    server = MetricsServer(Metrics("x"), "127.0.0.1", 0)
    try:
        with pytest.raises(StartupError, match=f"metrics port 127.0.0.1:{server.port} cannot"):
            MetricsServer(Metrics("x"), "127.0.0.1", server.port)
    finally:
        server.close()
