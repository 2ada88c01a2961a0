"""The gate of every gRPC server: who comes in, with how many calls, for how long, with what.

Nobody may hold places without a token: the token is checked before the request is read, health
checks and reflection (open to everybody) are few and short, and a request that does not arrive,
or is no message, ends its call.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

import grpc
import grpc.aio

from services.common.auth import Verifier, bearer, set_caller
from services.common.errors import WrappingInterceptor, behaviour_of, refuse, run_stream

# Open to everybody: they tell nothing about any match.
_OPEN_SERVICES: Final = ("/grpc.health.v1.Health/", "/grpc.reflection.")
_OPEN_STREAMS_MAX: Final = 200
_OPEN_STREAM_S: Final = 300.0
_CALLS_PER_CALLER_MAX: Final = 2_000
# How long a caller may take to send the request after the call was opened.
_REQUEST_S: Final = 10.0
# The same for what is open to everybody, and how many calls may be that far at a time.
_OPEN_REQUEST_S: Final = 2.0
_OPEN_REQUESTS_MAX: Final = 200


class Gate(WrappingInterceptor):
    """Authenticates every call but health and reflection, reads its request, and counts it.

    Streams end when the token expires, or when the server wants them to.
    """

    def __init__(
        self,
        verifier: Verifier | None,
        *,
        calls_per_caller_max: int = _CALLS_PER_CALLER_MAX,
        open_streams_max: int = _OPEN_STREAMS_MAX,
        open_stream_s: float = _OPEN_STREAM_S,
        request_s: float = _REQUEST_S,
        open_request_s: float = _OPEN_REQUEST_S,
        open_requests_max: int = _OPEN_REQUESTS_MAX,
    ) -> None:
        """`verifier` decides which tokens are good; without it only what is open is served."""
        super().__init__()
        self._verifier = verifier
        self._calls_per_caller_max = calls_per_caller_max
        self._open_streams_max = open_streams_max
        self._open_stream_s = open_stream_s
        self._request_s = request_s
        self._open_request_s = open_request_s
        self._open_requests_max = open_requests_max
        # Calls of strangers whose request has not arrived, the oldest first; a dict for its order.
        self._open_requests: dict[asyncio.Timeout, None] = {}
        self._calls: Counter[str] = Counter()
        self._open_streams = 0
        self._streams: set[asyncio.Timeout] = set()
        self._ending = False

    def end_streams(self) -> None:
        """End every open stream with SHUTTING_DOWN, and those that are still to come."""
        self._ending = True
        for limit in self._streams:
            if not limit.expired():
                limit.reschedule(asyncio.get_running_loop().time())

    def wrap(self, handler: Any, method: str) -> Any:
        """Return a handler that gRPC calls before any request has arrived, whatever its kind."""
        build = (
            grpc.stream_stream_rpc_method_handler
            if handler.response_streaming
            else grpc.stream_unary_rpc_method_handler
        )
        decode = handler.request_deserializer
        return build(
            self._behaviour(handler, is_open=method.startswith(_OPEN_SERVICES)),
            request_deserializer=_strict(decode) if handler.request_streaming else None,
            response_serializer=handler.response_serializer,
        )

    def _behaviour(self, handler: Any, *, is_open: bool) -> Callable[..., Any]:
        inner = behaviour_of(handler)
        decode = _strict(handler.request_deserializer)

        async def request_of(requests: Any, context: Any) -> Any:
            if handler.request_streaming:
                return requests
            return await self._read(decode, context, is_open=is_open)

        async def unary(requests: Any, context: Any) -> Any:
            with contextlib.nullcontext() if is_open else self._caller(context):
                return await inner(await request_of(requests, context), context)

        async def stream(requests: Any, context: Any) -> None:
            with self._anybody() if is_open else self._caller(context) as lifetime_s:
                request = await request_of(requests, context)
                late = "STREAM_TOO_LONG" if is_open else "TOKEN_EXPIRED"
                await self._limited(inner, request, context, lifetime_s, late)

        return stream if handler.response_streaming else unary

    @contextlib.contextmanager
    def _caller(self, context: Any) -> Iterator[float]:
        """Let a caller with a good token in; gives the seconds until it expires."""
        assert self._verifier is not None, "a service without authentication"
        who = self._verifier.verify(bearer(context))
        if self._calls[who.subject] >= self._calls_per_caller_max:
            raise refuse("TOO_MANY_CALLS")
        self._calls[who.subject] += 1
        try:
            set_caller(who)
            yield self._verifier.remaining_s(who)
        finally:
            self._calls[who.subject] -= 1
            if not self._calls[who.subject]:
                del self._calls[who.subject]

    @contextlib.contextmanager
    def _anybody(self) -> Iterator[float]:
        """Let anybody in for a stream, a few at a time; gives the seconds that it may last."""
        if self._open_streams >= self._open_streams_max:
            raise refuse("TOO_MANY_CALLS")
        self._open_streams += 1
        try:
            yield self._open_stream_s
        finally:
            self._open_streams -= 1

    async def _read(self, decode: Callable[[bytes], Any], context: Any, *, is_open: bool) -> Any:
        """Return the call's one request; BAD_REQUEST when it does not come, or is no message."""
        limit = asyncio.timeout(self._open_request_s if is_open else self._request_s)
        try:
            async with limit:
                if is_open:
                    self._make_room()
                    self._open_requests[limit] = None
                data = await context.read()
        except TimeoutError:
            raise refuse("BAD_REQUEST", "The request did not arrive in time.") from None
        finally:
            self._open_requests.pop(limit, None)
        if data is grpc.aio.EOF:
            raise refuse("BAD_REQUEST", "The call has no request.")
        return decode(data)

    def _make_room(self) -> None:
        """End the waiting of the strangers who have waited longest, where there are too many.

        Not of the newest: honest callers send the request at once, and shall not be kept out.
        """
        while len(self._open_requests) >= self._open_requests_max:
            oldest = next(iter(self._open_requests))
            del self._open_requests[oldest]
            if not oldest.expired():
                oldest.reschedule(asyncio.get_running_loop().time())

    async def _limited(
        self, inner: Callable[..., Any], request: Any, context: Any, lifetime_s: float, late: str
    ) -> None:
        """Run a streaming handler for so many seconds; `late` is the reason of what comes then."""
        limit = asyncio.timeout(0 if self._ending else lifetime_s)
        try:
            async with limit:
                self._streams.add(limit)
                await run_stream(inner, request, context)
        except TimeoutError:
            if limit.expired():
                raise refuse("SHUTTING_DOWN" if self._ending else late) from None
            raise
        finally:
            self._streams.discard(limit)


def _strict(decode: Callable[[bytes], Any] | None) -> Callable[[bytes], Any]:
    """Return a decoder that refuses (BAD_REQUEST) what is no message of the right kind."""

    def decoded(data: bytes) -> Any:
        try:
            return data if decode is None else decode(data)
        # Whatever the library raises on bytes of a stranger's choice.
        except Exception:
            raise refuse("BAD_REQUEST", "The request is no message of the right kind.") from None

    return decoded
