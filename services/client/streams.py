"""Server streams that go on by themselves after the connection, or the server, is lost."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TypeVar

import grpc.aio
from google.protobuf.message import Message

from diceledger.match.v1 import match_pb2, match_pb2_grpc
from services.client.calls import Caller
from services.client.retry import Patience, is_retriable
from services.client.updates import MatchUpdate, UpdateReader
from services.common.errors import parse_error, refuse

StubT = TypeVar("StubT")
RequestT = TypeVar("RequestT", bound=Message)
ResponseT = TypeVar("ResponseT", bound=Message)

# A stream that lasted this long was in order, even when it had nothing to say.
_IN_ORDER_S = 5.0


async def resumed(
    caller: Caller[StubT],
    method: Callable[[StubT], grpc.aio.UnaryStreamMultiCallable[RequestT, ResponseT]],
    request: Callable[[], RequestT],
    is_complete: Callable[[], bool],
) -> AsyncGenerator[ResponseT, None]:
    """Responses of `method`, opened again with a new `request()` until `is_complete()`.

    The request says where to go on. Raises ApiError when the server refuses for good, or when it
    could not be reached for as long as the caller's policy allows.
    """
    patience = Patience(caller.policy)
    while not is_complete():
        address = caller.channels.address
        metadata = await caller.credentials.metadata()
        opened = time.monotonic()
        call = method(caller.stub(address))(request(), metadata=metadata)
        try:
            async for response in call:
                patience.restart()
                yield response
            failure = refuse("CONNECTION_LOST", "The stream ended early.")
        except grpc.aio.AioRpcError as error:
            failure = parse_error(error)
        finally:
            call.cancel()
        if is_complete():
            return
        if not is_retriable(failure):
            raise failure
        if time.monotonic() - opened > _IN_ORDER_S:
            patience.restart()
        caller.channels.avoid(address)
        await patience.pause(failure)


async def watched(
    caller: Caller[match_pb2_grpc.MatchServiceAsyncStub], reader: UpdateReader
) -> AsyncGenerator[MatchUpdate, None]:
    """The updates that `reader` reads of its match, to its end.

    Raises ChainBroken, and what `resumed` raises.
    """

    def request() -> match_pb2.WatchMatchRequest:
        return match_pb2.WatchMatchRequest(
            match_id=reader.match_id, from_sequence=reader.next_sequence
        )

    responses = resumed(caller, lambda stub: stub.WatchMatch, request, lambda: reader.is_finished)
    async with aclosing(responses):
        async for response in responses:
            update = reader.read(response.update)
            if update is not None:
                yield update
