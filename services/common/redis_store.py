"""Connection to the Redis of the read models: bounded timeouts, and errors that callers understand.

What is stored there is the projector's business.
"""

import asyncio
import builtins
import contextlib
import os
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any, Final

from redis.asyncio import (
    BlockingConnectionPool,
    Connection,
    Redis,
    SSLConnection,
    UnixDomainSocketConnection,
)
from redis.asyncio.connection import AbstractConnection, parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    ConnectionError,  # noqa: A004 - redis-py's own name
    NoPermissionError,
    RedisError,
    TimeoutError,  # noqa: A004 - redis-py's own name
)

from services.common.errors import StartupError, refuse
from services.common.logging import redacted

CONNECT_TIMEOUT_S: Final = 2.0
COMMAND_TIMEOUT_S: Final = 5.0
CONNECTIONS_MAX: Final = 64
_VERSION_LOW = (6, 0)
_TIMEOUTS = (TimeoutError, builtins.TimeoutError)


class _Cancellable(AbstractConnection):
    """A connection whose use can be cancelled at any moment.

    redis-py bounds its writing with asyncio.wait_for, which in Python 3.11 now and then swallows a
    cancellation (bpo-37658); the cancelled task would go on for ever.
    """

    async def send_packed_command(
        self, command: bytes | str | Iterable[bytes], check_health: bool = True
    ) -> None:
        """Send, within the socket's timeout."""
        limit, self.socket_timeout = self.socket_timeout, None
        try:
            async with asyncio.timeout(limit):
                await super().send_packed_command(command, check_health)
        except builtins.TimeoutError:
            raise TimeoutError("Timeout writing to socket") from None
        finally:
            self.socket_timeout = limit


class _Tcp(_Cancellable, Connection):
    pass


class _Tls(_Cancellable, SSLConnection):
    pass


class _Unix(_Cancellable, UnixDomainSocketConnection):
    pass


_CONNECTIONS: Final[dict[type, type]] = {
    Connection: _Tcp,
    SSLConnection: _Tls,
    UnixDomainSocketConnection: _Unix,
}


def connect_redis(
    url: str,
    *,
    connect_timeout_s: float = CONNECT_TIMEOUT_S,
    command_timeout_s: float = COMMAND_TIMEOUT_S,
    connections_max: int = CONNECTIONS_MAX,
) -> "Redis":
    """Return a client that answers bytes; nothing is opened before the first command.

    A command is sent a second time when its connection turns out to be dead: everything written
    here is compare-and-set, so a repetition changes nothing. Close it with `await redis.aclose()`.
    Raises StartupError for a URL that is none.
    """
    try:
        options: dict[str, Any] = dict(parse_url(url))
        kind = _CONNECTIONS[options.pop("connection_class", Connection)]
        pool = BlockingConnectionPool(
            connection_class=kind,
            timeout=command_timeout_s,
            max_connections=connections_max,
            socket_connect_timeout=connect_timeout_s,
            socket_timeout=command_timeout_s,
            health_check_interval=15,
            retry=Retry(NoBackoff(), 1),
            **options,
        )
    except ValueError as error:
        raise StartupError(f"The Redis URL {shown_url(url)} cannot be used: {error}.") from None
    return Redis.from_pool(pool)


async def check_redis(redis: "Redis", url: str) -> None:
    """Refuse to start (StartupError, one sentence) when Redis cannot be used."""
    try:
        information = await redis.info("server")
    except RedisError as error:
        raise StartupError(f"Redis at {shown_url(url)} {_why(error)}.") from None
    version = str(information.get("redis_version", "0"))
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if numbers < _VERSION_LOW:
        raise StartupError(f"Redis at {shown_url(url)} is version {version}; 6.0 is needed.")


@contextlib.contextmanager
def views_errors() -> Iterator[None]:
    """Around any use of Redis in a handler: trouble with it becomes ApiError VIEWS_UNAVAILABLE."""
    try:
        yield
    except RedisError as error:
        raise refuse("VIEWS_UNAVAILABLE") from error


@contextlib.asynccontextmanager
async def redis_client(url: str) -> AsyncIterator["Redis"]:
    """A checked connection for the length of the block."""
    redis = connect_redis(url)
    try:
        await check_redis(redis, url)
        yield redis
    finally:
        await redis.aclose()


def shown_url(url: str) -> str:
    """Return the URL without its password."""
    return redacted(url)


def _why(error: RedisError) -> str:
    if isinstance(error, AuthenticationError | NoPermissionError):
        return "refuses our user name or password"
    if isinstance(error, BusyLoadingError):
        return "is still loading its data"
    if any(isinstance(cause, _TIMEOUTS) for cause in _causes(error)):
        return "does not answer"
    if isinstance(error, ConnectionError):
        return f"cannot be reached: {_system_reason(error) or redacted(str(error)).rstrip('.')}"
    return f"cannot be used ({redacted(str(error)).rstrip('.')})"


def _system_reason(error: BaseException) -> str:
    """Return what the operating system said, without the library's words around it."""
    for cause in _causes(error):
        if isinstance(cause, OSError) and cause.errno:
            return os.strerror(cause.errno)
    return ""


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what led to it: the library wraps one into another."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
