"""Passing calls on to the process that owns the match's partition, on behalf of the caller.

The caller's own token goes with the call, so the owner decides about it as if it had come directly.
"""

import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import grpc
import grpc.aio

from diceledger.match.v1 import match_pb2, match_pb2_grpc
from services.common.auth import Caller
from services.common.errors import Locale, StartupError
from services.common.settings import Settings
from services.match.commands import (
    Abandon,
    Create,
    Join,
    PlayerCommand,
    Reveal,
    SetStanding,
    Start,
    Submit,
    TakeAction,
)
from services.match.outcomes import Applied
from services.match.watch import RemoteFeed, passed_on

HOPS_KEY: Final = "diceledger-hops"
# A call that was passed on so often goes no further: the processes disagree about the owner.
HOPS_MAX: Final = 2
_CHANNELS_MAX: Final = 64
_CALL_TIMEOUT_S: Final = 20.0
_WATCH_METHOD: Final = "/diceledger.match.v1.MatchService/WatchMatch"
_OPTIONS: Final = (
    # Finds an owner that is frozen or cut off although the connection looks alive.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.use_local_subchannel_pool", 1),
)


@dataclass(frozen=True, slots=True)
class Origin:
    """Who makes a call, in which language, and how often it was passed on before."""

    caller: Caller
    locale: Locale = "en"
    hops: int = 0

    @property
    def may_go_on(self) -> bool:
        """Whether the call may be passed on once more."""
        return self.hops < HOPS_MAX

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Metadata of the call when it is passed on."""
        return (
            ("authorization", f"Bearer {self.caller.token}"),
            ("accept-language", self.locale),
            (HOPS_KEY, str(self.hops + 1)),
        )


def hops_of(context: Any) -> int:
    """How often the call was passed on before."""
    for key, value in context.invocation_metadata() or ():
        if key == HOPS_KEY:
            is_number = isinstance(value, str) and re.fullmatch("[0-9]{1,3}", value)
            return int(value) if is_number else HOPS_MAX
    return 0


class Forwarder:
    """Channels to the other match processes, opened when needed, the oldest closed."""

    def __init__(self, credentials: grpc.ChannelCredentials | None = None) -> None:
        """Without `credentials` the other processes are spoken to in plain text."""
        self._credentials = credentials
        self._channels: OrderedDict[str, grpc.aio.Channel] = OrderedDict()

    async def close(self) -> None:
        """Close all channels."""
        channels, self._channels = list(self._channels.values()), OrderedDict()
        for channel in channels:
            await channel.close()

    async def command(self, address: str, command: PlayerCommand, origin: Origin) -> Applied:
        """Let the process at `address` do it. Raises ApiError; NO_OWNER when it is not there."""
        stub: match_pb2_grpc.MatchServiceAsyncStub = match_pb2_grpc.MatchServiceStub(
            await self._channel(address)
        )
        options: dict[str, Any] = {"metadata": origin.metadata(), "timeout": _CALL_TIMEOUT_S}
        try:
            match command:
                case Create():
                    created = await stub.CreateMatch(command.request, **options)
                    return _applied(created.receipt, commitment=created.commitment)
                case Join():
                    joined = await stub.JoinMatch(command.request, **options)
                    return _applied(joined.receipt, seat=joined.seat)
                case Reveal():
                    return _applied((await stub.RevealEntropy(command.request, **options)).receipt)
                case Start():
                    return _applied((await stub.StartMatch(command.request, **options)).receipt)
                case Submit():
                    return _applied((await stub.SubmitAnswer(command.request, **options)).receipt)
                case TakeAction():
                    return _applied((await stub.TakeAction(command.request, **options)).receipt)
                case SetStanding():
                    done = await stub.SetStandingAnswer(command.request, **options)
                    return _applied(done.receipt)
                case Abandon():
                    return _applied((await stub.AbandonMatch(command.request, **options)).receipt)
        except grpc.aio.AioRpcError as error:
            raise passed_on(error) from error

    async def watch(
        self,
        address: str,
        match_id: str,
        from_sequence: int,
        origin: Origin,
        wake: Callable[[], None],
    ) -> RemoteFeed:
        """A watch that is served by the process at `address`."""
        channel = await self._channel(address)
        method: grpc.aio.UnaryStreamMultiCallable[match_pb2.WatchMatchRequest, bytes]
        method = channel.unary_stream(
            _WATCH_METHOD,
            request_serializer=match_pb2.WatchMatchRequest.SerializeToString,
            response_deserializer=bytes,
        )
        request = match_pb2.WatchMatchRequest(match_id=match_id, from_sequence=from_sequence)
        call = method(request, metadata=origin.metadata())
        return RemoteFeed(match_id, from_sequence, call, wake)

    async def _channel(self, address: str) -> grpc.aio.Channel:
        channel = self._channels.get(address)
        if channel is None:
            channel = self._open(address)
            self._channels[address] = channel
            if len(self._channels) > _CHANNELS_MAX:
                _, oldest = self._channels.popitem(last=False)
                await oldest.close()
        else:
            self._channels.move_to_end(address)
        return channel

    def _open(self, address: str) -> grpc.aio.Channel:
        if self._credentials is None:
            return grpc.aio.insecure_channel(address, options=_OPTIONS)
        return grpc.aio.secure_channel(address, self._credentials, options=_OPTIONS)


def peer_credentials(settings: Settings) -> grpc.ChannelCredentials | None:
    """How this process trusts the others and shows who it is; None: plain text.

    Raises StartupError when a file cannot be read.
    """
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    try:
        authorities = settings.tls_peer_ca.read_bytes() if settings.tls_peer_ca else None
        return grpc.ssl_channel_credentials(
            root_certificates=authorities,
            private_key=settings.tls_key.read_bytes(),
            certificate_chain=settings.tls_cert.read_bytes(),
        )
    except OSError as error:
        raise StartupError(f"A TLS file cannot be read: {error}.") from error


def _applied(receipt: match_pb2.Receipt, *, seat: int = 0, commitment: bytes = b"") -> Applied:
    return Applied(receipt.match_id, receipt.sequence, receipt.position, seat, commitment)
