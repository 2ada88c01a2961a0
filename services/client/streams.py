"""Server streams that go on by themselves after the connection, or the server, is lost."""

import time
from collections.abc import AsyncGenerator, Callable
from typing import TypeVar

import grpc.aio
from google.protobuf.message import Message

from services.client.calls import Caller
from services.client.retry import Patience, is_retriable
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
