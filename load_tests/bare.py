"""The bare transport: what grpc.aio alone carries here, with our messages and none of our work.

Run as a server in a process of its own (``python -m load_tests.bare PORT``); `unary_rate` and
`stream_rate` measure it from the caller's process. The figures are the yardstick for everything
else: results are ratios to them, taken in the same run.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator

import grpc

from diceledger.match.v1 import match_pb2

_SERVICE = "diceledger.loadtest.Bare"


def _request() -> match_pb2.SubmitAnswerRequest:
    return match_pb2.SubmitAnswerRequest(
        request_id="r-00000000000000000001",
        match_id="abcdefghijklmnopqrstuvwxyz",
        prompt_id="p123",
        answer=match_pb2.Answer(selection=match_pb2.Selection(options=["die:1", "die:4"])),
    )


def _reply(request: match_pb2.SubmitAnswerRequest) -> match_pb2.SubmitAnswerResponse:
    receipt = match_pb2.Receipt(match_id=request.match_id, sequence=77, position="3:123456")
    return match_pb2.SubmitAnswerResponse(receipt=receipt)


async def _unary(
    request: match_pb2.SubmitAnswerRequest, context: object
) -> match_pb2.SubmitAnswerResponse:
    return _reply(request)


async def _stream(
    requests: AsyncIterator[match_pb2.SubmitAnswerRequest], context: object
) -> AsyncIterator[match_pb2.SubmitAnswerResponse]:
    async for request in requests:
        yield _reply(request)


async def serve(port: int) -> None:
    """Serve the two echoes on the loopback address; port 0: any free one, which is printed."""
    server = grpc.aio.server()
    decode = match_pb2.SubmitAnswerRequest.FromString
    encode = match_pb2.SubmitAnswerResponse.SerializeToString
    handlers = {
        "Unary": grpc.unary_unary_rpc_method_handler(
            _unary, request_deserializer=decode, response_serializer=encode
        ),
        "Stream": grpc.stream_stream_rpc_method_handler(
            _stream, request_deserializer=decode, response_serializer=encode
        ),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, handlers),))
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    print(bound, flush=True)
    await server.wait_for_termination()


async def unary_rate(address: str, seconds: float, in_flight: int) -> float:
    """Unary echoes per second with `in_flight` calls open at any time, over `seconds`."""
    async with grpc.aio.insecure_channel(address) as channel:
        call = channel.unary_unary(
            f"/{_SERVICE}/Unary",
            request_serializer=match_pb2.SubmitAnswerRequest.SerializeToString,
            response_deserializer=match_pb2.SubmitAnswerResponse.FromString,
        )
        await channel.channel_ready()
        end = time.perf_counter() + seconds
        done = 0

        async def caller() -> None:
            nonlocal done
            while time.perf_counter() < end:
                await call(_request())
                done += 1

        start = time.perf_counter()
        await asyncio.gather(*(caller() for _ in range(in_flight)))
        return done / (time.perf_counter() - start)


async def stream_rate(address: str, seconds: float, in_flight: int) -> float:
    """Messages per second echoed on one two-way stream with a window of `in_flight` messages."""
    async with grpc.aio.insecure_channel(address) as channel:
        call = channel.stream_stream(
            f"/{_SERVICE}/Stream",
            request_serializer=match_pb2.SubmitAnswerRequest.SerializeToString,
            response_deserializer=match_pb2.SubmitAnswerResponse.FromString,
        )
        await channel.channel_ready()
        stream = call()
        window = asyncio.Semaphore(in_flight)
        start = time.perf_counter()
        done = 0

        async def writer() -> None:
            while time.perf_counter() < start + seconds:
                await window.acquire()
                await stream.write(_request())
            await stream.done_writing()

        writing = asyncio.create_task(writer())
        async for _ in stream:
            done += 1
            window.release()
        await writing
        return done / (time.perf_counter() - start)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
