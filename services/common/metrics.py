"""Prometheus metrics of one process, and the small HTTP server that shows them.

Every process object has a registry of its own, so that tests and the embedded mode may run
several in one interpreter. Who counts what is the services' business.
"""

import socket
import socketserver
import threading
from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    make_wsgi_app,
)

import diceledger
from services.common.errors import StartupError

# From well under a bare append (about 1 ms) to the delivery timeout of the log (15 s).
_ACK_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 15)


class Metrics:
    """The metrics of one process. Results and reasons are label values; subjects never are."""

    def __init__(self, process: str, *, registry: CollectorRegistry | None = None) -> None:
        """`process` is the kind of process: match, projector, replay, embedded."""
        self.registry = registry or CollectorRegistry()
        build = Gauge(
            "diceledger_build_info", "Always 1.", ["process", "version"], registry=self.registry
        )
        build.labels(process, diceledger.__version__).set(1)
        self.commands = Counter(
            "diceledger_commands_total",
            "Commands answered, by command and result (ok, or the reason of the refusal).",
            ["command", "result"],
            registry=self.registry,
        )
        self.ack_seconds = Histogram(
            "diceledger_command_ack_seconds",
            "Seconds from a command's arrival to its reply, accepted commands only.",
            ["command"],
            buckets=_ACK_BUCKETS,
            registry=self.registry,
        )
        self.live_matches = Gauge(
            "diceledger_live_matches", "Matches held in memory.", registry=self.registry
        )
        self.partition_owned = Gauge(
            "diceledger_partition_owned",
            "1 while this process serves the partition.",
            ["partition"],
            registry=self.registry,
        )
        self.projection_lag = Gauge(
            "diceledger_projection_lag_records",
            "Records in the log that the projection has not applied yet.",
            ["projection", "partition"],
            registry=self.registry,
        )
        self.void_records = Counter(
            "diceledger_void_records_total",
            "Records that admission declared void, by reason.",
            ["reason"],
            registry=self.registry,
        )
        self.watchers = Gauge(
            "diceledger_watchers", "Watches being served.", registry=self.registry
        )
        self.in_flight = Gauge(
            "diceledger_commands_in_flight",
            "Commands accepted and not answered yet.",
            registry=self.registry,
        )
        self.given_up = Counter(
            "diceledger_memberships_given_up_total",
            "Memberships in the consumer group that were thrown away for a new one.",
            registry=self.registry,
        )
        self.damaged_views = Counter(
            "diceledger_damaged_views_total",
            "Matches that a list left out because their view could not be read.",
            registry=self.registry,
        )
        self.incidents = Counter(
            "diceledger_incidents_total",
            "Unexpected exceptions that callers saw as INTERNAL.",
            registry=self.registry,
        )

    def command(self, command: str, result: str, seconds: float | None = None) -> None:
        """Count one answered command; `seconds` (accepted ones) goes into the histogram."""
        self.commands.labels(command, result).inc()
        if seconds is not None:
            self.ack_seconds.labels(command).observe(seconds)

    def owned(self, partition: int, owned: bool) -> None:
        """Say whether this process serves the partition now."""
        self.partition_owned.labels(str(partition)).set(1 if owned else 0)

    def lag(self, projection: str, partition: int, records: int) -> None:
        """Say how many records the projection is behind."""
        self.projection_lag.labels(projection, str(partition)).set(records)

    def void(self, reason: str) -> None:
        """Count one void record."""
        self.void_records.labels(reason).inc()

    def with_process_figures(self) -> "Metrics":
        """Add memory, CPU, descriptors and garbage collection: once per interpreter."""
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        return self


class MetricsServer:
    """Serves /metrics and /healthz on a thread of its own: it answers though the loop is busy."""

    def __init__(
        self,
        metrics: Metrics,
        host: str,
        port: int,
        healthy: Callable[[], bool] = lambda: True,
    ) -> None:
        """Bind the port (0: any free one). Raises StartupError when it cannot be had."""
        family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
        try:
            self._server = _Server.bound(family, host.strip("[]"), port)
        except OSError as error:
            reason = error.strerror or str(error)
            raise StartupError(
                f"The metrics port {host}:{port} cannot be opened: {reason}."
            ) from error
        self._server.set_app(_application(metrics.registry, healthy))
        self.host = host
        self.port = int(self._server.server_port)
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="metrics", kwargs={"poll_interval": 0.2}
        )
        self._thread.daemon = True
        self._thread.start()

    def close(self) -> None:
        """Stop serving and give the port back."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=2)


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True

    @classmethod
    def bound(cls, family: socket.AddressFamily, host: str, port: int) -> "_Server":
        """Return a server for the address family; OSError when the address cannot be had."""
        kind = type("_FamilyServer", (cls,), {"address_family": family})
        server = kind((host, port), _QuietHandler)
        assert isinstance(server, _Server)
        return server

    def server_bind(self) -> None:
        """Bind without looking the host's name up: a missing name server would cost seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()


class _QuietHandler(WSGIRequestHandler):
    """Says nothing: a scrape every few seconds is no news."""

    # A client that sends nothing may not hold a thread for ever.
    timeout = 10

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Drop the line."""


def _application(
    registry: CollectorRegistry, healthy: Callable[[], bool]
) -> Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]:
    metrics_app = make_wsgi_app(registry)

    def plain(start: Callable[..., Any], status: str, body: bytes) -> Iterable[bytes]:
        start(status, [("Content-Type", "text/plain; charset=utf-8")])
        return [body]

    def application(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path == "/metrics":
            result: Iterable[bytes] = metrics_app(environ, start)
            return result
        if path != "/healthz":
            return plain(start, "404 Not Found", b"there are /metrics and /healthz\n")
        if healthy():
            return plain(start, "200 OK", b"ok\n")
        return plain(start, "503 Service Unavailable", b"not serving\n")

    return application
