"""Strangers and greedy callers cannot take the places of others."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from diceledger.match.v1 import match_pb2
from services.common.auth import Verifier
from services.common.errors import parse_error
from services.common.gate import Gate
from tests.services.edge.serving import KEY, MATCH_SERVICE, Edge, bearer, edge

SUBMIT = f"/{MATCH_SERVICE}/SubmitAnswer"
WATCH = f"/{MATCH_SERVICE}/WatchMatch"
PLAY = f"/{MATCH_SERVICE}/Play"
CHECK = "/grpc.health.v1.Health/Check"


def gate(**limits: Any) -> Gate:
    return Gate(Verifier([KEY]), **limits)


async def reason_of(call: Callable[[], Awaitable[Any]], patience_s: float = 5) -> str:
    """The reason of the refusal; "" when it is answered."""
    try:
        async with asyncio.timeout(patience_s):
            await call()
    except grpc.aio.AioRpcError as error:
        return parse_error(error).reason
    return ""


def half_open(running: Edge, method: str, metadata: Any = ()) -> Any:
    """A unary call whose request is never sent."""
    return running.channel.stream_unary(method)(metadata=metadata)


def _itself(call: Any) -> Any:
    return call


def raw(running: Edge, method: str, data: bytes, metadata: Any) -> Callable[[], Awaitable[Any]]:
    """A call with these bytes for a request."""

    async def call() -> Any:
        method_of: grpc.aio.StreamStreamMultiCallable[bytes, bytes]
        method_of = running.channel.stream_stream(method)
        return [reply async for reply in method_of(iter([data]), metadata=metadata)]

    return call


async def waiting(request: Any, context: Any) -> Any:
    await asyncio.sleep(60)


async def watching(request: Any, context: Any) -> Any:
    yield match_pb2.WatchMatchResponse()
    await asyncio.sleep(60)


async def test_without_a_token_no_request_is_waited_for() -> None:
    async with edge() as running:
        for _ in range(50):
            assert await reason_of(lambda: half_open(running, SUBMIT)) == "TOKEN_MISSING"


@pytest.mark.parametrize("method", [SUBMIT, CHECK])
async def test_a_request_that_does_not_come_is_not_waited_for_long(method: str) -> None:
    async with edge(gate=gate(request_s=0.3, open_request_s=0.3)) as running:
        call = half_open(running, method, bearer())
        started = time.monotonic()
        assert await reason_of(lambda: call) == "BAD_REQUEST"
        assert 0.2 < time.monotonic() - started < 15


@pytest.mark.parametrize("method", [SUBMIT, WATCH, PLAY])
@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff", b"\x0a\x02\xff\xfe"])
async def test_bytes_that_are_no_message_are_refused_without_noise(
    method: str, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    async with edge() as running:
        assert await reason_of(raw(running, method, data, bearer())) == "BAD_REQUEST"
        assert await reason_of(raw(running, method, data, ())) == "TOKEN_MISSING"
    assert caplog.text == ""


async def test_a_unary_call_without_a_request_is_refused() -> None:
    async with edge() as running:
        method: grpc.aio.StreamUnaryMultiCallable[bytes, bytes]
        method = running.channel.stream_unary(SUBMIT)
        call = method(iter([]), metadata=bearer())
        assert await reason_of(lambda: call) == "BAD_REQUEST"


async def test_one_caller_has_only_so_many_calls_open() -> None:
    async with edge(gate=gate(calls_per_caller_max=3)) as running:
        running.service.answering = waiting
        running.service.streaming = watching

        def submit(who: str) -> Any:
            return running.stub.SubmitAnswer(match_pb2.SubmitAnswerRequest(), metadata=bearer(who))

        held = [submit("ann"), submit("ann")]
        held.append(running.stub.WatchMatch(match_pb2.WatchMatchRequest(), metadata=bearer("ann")))
        await held[-1].read()
        assert await reason_of(lambda: submit("ann")) == "TOO_MANY_CALLS"
        with pytest.raises(TimeoutError):
            await reason_of(lambda: submit("bob"), patience_s=0.3)
        for call in held:
            call.cancel()
        await asyncio.sleep(0.2)
        with pytest.raises(TimeoutError):
            await reason_of(lambda: submit("ann"), patience_s=0.3)


async def test_health_watches_are_few_and_checks_go_on_beside_them() -> None:
    async with edge(gate=gate(open_streams_max=2)) as running:
        await running.server.set_serving(True)
        stub = health_pb2_grpc.HealthStub(running.channel)
        watches = [stub.Watch(health_pb2.HealthCheckRequest()) for _ in range(2)]
        for watch in watches:
            assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
        third = stub.Watch(health_pb2.HealthCheckRequest())
        assert await reason_of(third.read) == "TOO_MANY_CALLS"
        reflection = reflection_pb2_grpc.ServerReflectionStub(running.channel)
        listing = reflection.ServerReflectionInfo(
            iter([reflection_pb2.ServerReflectionRequest(list_services="")])
        )
        assert await reason_of(listing.read) == "TOO_MANY_CALLS"
        reply = await stub.Check(health_pb2.HealthCheckRequest())
        assert reply.status == health_pb2.HealthCheckResponse.SERVING
        watches[0].cancel()
        await asyncio.sleep(0.2)
        assert await stub.Watch(health_pb2.HealthCheckRequest()).read()


async def test_what_is_open_to_everybody_does_not_last_for_ever() -> None:
    async with edge(gate=gate(open_stream_s=0.3)) as running:
        stub = health_pb2_grpc.HealthStub(running.channel)
        watch = stub.Watch(health_pb2.HealthCheckRequest())
        await watch.read()
        assert await reason_of(watch.read) == "STREAM_TOO_LONG"
        reflection = reflection_pb2_grpc.ServerReflectionStub(running.channel)
        assert await reason_of(reflection.ServerReflectionInfo().read) == "STREAM_TOO_LONG"


async def test_strangers_who_send_no_request_make_room_for_those_who_do() -> None:
    limits = gate(open_request_s=30, open_requests_max=3)
    async with edge(gate=limits) as running:
        await running.server.set_serving(True)
        held = []
        for _ in range(20):
            held.append(half_open(running, CHECK))
            await asyncio.sleep(0.02)
        for call in held[:17]:
            assert await reason_of(partial(_itself, call)) == "BAD_REQUEST"
        assert len(limits._open_requests) == 3
        stub = health_pb2_grpc.HealthStub(running.channel)
        for _ in range(5):
            reply = await stub.Check(health_pb2.HealthCheckRequest(), timeout=1)
            assert reply.status == health_pb2.HealthCheckResponse.SERVING
        for call in held[17:]:
            call.cancel()
        await asyncio.sleep(0.2)
    assert not limits._open_requests


async def test_nothing_is_counted_when_all_calls_are_over() -> None:
    limits = gate()
    async with edge(gate=limits) as running:
        await running.stub.SubmitAnswer(match_pb2.SubmitAnswerRequest(), metadata=bearer())
        await reason_of(raw(running, SUBMIT, b"\xff", bearer()))
        await reason_of(raw(running, PLAY, b"\xff", bearer()))
    assert not limits._calls
    assert not limits._streams
    assert limits._open_streams == 0
