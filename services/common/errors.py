"""Errors as callers see them: one table of reasons, and their way to and from gRPC statuses.

A service refuses by raising `ApiError`; the interceptor here turns it into a status with
google.rpc.ErrorInfo (and BadRequest where a field is to blame), and hides everything unexpected
behind an incident id. Which command is refused when is not decided here.
"""

import abc
import asyncio
import inspect
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final, Literal, NoReturn, Protocol, runtime_checkable

import grpc
import grpc.aio
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from services.common.reasons import REASONS, Locale, Reason

__all__ = [
    "DOMAIN",
    "REASONS",
    "ApiError",
    "ErrorInterceptor",
    "Locale",
    "Reason",
    "StartupError",
    "abort",
    "from_refusal",
    "from_status",
    "locale_of",
    "parse_error",
    "refuse",
    "to_status",
]

DOMAIN = "diceledger"
_DETAILS_KEY = "grpc-status-details-bin"
# Trailing metadata of 8 KiB is what HTTP/2 peers accept by default; two copies of the text go in.
_MESSAGE_MAX = 1000
_LEGAL_MAX = 1000
_CODES = {code.value[0]: code for code in grpc.StatusCode}

_log = logging.getLogger("diceledger.errors")


class StartupError(Exception):
    """The process cannot start or go on; the text is one sentence for the person at the shell."""


class ApiError(Exception):
    """A refusal that the caller may read: status code, reason (UPPER_SNAKE), message in English.

    `field` names the request field that is to blame; `metadata` goes into ErrorInfo; `message_zh`
    is shown instead to callers who ask for Chinese (default: the reason's general text).
    """

    def __init__(
        self,
        code: grpc.StatusCode,
        reason: str,
        message: str = "",
        field: str | None = None,
        metadata: Mapping[str, str] | None = None,
        *,
        message_zh: str = "",
    ) -> None:
        row = REASONS.get(reason)
        self.code = code
        self.reason = reason
        self.message = message or (row.meaning if row else reason)
        self.message_zh = message_zh or (row.meaning_zh if row else "")
        self.field = field or None
        self.metadata: dict[str, str] = dict(metadata or {})
        super().__init__(f"{reason}: {self.message}")

    @property
    def retryable(self) -> bool:
        """Whether the same request, with the same request id, may simply be sent again."""
        row = REASONS.get(self.reason)
        return row.retry if row else self.code is grpc.StatusCode.UNAVAILABLE

    def text(self, locale: Locale) -> str:
        """Return the message for people; English where there is no Chinese one."""
        return (self.message_zh or self.message) if locale == "zh" else self.message


def refuse(
    reason: str,
    message: str = "",
    *,
    field: str | None = None,
    metadata: Mapping[str, str] | None = None,
    message_zh: str = "",
) -> ApiError:
    """Return the ApiError of a reason of the table, with the table's code.

    Raises KeyError for a reason that the table lacks: every reason is documented there.
    """
    code = REASONS[reason].code
    return ApiError(code, reason, message, field, metadata, message_zh=message_zh)


@runtime_checkable
class _Refusal(Protocol):
    """What the engine's Refusal offers; named here so that clients need not load the rules."""

    reason: str
    field: str
    legal: tuple[str, ...]

    def message(self, locale: Literal["en", "zh"]) -> str: ...


def from_refusal(refusal: _Refusal) -> ApiError:
    """Translate the engine's refusal; its legal choices go into the metadata `legal`."""
    row = REASONS.get(refusal.reason)
    code = row.code if row else grpc.StatusCode.FAILED_PRECONDITION
    metadata: dict[str, str] = {}
    if refusal.legal:
        metadata["legal"] = ",".join(refusal.legal)[:_LEGAL_MAX]
    return ApiError(
        code,
        refusal.reason,
        refusal.message("en"),
        refusal.field,
        metadata,
        message_zh=refusal.message("zh"),
    )


def to_status(error: ApiError, locale: Locale = "en") -> status_pb2.Status:
    """Return the google.rpc.Status of an error: for the Play stream and for trailing metadata."""
    message = _printable(error.text(locale))[:_MESSAGE_MAX]
    metadata = {name: _printable(value) for name, value in error.metadata.items()}
    info = error_details_pb2.ErrorInfo(reason=error.reason, domain=DOMAIN, metadata=metadata)
    details = [_packed(info)]
    if error.field is not None:
        violation = error_details_pb2.BadRequest.FieldViolation(
            field=_printable(error.field), description=message, reason=error.reason
        )
        details.append(_packed(error_details_pb2.BadRequest(field_violations=[violation])))
    return status_pb2.Status(code=error.code.value[0], message=message, details=details)


def _printable(text: str) -> str:
    """The text with control characters escaped: refusals quote what callers sent."""
    if text.isprintable():
        return text
    return "".join([each if each.isprintable() else ascii(each)[1:-1] for each in text])


def from_status(status: status_pb2.Status) -> ApiError:
    """Read an error back from a google.rpc.Status; one without ErrorInfo gets its code's reason."""
    code = _CODES.get(status.code, grpc.StatusCode.UNKNOWN)
    reason, metadata, field_name = "", {}, None
    for detail in status.details:
        info = error_details_pb2.ErrorInfo()
        bad = error_details_pb2.BadRequest()
        if detail.Unpack(info) and info.domain == DOMAIN:
            reason, metadata = info.reason, dict(info.metadata)
        elif detail.Unpack(bad) and bad.field_violations:
            field_name = bad.field_violations[0].field
    return ApiError(
        code,
        reason or _transport_reason(code, status.message),
        _printable(status.message),
        field_name,
        metadata,
    )


def parse_error(error: grpc.RpcError) -> ApiError:
    """Read what a failed call says; a failure of the transport gets a reason of its own."""
    # Every error of a finished call is a call too; the base class just does not say so.
    call: Any = error
    if not hasattr(call, "trailing_metadata"):
        return ApiError(grpc.StatusCode.UNKNOWN, grpc.StatusCode.UNKNOWN.name, str(error))
    code, details = call.code(), call.details() or ""
    for key, value in call.trailing_metadata() or ():
        if key == _DETAILS_KEY and isinstance(value, bytes):
            return from_status(status_pb2.Status.FromString(value))
    return ApiError(code, _transport_reason(code, details), details)


def locale_of(context: Any) -> Locale:
    """Return the language that the caller prefers of ours (metadata `accept-language`)."""
    for key, value in context.invocation_metadata() or ():
        if key == "accept-language" and isinstance(value, str):
            return _preferred(value)
    return "en"


async def abort(context: Any, error: ApiError) -> NoReturn:
    """End the call with the error's status, details and message in the caller's language."""
    status = rpc_status.to_status(to_status(error, locale_of(context)))
    await context.abort(status.code, status.details, status.trailing_metadata)
    raise AssertionError("abort returned")


class WrappingInterceptor(grpc.aio.ServerInterceptor):
    """An interceptor that wraps handlers, each once: calls come by the thousand per second."""

    def __init__(self) -> None:
        """Nothing is wrapped yet."""
        self._wrapped: dict[str, tuple[Any, Any]] = {}

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """Return the wrapped handler of the call; None for a method that nobody serves."""
        method = handler_call_details.method
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        known, wrapped = self._wrapped.get(method, (None, None))
        if known is not handler:
            wrapped = self.wrap(handler, method)
            self._wrapped[method] = (handler, wrapped)
        return wrapped

    @abc.abstractmethod
    def wrap(self, handler: Any, method: str) -> Any:
        """Return the RPC method handler to use in place of `handler`; `method` is its full path."""


class ErrorInterceptor(WrappingInterceptor):
    """Outermost: ApiError and refusals become statuses, all else an INTERNAL incident."""

    def __init__(self, on_incident: Callable[[], None] = lambda: None) -> None:
        """`on_incident` is called once per unexpected exception (for a metric)."""
        super().__init__()
        self._on_incident = on_incident

    def wrap(self, handler: Any, method: str) -> Any:
        """Catch what the handler raises."""
        return replace_behaviour(handler, lambda inner: self._guarded(inner, handler, method))

    def _guarded(self, inner: Callable[..., Any], handler: Any, method: str) -> Callable[..., Any]:
        async def unary(request: Any, context: Any) -> Any:
            try:
                return await inner(request, context)
            except Exception as error:
                await self._end(context, error, method)

        async def stream(request: Any, context: Any) -> None:
            try:
                await run_stream(inner, request, context)
            except Exception as error:
                await self._end(context, error, method)

        return stream if handler.response_streaming else unary

    async def _end(self, context: Any, error: Exception, method: str) -> NoReturn:
        if isinstance(error, grpc.aio.AbortError):
            raise error
        if isinstance(error, grpc.aio.InternalError):
            raise _out_of_reach(method, "a message") from None
        told = self._told(error, method)
        try:
            await abort(context, told)
        except grpc.aio.InternalError:
            raise _out_of_reach(method, told.reason) from None

    def _told(self, error: Exception, method: str) -> ApiError:
        if isinstance(error, ApiError):
            return error
        if isinstance(error, _Refusal):
            return from_refusal(error)
        self._on_incident()
        return incident(error, method)


def _out_of_reach(method: str, what: str) -> asyncio.CancelledError:
    """What ends a call that takes nothing any more: nobody reads, or the connection is gone.

    Any other exception would be logged by gRPC as a failure of ours.
    """
    _log.info("%s of %s: the caller takes nothing any more", what, method)
    return asyncio.CancelledError()


def incident(error: BaseException, where: str) -> ApiError:
    """Log an unexpected exception under a new incident id; return what the caller may know."""
    number = secrets.token_hex(6)
    _log.error("unexpected failure in %s, incident %s", where, number, exc_info=error)
    return refuse(
        "INTERNAL",
        f"Something went wrong on our side; incident {number}.",
        metadata={"incident": number},
        message_zh=f"服务器内部出错，事件编号 {number}。",
    )


def replace_behaviour(
    handler: Any, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Any:
    """Return the RPC method handler with its behaviour wrapped, whichever of the four kinds."""
    build = _BUILDERS[handler.request_streaming, handler.response_streaming]
    return build(
        wrap(behaviour_of(handler)),
        request_deserializer=handler.request_deserializer,
        response_serializer=handler.response_serializer,
    )


def behaviour_of(handler: Any) -> Callable[..., Any]:
    """Return what the RPC method handler does."""
    request = "stream" if handler.request_streaming else "unary"
    response = "stream" if handler.response_streaming else "unary"
    behaviour: Callable[..., Any] = getattr(handler, f"{request}_{response}")
    return behaviour


# By whether requests and responses are streams.
_BUILDERS: Final[dict[tuple[bool, bool], Callable[..., Any]]] = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, False): grpc.stream_unary_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}


async def run_stream(inner: Callable[..., Any], request: Any, context: Any) -> None:
    """Run a streaming handler of either style: async generator, or coroutine that writes itself."""
    if not inspect.isasyncgenfunction(inner):
        await inner(request, context)
        return
    responses: AsyncIterator[Any] = inner(request, context)
    try:
        async for response in responses:
            await context.write(response)
    finally:
        # Its clean-up must run now, not when the garbage collector finds it.
        await responses.aclose()  # type: ignore[attr-defined]  # async generators have it


def _packed(message: Any) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(message)
    return packed


def _transport_reason(code: grpc.StatusCode, details: str) -> str:
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED and "larger than max" in details:
        return "MESSAGE_TOO_LARGE"
    return "CONNECTION_LOST" if code is grpc.StatusCode.UNAVAILABLE else code.name


def _preferred(header: str) -> Locale:
    """Pick from an Accept-Language value; malformed weights count as 0."""
    best: Locale = "en"
    best_weight = 0.0
    for part in header.split(",")[:10]:
        tag, _, parameter = part.strip().lower().partition(";")
        weight = _weight(parameter)
        language = tag.strip().partition("-")[0]
        if weight > best_weight and language in ("en", "zh"):
            best, best_weight = ("zh" if language == "zh" else "en"), weight
    return best


def _weight(parameter: str) -> float:
    name, _, value = parameter.strip().partition("=")
    if not name:
        return 1.0
    try:
        return float(value) if name == "q" else 1.0
    except ValueError:
        return 0.0
