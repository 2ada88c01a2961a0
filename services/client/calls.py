"""Unary calls with retries, and the opening of streams, for one caller on shared channels."""

from collections.abc import Callable
from typing import Generic, TypeVar

import grpc.aio
from google.protobuf.message import Message

from services.client.channels import Channels
from services.client.retry import RetryPolicy, retrying
from services.client.tokens import Credentials
from services.common.errors import ApiError, parse_error

StubT = TypeVar("StubT")
RequestT = TypeVar("RequestT", bound=Message)
ResponseT = TypeVar("ResponseT", bound=Message)


class Caller(Generic[StubT]):
    """Calls one gRPC service on behalf of one token holder."""

    def __init__(
        self,
        make_stub: Callable[[grpc.aio.Channel], StubT],
        channels: Channels,
        credentials: Credentials,
        policy: RetryPolicy,
    ) -> None:
        self.channels = channels
        self.credentials = credentials
        self.policy = policy
        self._make_stub = make_stub
        self._stubs: dict[str, StubT] = {}

    def stub(self, address: str) -> StubT:
        """The service's stub on the channel to `address`."""
        stub = self._stubs.get(address)
        if stub is None:
            stub = self._make_stub(self.channels.to(address))
            self._stubs[address] = stub
        return stub

    async def call(
        self,
        method: Callable[[StubT], grpc.aio.UnaryUnaryMultiCallable[RequestT, ResponseT]],
        request: RequestT,
    ) -> ResponseT:
        """Call `method` until it is answered; the request must be safe to repeat.

        Raises ApiError: the refusal, or the last failure when the policy's time is over.
        """
        used = ""

        async def attempt(seconds: float) -> ResponseT:
            nonlocal used
            used = self.channels.address
            metadata = await self.credentials.metadata()
            try:
                return await method(self.stub(used))(request, metadata=metadata, timeout=seconds)
            except grpc.aio.AioRpcError as error:
                raise parse_error(error) from error

        def failed(_: ApiError) -> None:
            self.channels.avoid(used)

        return await retrying(self.policy, attempt, failed)
