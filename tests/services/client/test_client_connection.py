"""How a client reaches its server: tokens, their sources, TLS."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from diceledger.match.v1 import match_pb2, match_pb2_grpc
from services.client import ApiError, RetryPolicy, Tls, connect, token_file
from services.client.channels import Channels
from services.client.tokens import Credentials
from tests.support.certificates import Authority

QUICK = RetryPolicy(total_s=1.0, attempt_s=2.0)


class Echo(match_pb2_grpc.MatchServiceServicer):
    """Notes what comes with each call."""

    def __init__(self) -> None:
        self.seen: list[dict[str, str]] = []

    async def ListGames(self, request: Any, context: Any) -> match_pb2.ListGamesResponse:  # noqa: N802
        self.seen.append(dict(context.invocation_metadata()))
        return match_pb2.ListGamesResponse()


@pytest.fixture
async def echo() -> Echo:
    return Echo()  # type: ignore[abstract]  # all other calls are UNIMPLEMENTED


@pytest.fixture
async def plain(echo: Echo) -> AsyncIterator[str]:
    server = grpc.aio.server()
    match_pb2_grpc.add_MatchServiceServicer_to_server(echo, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield f"127.0.0.1:{port}"
    await server.stop(0)


async def test_token_and_language_go_with_every_call(echo: Echo, plain: str) -> None:
    async with connect(plain, "secret", locale="zh", policy=QUICK) as client:
        await client.list_games()
        await client.for_token(None).list_games()
    assert echo.seen[0]["authorization"] == "Bearer secret"
    assert echo.seen[0]["accept-language"] == "zh"
    assert "authorization" not in echo.seen[1]
    assert echo.seen[1]["accept-language"] == "zh"


async def test_a_token_may_come_from_a_function_or_a_file_that_changes(
    echo: Echo, plain: str, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    tokens = iter(("one", "two"))

    async def renewed() -> str:
        return next(tokens)

    async with connect(plain, renewed, policy=QUICK) as client:
        await client.list_games()
        await client.list_games()
        file.write_text("three\n")
        from_file = client.for_token(token_file(file))
        await from_file.list_games()
        file.write_text("four")
        await from_file.list_games()
    shown = [each["authorization"] for each in echo.seen]
    assert shown == ["Bearer one", "Bearer two", "Bearer three", "Bearer four"]


def test_a_token_is_never_shown() -> None:
    assert "secret" not in repr(Credentials("secret"))


def test_a_lost_address_is_left_once_only() -> None:
    channels = Channels(["a:1", "b:1", "c:1"])
    channels.avoid("a:1")
    channels.avoid("a:1")
    assert channels.address == "b:1"
    channels.avoid("b:1")
    channels.avoid("c:1")
    assert channels.address == "a:1"


@pytest.fixture
async def secured(echo: Echo, tmp_path: Path) -> AsyncIterator[tuple[str, Authority]]:
    """A server that asks clients for certificates (mutual TLS)."""
    authority = Authority(tmp_path)
    cert, key = authority.issue("localhost")
    credentials = grpc.ssl_server_credentials(
        [(key.read_bytes(), cert.read_bytes())],
        root_certificates=authority.cert.read_bytes(),
        require_client_auth=True,
    )
    server = grpc.aio.server()
    match_pb2_grpc.add_MatchServiceServicer_to_server(echo, server)
    port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    yield f"localhost:{port}", authority
    await server.stop(0)


async def test_mutual_tls(echo: Echo, secured: tuple[str, Authority]) -> None:
    address, authority = secured
    cert, key = authority.issue("a client")
    tls = Tls(authority.cert, cert, key)
    async with connect(address, "secret", tls=tls, policy=QUICK) as client:
        await client.list_games()
    assert echo.seen[0]["authorization"] == "Bearer secret"
    async with connect(address, "secret", tls=Tls(authority.cert), policy=QUICK) as client:
        with pytest.raises(ApiError) as raised:
            await client.list_games()
    assert raised.value.reason == "CONNECTION_LOST"
    with pytest.raises(FileNotFoundError):
        connect(address, tls=Tls(Path("missing.pem")))
