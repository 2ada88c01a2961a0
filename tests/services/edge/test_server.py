"""The gRPC server as a whole: ports, TLS, limits, health, reflection, shutdown."""

import asyncio
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from diceledger.match.v1 import match_pb2
from services.common.errors import StartupError, parse_error
from services.common.metrics import Metrics
from services.common.server import GrpcServer, Tls
from services.common.settings import Address
from tests.services.edge.serving import MATCH_SERVICE, bearer, edge
from tests.support.certificates import Authority


async def answered(running: Any) -> bool:
    try:
        await running.stub.SubmitAnswer(
            match_pb2.SubmitAnswerRequest(), metadata=bearer(), timeout=5
        )
    except grpc.aio.AioRpcError:
        return False
    return True


async def health_of(channel: grpc.aio.Channel, service: str = "") -> int:
    stub = health_pb2_grpc.HealthStub(channel)
    reply = await stub.Check(health_pb2.HealthCheckRequest(service=service))
    return int(reply.status)


async def test_health_tells_of_the_server_and_of_each_service() -> None:
    async with edge() as running:
        serving, not_serving = (
            health_pb2.HealthCheckResponse.SERVING,
            health_pb2.HealthCheckResponse.NOT_SERVING,
        )
        assert await health_of(running.channel) == not_serving
        await running.server.set_serving(True)
        assert await health_of(running.channel) == serving
        assert await health_of(running.channel, MATCH_SERVICE) == serving


async def test_reflection_lists_and_describes_the_services() -> None:
    async with edge() as running:
        stub = reflection_pb2_grpc.ServerReflectionStub(running.channel)
        requests = [
            reflection_pb2.ServerReflectionRequest(list_services=""),
            reflection_pb2.ServerReflectionRequest(file_containing_symbol=MATCH_SERVICE),
        ]
        replies = [reply async for reply in stub.ServerReflectionInfo(iter(requests))]
    names = {service.name for service in replies[0].list_services_response.service}
    assert {MATCH_SERVICE, "grpc.health.v1.Health"} <= names
    assert b"SubmitAnswer" in replies[1].file_descriptor_response.file_descriptor_proto[0]


async def test_a_port_in_use_is_one_sentence() -> None:
    async with edge() as running:
        address = running.server.address
        second = GrpcServer(address, services=[], metrics=Metrics("test"))
        with pytest.raises(StartupError) as caught:
            await second.start()
        await second.close(0)
    assert str(caught.value) == (
        f"The port {address} cannot be opened: another program is using it."
    )


async def test_a_foreign_address_is_one_sentence() -> None:
    server = GrpcServer(Address("203.0.113.9", 0), services=[], metrics=Metrics("test"))
    with pytest.raises(StartupError, match="does not have that address"):
        await server.start()
    await server.close(0)


async def test_tls_serves_those_who_trust_the_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    tls = Tls(*authority.issue("localhost"))
    credentials = grpc.ssl_channel_credentials(authority.cert.read_bytes())
    async with edge(tls=tls, credentials=credentials) as running:
        assert await answered(running)
    async with edge(tls=tls) as running:
        assert not await answered(running)


async def test_with_client_authorities_a_certificate_is_needed_beside_the_token(
    tmp_path: Path,
) -> None:
    authority, of_clients = (Authority(tmp_path / name) for name in ("servers", "clients"))
    mine, my_key = of_clients.issue("a client")
    tls = Tls(*authority.issue("localhost"), client_ca=of_clients.cert)
    trusted = authority.cert.read_bytes()
    with_mine = grpc.ssl_channel_credentials(trusted, my_key.read_bytes(), mine.read_bytes())
    without = grpc.ssl_channel_credentials(trusted)
    async with edge(tls=tls, credentials=with_mine) as running:
        assert await answered(running)
    async with edge(tls=tls, credentials=without) as running:
        assert not await answered(running)


def test_tls_files_that_do_not_belong_together_are_one_sentence(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    cert, _ = authority.issue("one")
    _, key = authority.issue("two")
    with pytest.raises(StartupError, match=r"TLS files .* cannot be used"):
        Tls(cert, key).credentials()
    with pytest.raises(StartupError, match="cannot be used"):
        Tls(cert, tmp_path / "missing").credentials()
    (tmp_path / "rubbish").write_text("rubbish")
    with pytest.raises(StartupError, match="cannot be used"):
        Tls(tmp_path / "rubbish", key).credentials()


async def test_a_running_call_ends_in_peace_while_new_ones_are_refused() -> None:
    arrived, proceed = asyncio.Event(), asyncio.Event()

    async def answering(request: Any, context: Any) -> Any:
        arrived.set()
        await proceed.wait()
        return match_pb2.SubmitAnswerResponse()

    async with edge() as running:
        running.service.answering = answering
        call = running.stub.SubmitAnswer(match_pb2.SubmitAnswerRequest(), metadata=bearer())
        await arrived.wait()
        closing = asyncio.create_task(running.server.close(5))
        await asyncio.sleep(0.1)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await running.stub.SubmitAnswer(match_pb2.SubmitAnswerRequest(), metadata=bearer())
        assert parse_error(caught.value).retryable
        proceed.set()
        assert await call == match_pb2.SubmitAnswerResponse()
        await closing


@pytest.mark.parametrize("method", ["watch", "play"])
async def test_an_endless_stream_is_ended_with_a_reason_when_the_server_stops(method: str) -> None:
    async def streaming(request: Any, context: Any) -> Any:
        while True:
            yield match_pb2.WatchMatchResponse()
            await asyncio.sleep(0.05)

    async with edge() as running:
        running.service.streaming = streaming
        if method == "watch":
            call = running.stub.WatchMatch(match_pb2.WatchMatchRequest(), metadata=bearer())
            await call.read()
        else:
            call = running.stub.Play(metadata=bearer())
            await call.write(match_pb2.PlayRequest())
            await call.read()
        async with asyncio.timeout(3):
            await running.server.close(60)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            while await call.read():
                pass
    assert parse_error(caught.value).reason == "SHUTTING_DOWN"


async def test_a_call_that_does_not_end_is_cut_off_after_the_drain_time() -> None:
    async def answering(request: Any, context: Any) -> Any:
        await asyncio.sleep(60)

    async with edge() as running:
        running.service.answering = answering
        call = running.stub.SubmitAnswer(match_pb2.SubmitAnswerRequest(), metadata=bearer())
        await asyncio.sleep(0.1)
        async with asyncio.timeout(5):
            await running.server.close(0.2)
        with pytest.raises(grpc.aio.AioRpcError):
            await call
