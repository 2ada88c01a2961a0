"""A replay service over a real log and a real Redis, called in process through real gRPC."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import grpc.aio
import pytest
from redis.asyncio import Redis

from diceledger.replay.v1 import replay_pb2_grpc
from services.common.auth import Verifier, make_token, secret_token_key
from services.common.log.sqlite import SqliteLog
from services.common.metrics import Metrics
from services.common.server import GrpcServer
from services.common.settings import Address
from services.projector import Projector
from services.replay import ReplayNode
from tests.services.projector.conftest import game, log, recorder, redis, server

__all__ = ["game", "log", "recorder", "redis", "server"]

KEY = secret_token_key(b"a secret of at least thirty-two bytes")
SERVICE = "diceledger.replay.v1.ReplayService"

if TYPE_CHECKING:
    Stub = replay_pb2_grpc.ReplayServiceAsyncStub
else:
    Stub = replay_pb2_grpc.ReplayServiceStub


@pytest.fixture
async def node(log: SqliteLog, redis: Redis) -> AsyncIterator[ReplayNode]:
    """A running replay node, and the projector that it compares with."""
    projector = Projector(log=log, redis=redis, metrics=Metrics("projector"), look_s=0.1)
    node = ReplayNode(log=log, redis=redis, metrics=Metrics("replay"))
    await projector.start()
    await node.start()
    yield node
    await node.close()
    await projector.close()


@pytest.fixture
async def stub(node: ReplayNode) -> AsyncIterator[Stub]:
    """A connection to the service."""
    metrics = Metrics("replay")
    grpc_server = GrpcServer(
        Address("127.0.0.1", 0), services=[SERVICE], metrics=metrics, verifier=Verifier([KEY])
    )
    node.register(grpc_server.server)
    address = await grpc_server.start()
    async with grpc.aio.insecure_channel(str(address)) as channel:
        yield replay_pb2_grpc.ReplayServiceStub(channel)
    await grpc_server.close(0)


def as_caller(subject: str, *roles: str, locale: str = "") -> tuple[tuple[str, str], ...]:
    """Metadata of a call by `subject`."""
    token = make_token(KEY, subject, roles or ("player",))
    metadata = [("authorization", f"Bearer {token}")]
    if locale:
        metadata.append(("accept-language", locale))
    return tuple(metadata)
