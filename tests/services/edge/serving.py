"""A match service whose replies the tests decide, behind the real edge."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc.aio

from diceledger.match.v1 import match_pb2, match_pb2_grpc
from services.common.auth import Verifier, make_token, secret_token_key
from services.common.gate import Gate
from services.common.metrics import Metrics
from services.common.server import GrpcServer, Tls
from services.common.settings import Address

MATCH_SERVICE = match_pb2.DESCRIPTOR.services_by_name["MatchService"].full_name
KEY = secret_token_key(b"a secret for tests, 32 bytes and more")

Answering = Callable[[Any, Any], Awaitable[Any]]
Streaming = Callable[[Any, Any], AsyncIterator[Any]]


async def _no_answer(request: Any, context: Any) -> Any:
    return match_pb2.SubmitAnswerResponse()


async def _no_stream(request: Any, context: Any) -> AsyncIterator[Any]:
    yield match_pb2.WatchMatchResponse()


class Service(match_pb2_grpc.MatchServiceServicer):
    """SubmitAnswer and WatchMatch do what the test says."""

    def __init__(self) -> None:
        self.answering: Answering = _no_answer
        self.streaming: Streaming = _no_stream

    async def SubmitAnswer(self, request: Any, context: Any) -> Any:  # noqa: N802 - gRPC's name
        return await self.answering(request, context)

    async def WatchMatch(  # noqa: N802 - gRPC's name
        self, request: Any, context: Any
    ) -> AsyncIterator[Any]:
        async for response in self.streaming(request, context):
            yield response

    async def Play(self, requests: Any, context: Any) -> None:  # type: ignore[override]  # noqa: N802 - writes by itself
        async for _ in requests:
            await context.write(match_pb2.PlayResponse())


@dataclass
class Edge:
    """A running server and a way to call it."""

    service: Service
    server: GrpcServer
    metrics: Metrics
    channel: grpc.aio.Channel

    @property
    def stub(self) -> Any:
        return match_pb2_grpc.MatchServiceStub(self.channel)


@contextlib.asynccontextmanager
async def edge(
    *, tls: Tls | None = None, credentials: Any = None, gate: Gate | None = None
) -> AsyncIterator[Edge]:
    """Serve on a free port for the length of the block."""
    service = Service()  # type: ignore[abstract]  # all other calls are UNIMPLEMENTED
    metrics = Metrics("test")
    server = GrpcServer(
        Address("127.0.0.1", 0),
        services=[MATCH_SERVICE],
        metrics=metrics,
        gate=gate or Gate(Verifier([KEY])),
        tls=tls,
    )
    match_pb2_grpc.add_MatchServiceServicer_to_server(service, server.server)
    await server.start()
    target = f"localhost:{server.address.port}"
    options = [("grpc.max_send_message_length", -1)]
    channel = (
        grpc.aio.insecure_channel(target, options=options)
        if credentials is None
        else grpc.aio.secure_channel(target, credentials, options=options)
    )
    try:
        async with channel:
            yield Edge(service, server, metrics, channel)
    finally:
        await server.close(0)


def bearer(subject: str = "ann", **claims: Any) -> tuple[tuple[str, str], ...]:
    """Metadata of a caller."""
    return (("authorization", f"Bearer {make_token(KEY, subject, **claims)}"),)


def secret_file(path: Path, text: str) -> Path:
    """A file that only its owner may read."""
    path.write_text(text)
    path.chmod(0o600)
    return path
