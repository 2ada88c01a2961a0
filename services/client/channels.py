"""gRPC channels to one or several addresses of the same service, and which of them to use next."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc
import grpc.aio

_MEBIBYTE = 1024 * 1024

# Pings find a server that is frozen or cut off although the connection looks alive.
_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.max_pings_without_data", 0),
    # Pings that only measure bandwidth look like abuse to a server that is busy.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    # This is also how long one attempt to connect may take.
    ("grpc.min_reconnect_backoff_ms", 5_000),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.max_receive_message_length", 16 * _MEBIBYTE),
    # Two channels to one address must not share a broken connection.
    ("grpc.use_local_subchannel_pool", 1),
)


@dataclass(frozen=True, slots=True)
class Tls:
    """How to trust the server, and how to show who we are (mutual TLS)."""

    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None

    def credentials(self) -> grpc.ChannelCredentials:
        """Read the files. Raises OSError when one cannot be read."""
        return grpc.ssl_channel_credentials(
            root_certificates=_content(self.ca_file),
            private_key=_content(self.key_file),
            certificate_chain=_content(self.certificate_file),
        )


def _is_loopback(address: str) -> bool:
    host = address.rpartition(":")[0].strip("[]")
    return host == "localhost" or host == "::1" or host.startswith("127.")


def _content(path: Path | None) -> bytes | None:
    return None if path is None else path.read_bytes()


class Channels:
    """One channel for each address, opened when first used; one of them is the current one."""

    def __init__(self, addresses: Sequence[str], tls: Tls | None = None, first: int = 0) -> None:
        assert addresses, "a client needs at least one address"
        self._addresses = tuple(addresses)
        self._credentials = None if tls is None else tls.credentials()
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._current = first % len(self._addresses)

    @property
    def addresses(self) -> tuple[str, ...]:
        """All addresses, in the order in which they are tried."""
        return self._addresses

    @property
    def address(self) -> str:
        """The address in use."""
        return self._addresses[self._current]

    def current(self) -> grpc.aio.Channel:
        """The channel to the address in use."""
        return self.to(self.address)

    def to(self, address: str) -> grpc.aio.Channel:
        """The channel to one of the addresses."""
        channel = self._channels.get(address)
        if channel is None:
            channel = self._open(address)
            self._channels[address] = channel
        return channel

    def _open(self, address: str) -> grpc.aio.Channel:
        # A proxy of the environment is for the network, never for this very machine.
        proxied = ("grpc.enable_http_proxy", int(not _is_loopback(address)))
        options = (*_OPTIONS, proxied)
        if self._credentials is None:
            return grpc.aio.insecure_channel(address, options=options)
        return grpc.aio.secure_channel(address, self._credentials, options=options)

    def avoid(self, address: str) -> None:
        """A call over `address` failed: use the next one, unless that has happened already."""
        if self.address == address:
            self._current = (self._current + 1) % len(self._addresses)

    async def close(self) -> None:
        """Close all channels; calls under way end as cancelled."""
        channels, self._channels = list(self._channels.values()), {}
        for channel in channels:
            await channel.close()
