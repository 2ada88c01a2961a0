"""Refusals on their way to callers and back."""

import ast
import asyncio
import logging
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

import engine
import services
from diceledger.match.v1 import match_pb2
from services.common.errors import (
    DOMAIN,
    REASONS,
    ApiError,
    ErrorInterceptor,
    behaviour_of,
    from_refusal,
    from_status,
    locale_of,
    parse_error,
    refuse,
    to_status,
)
from tests.services.edge.serving import bearer, edge


class Refused(Exception):
    """Stands for the engine's Refusal."""

    reason = "ILLEGAL_ANSWER"
    field = "answer"
    legal: tuple[str, ...] = ("yes", "no")

    def message(self, locale: str) -> str:
        return "请回答是或否。" if locale == "zh" else "Say yes or no."


class Context:
    def __init__(self, *metadata: tuple[str, str]) -> None:
        self._metadata = metadata

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return self._metadata


async def failing_call(
    error: Exception, *metadata: tuple[str, str], stream: bool = False
) -> grpc.aio.AioRpcError:
    """What a caller gets when the handler raises `error`."""

    async def answering(request: Any, context: Any) -> Any:
        raise error

    async def streaming(request: Any, context: Any) -> Any:
        yield match_pb2.WatchMatchResponse()
        raise error

    async with edge() as running:
        running.service.answering, running.service.streaming = answering, streaming
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            if stream:
                call = running.stub.WatchMatch(
                    match_pb2.WatchMatchRequest(), metadata=(*bearer(), *metadata)
                )
                async for _ in call:
                    pass
            else:
                await running.stub.SubmitAnswer(
                    match_pb2.SubmitAnswerRequest(), metadata=(*bearer(), *metadata)
                )
    return caught.value


def test_every_reason_is_documented_in_both_languages() -> None:
    for name, row in REASONS.items():
        assert row.reason == name
        assert name == name.upper()
        assert row.meaning.endswith((".", ":", "-")), name
        assert row.meaning_zh.endswith("。"), name


@pytest.mark.parametrize("reason", sorted(REASONS))
def test_every_reason_survives_the_way_through_a_status(reason: str) -> None:
    error = refuse(reason, field="x", metadata={"a": "b"})
    back = from_status(to_status(error))
    assert (back.code, back.reason, back.message) == (error.code, reason, error.message)
    assert (back.field, back.metadata) == ("x", {"a": "b"})
    assert back.retryable == REASONS[reason].retry


def test_every_reason_that_the_services_name_is_in_the_table_with_its_code() -> None:
    """Reads the source: a reason that is raised somewhere but documented nowhere is a mistake."""
    root = Path(services.__file__).parent
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            texts = [a.value for a in node.args[:2] if isinstance(a, ast.Constant)]
            if node.func.id == "refuse" and texts:
                assert texts[0] in REASONS, f"{path}:{node.lineno}"
            if node.func.id == "ApiError" and len(texts) == 1 and len(node.args) > 1:
                code = node.args[0]
                assert texts[0] in REASONS, f"{path}:{node.lineno}"
                if isinstance(code, ast.Attribute):
                    assert code.attr == REASONS[str(texts[0])].code.name, f"{path}:{node.lineno}"


def test_every_refusal_of_the_rules_is_in_the_table() -> None:
    assert set(engine.REASONS) <= set(REASONS)


async def test_a_caller_gets_code_reason_and_the_field_to_blame() -> None:
    error = await failing_call(refuse("BAD_NAME", "Too long.", field="name"))
    status = rpc_status.from_call(error)
    assert status is not None
    info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    assert status.details[0].Unpack(info)
    assert status.details[1].Unpack(bad)
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert (info.reason, info.domain, error.details()) == ("BAD_NAME", DOMAIN, "Too long.")
    assert (bad.field_violations[0].field, bad.field_violations[0].reason) == ("name", "BAD_NAME")


async def test_a_stream_may_be_refused_after_it_has_begun() -> None:
    error = await failing_call(refuse("SLOW_WATCHER", metadata={"next": "7"}), stream=True)
    parsed = parse_error(error)
    assert (parsed.reason, parsed.metadata) == ("SLOW_WATCHER", {"next": "7"})
    assert parsed.retryable


async def test_a_refusal_of_the_rules_reaches_the_caller_with_the_legal_choices() -> None:
    parsed = parse_error(await failing_call(Refused()))
    assert parsed.code is grpc.StatusCode.INVALID_ARGUMENT
    assert (parsed.reason, parsed.field) == ("ILLEGAL_ANSWER", "answer")
    assert parsed.metadata == {"legal": "yes,no"}
    assert parsed.message == "Say yes or no."


async def test_who_asks_for_chinese_gets_chinese() -> None:
    error = await failing_call(Refused(), ("accept-language", "zh-CN,zh;q=0.9,en;q=0.5"))
    assert error.details() == "请回答是或否。"


@pytest.mark.parametrize(
    ("header", "locale"),
    [
        ("zh", "zh"),
        ("zh-Hant-TW", "zh"),
        ("en;q=0.3, zh;q=0.7", "zh"),
        ("fr, en;q=0.5, zh;q=0.1", "en"),
        ("zh;q=0", "en"),
        ("zh;q=rubbish", "en"),
        ("", "en"),
        (",;;=,", "en"),
    ],
)
def test_the_language_is_the_preferred_one_that_we_have(header: str, locale: str) -> None:
    assert locale_of(Context(("accept-language", header))) == locale


async def test_an_unexpected_exception_is_an_incident_that_tells_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR)
    parsed = parse_error(await failing_call(KeyError("the traitor is seat 3")))
    assert (parsed.code, parsed.reason) == (grpc.StatusCode.INTERNAL, "INTERNAL")
    assert "traitor" not in parsed.message
    assert parsed.metadata["incident"] in parsed.message
    assert parsed.metadata["incident"] in caplog.text


async def test_an_incident_in_a_stream_is_counted() -> None:
    async with edge() as running:

        async def streaming(request: Any, context: Any) -> Any:
            yield match_pb2.WatchMatchResponse()
            raise ZeroDivisionError

        running.service.streaming = streaming
        call = running.stub.WatchMatch(match_pb2.WatchMatchRequest(), metadata=bearer())
        with pytest.raises(grpc.aio.AioRpcError):
            async for _ in call:
                pass
        assert running.metrics.registry.get_sample_value("diceledger_incidents_total") == 1


class Unreachable(Context):
    """The connection is gone, or full for ever."""

    async def abort(self, *_: Any) -> None:
        raise grpc.aio.InternalError("no status can be sent")


@pytest.mark.parametrize(
    "error", [refuse("SLOW_WATCHER"), Refused(), grpc.aio.InternalError("no message can be sent")]
)
async def test_a_caller_out_of_reach_is_a_line_and_no_failure(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """A watcher that is cut off because it does not read cannot be told so either."""
    caplog.set_level(logging.INFO)

    async def unary(request: Any, context: Any) -> Any:
        raise error

    async def stream(request: Any, context: Any) -> None:
        raise error

    interceptor = ErrorInterceptor()
    handlers: tuple[grpc.RpcMethodHandler[Any, Any], ...] = (
        grpc.unary_unary_rpc_method_handler(unary),
        grpc.unary_stream_rpc_method_handler(stream),
    )
    for handler in handlers:
        guarded = behaviour_of(interceptor.wrap(handler, "/a/Method"))
        with pytest.raises(asyncio.CancelledError):
            await guarded(None, Unreachable())
    assert [record.levelname for record in caplog.records] == ["INFO", "INFO"]
    assert all("takes nothing any more" in record.message for record in caplog.records)


def test_control_characters_of_callers_are_escaped() -> None:
    hostile = "\x1b[31mred\n\u202e\x00é 中"
    error = refuse("BAD_NAME", hostile, field=hostile, metadata={"legal": hostile})
    status = to_status(error)
    back = from_status(status)
    shown = "\\x1b[31mred\\n\\u202e\\x00é 中"
    assert (back.message, back.field, back.metadata) == (shown, shown, {"legal": shown})
    # A server of somebody else's may not do it.
    status.message = hostile
    assert from_status(status).message == shown


async def test_a_message_above_one_mebibyte_is_refused_by_name() -> None:
    async with edge() as running:
        request = match_pb2.SubmitAnswerRequest(request_id="x" * 5_000_000)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await running.stub.SubmitAnswer(request, metadata=bearer())
        assert parse_error(caught.value).reason == "MESSAGE_TOO_LARGE"
        await running.stub.SubmitAnswer(match_pb2.SubmitAnswerRequest(), metadata=bearer())


async def test_a_server_that_is_not_there_is_a_lost_connection() -> None:
    async with edge() as running:
        await running.server.close(0)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await running.stub.SubmitAnswer(match_pb2.SubmitAnswerRequest(), metadata=bearer())
    parsed = parse_error(caught.value)
    assert (parsed.reason, parsed.retryable) == ("CONNECTION_LOST", True)


def test_a_reason_of_a_newer_server_is_kept() -> None:
    newer = ApiError(grpc.StatusCode.UNAVAILABLE, "MOON_IN_THE_WAY", "Wait.")
    back = from_status(to_status(newer))
    assert (back.reason, back.message, back.retryable) == ("MOON_IN_THE_WAY", "Wait.", True)


def test_a_very_long_message_is_cut_so_that_it_fits_into_trailing_metadata() -> None:
    status = to_status(from_refusal(_Long()))
    assert status.ByteSize() < 6_000


class _Long(Refused):
    legal = tuple(f"option-{n}" for n in range(1_000))

    def message(self, locale: str) -> str:
        return "x" * 100_000
