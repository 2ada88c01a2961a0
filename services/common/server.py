"""Builds and runs a gRPC server as all our processes have it: the edge towards callers.

Interceptors, health, reflection, limits, TLS, and a shutdown that loses no reply. What is served
is the processes' business: they register their services on `server`.
"""

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from services.common.auth import Verifier
from services.common.errors import ErrorInterceptor, StartupError
from services.common.gate import Gate
from services.common.metrics import Metrics
from services.common.settings import Address, Settings

MESSAGE_BYTES_MAX: Final = 1024 * 1024
_CALLS_MAX = 20_000
_STREAMS_S = 1.0
_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@dataclass(frozen=True, slots=True)
class Tls:
    """PEM files of the server; with `client_ca`, clients must show a certificate (mTLS)."""

    cert: Path
    key: Path
    client_ca: Path | None = None

    @classmethod
    def of(cls, settings: Settings) -> "Tls | None":
        """Return what the settings say; None: plain text."""
        if settings.tls_cert is None or settings.tls_key is None:
            return None
        return cls(settings.tls_cert, settings.tls_key, settings.tls_client_ca)

    def credentials(self) -> grpc.ServerCredentials:
        """Read the files. Raises StartupError for one that is missing, damaged or no match."""
        try:
            # gRPC would take anything here and refuse every handshake later.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.cert, self.key)
            authorities = self.client_ca.read_bytes() if self.client_ca else None
            if authorities is not None:
                ssl.create_default_context(cadata=authorities.decode("ascii"))
            pair = (self.key.read_bytes(), self.cert.read_bytes())
        except (OSError, ValueError) as error:
            # ssl.SSLError is an OSError; its reason is better than its text.
            reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
            names = ", ".join(str(path) for path in (self.cert, self.key, self.client_ca) if path)
            raise StartupError(f"The TLS files {names} cannot be used: {reason}.") from None
        return grpc.ssl_server_credentials(
            [pair],
            root_certificates=authorities,
            require_client_auth=authorities is not None,
        )


class GrpcServer:
    """One gRPC port: `bind`, register on `server`, `start`, `set_serving`, in the end `close`."""

    def __init__(
        self,
        listen: Address,
        *,
        services: Sequence[str],
        metrics: Metrics,
        verifier: Verifier | None = None,
        gate: Gate | None = None,
        tls: Tls | None = None,
        streams_max: int = 1_000,
    ) -> None:
        """`services` are the full names of what will be registered, for health and reflection.

        Without a `verifier` only health and reflection may be registered: they need no token.
        `gate` is by default one with the usual limits.
        """
        assert verifier or gate or not services, "services without authentication"
        self._listen = listen
        self._tls = tls
        self._services = tuple(services)
        self._health = health.aio.HealthServicer()
        self._gate = gate or Gate(verifier)
        self.server: grpc.aio.Server = grpc.aio.server(
            interceptors=[ErrorInterceptor(metrics.incidents.inc), self._gate],
            options=_options(streams_max),
            maximum_concurrent_rpcs=_CALLS_MAX,
        )
        self._port = 0

    @property
    def address(self) -> Address:
        """Where it listens, with the real port; after `bind`."""
        assert self._port, "not bound"
        return Address(self._listen.host, self._port)

    def bind(self) -> Address:
        """Take the port, so that services may know it; StartupError when it cannot be had."""
        _check_free(self._listen)
        try:
            if self._tls is None:
                self._port = self.server.add_insecure_port(str(self._listen))
            else:
                self._port = self.server.add_secure_port(str(self._listen), self._tls.credentials())
        except RuntimeError as error:
            raise StartupError(f"The port {self._listen} cannot be opened.") from error
        return self.address

    async def start(self) -> Address:
        """Answer calls; for health checks not serving yet. Binds first if that was not done."""
        if not self._port:
            self.bind()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self.server)
        names = (*self._services, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, self.server)
        await self.set_serving(False)
        await self.server.start()
        return self.address

    async def set_serving(self, serving: bool) -> None:
        """Tell health checks, of the whole server and of each service."""
        for name in ("", *self._services):
            await self._health.set(name, _SERVING if serving else _NOT_SERVING)

    async def close(self, drain_s: float) -> None:
        """Take no new calls, let running ones end for `drain_s` seconds, then cut them off.

        Streams may be endless: after a second they are ended with SHUTTING_DOWN.
        """
        await self.set_serving(False)
        stopping = asyncio.create_task(self.server.stop(drain_s))
        await asyncio.wait([stopping], timeout=min(_STREAMS_S, drain_s))
        self._gate.end_streams()
        await stopping


def _options(streams_max: int) -> list[tuple[str, Any]]:
    return [
        ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
        ("grpc.max_concurrent_streams", streams_max),
        # Dead peers are noticed within 80 s; impatient pings (below 5 s) end the connection.
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
        ("grpc.http2.max_ping_strikes", 3),
        # Else a second process on the same port would get half of the calls.
        ("grpc.so_reuseport", 0),
    ]


def _check_free(listen: Address) -> None:
    """Say why a port cannot be had; gRPC itself would only write to its own log."""
    family = socket.AF_INET6 if listen.host.startswith("[") else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((listen.host.strip("[]"), listen.port))
    except OSError as error:
        hints = {
            errno.EADDRINUSE: "another program is using it",
            errno.EADDRNOTAVAIL: "this machine does not have that address",
            errno.EACCES: "ports below 1024 need special rights",
        }
        number = error.errno or 0
        reason = hints.get(number) or error.strerror or os.strerror(number)
        raise StartupError(f"The port {listen} cannot be opened: {reason}.") from None
