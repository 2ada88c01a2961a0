"""What every serving process is made of: log, Redis, nodes, the gRPC port and the metrics port.

Used by `serve` (one node per process, Kafka) and by the embedded mode (all nodes, SQLite). The
order of opening and closing is decided here and nowhere else.
"""

import asyncio
import contextlib
import gc
import logging
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, runtime_checkable

from diceledger.match.v1 import match_pb2
from diceledger.replay.v1 import replay_pb2
from engine import catalogue
from services.cli.collector import collect_seldom
from services.common.auth import Verifier
from services.common.errors import StartupError
from services.common.log import LogError
from services.common.metrics import Metrics, MetricsServer
from services.common.server import GrpcServer, Tls
from services.common.settings import Address, Settings

MATCH_SERVICE: Final = match_pb2.DESCRIPTOR.services_by_name["MatchService"].full_name
REPLAY_SERVICE: Final = replay_pb2.DESCRIPTOR.services_by_name["ReplayService"].full_name
_HEARTBEAT_S = 0.5
_STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
# A loop that stood still for so long serves nobody, whatever it would say of itself.
_STALLED_S = 5.0

_log = logging.getLogger("diceledger.process")


class Node(Protocol):
    """A service's core: match, projector, replay."""

    async def start(self) -> None:
        """Begin to work."""

    async def close(self) -> None:
        """Finish what is begun, and let go."""


@runtime_checkable
class ServingNode(Protocol):
    """A node that answers gRPC calls."""

    def register(self, server: Any) -> None:
        """Add its services to a grpc.aio.Server."""


@runtime_checkable
class FailingNode(Protocol):
    """A node that may break down for good while it runs."""

    async def failed(self) -> str:
        """Wait until that happens; return the reason, a sentence."""


# Makes the nodes once it is known where the process listens; by then settings have the address.
Builder = Callable[[Settings], Sequence[Node]]


@contextlib.asynccontextmanager
async def serving(
    settings: Settings, metrics: Metrics, services: Sequence[str], build: Builder
) -> AsyncIterator["Serving"]:
    """Serve nodes for the length of the block.

    Raises StartupError for whatever keeps the process from starting. At the end: no longer
    healthy, nodes finish, calls drain, ports close.
    """
    keys = settings.token_keys()
    verifier = (
        Verifier(keys, issuer=settings.token_issuer, audience=settings.token_audience)
        if keys
        else None
    )
    server = GrpcServer(
        settings.listen,
        services=services,
        metrics=metrics,
        verifier=verifier,
        tls=Tls.of(settings),
        streams_max=settings.streams_max,
    )
    pulse = _Pulse()
    async with contextlib.AsyncExitStack() as stack:
        address = server.bind()
        stack.push_async_callback(server.close, settings.drain_s)
        scraped = MetricsServer(metrics, *settings.metrics_listen, pulse.is_good)
        stack.callback(scraped.close)
        settings = replace(
            settings,
            listen=address,
            advertise=settings.advertise or address,
            metrics_listen=Address(scraped.host, scraped.port),
        )
        nodes = build(settings)
        for node in nodes:
            if isinstance(node, ServingNode):
                node.register(server.server)
        await server.start()
        for node in nodes:
            await node.start()
            stack.push_async_callback(node.close)
        watching = asyncio.create_task(pulse.keep(server, nodes), name="pulse")
        stack.push_async_callback(_cancelled, watching)
        await server.set_serving(True)
        try:
            yield Serving(settings, nodes)
        finally:
            pulse.stop()
            await server.set_serving(False)


@dataclass(frozen=True)
class Serving:
    """A process that serves."""

    # With the real ports.
    settings: Settings
    nodes: Sequence[Node]
    # What else may break down.
    others: Sequence[FailingNode] = ()

    async def failed(self) -> str:
        """Wait until a node breaks down for good; return the reason, a sentence."""
        failing = [node.failed for node in self.nodes if isinstance(node, FailingNode)]
        return await first_of(*failing, *(other.failed for other in self.others))


async def first_of(*failures: Callable[[], Awaitable[str]]) -> str:
    """Return what the first of them says; without any, wait for ever."""
    tasks = [asyncio.ensure_future(failure()) for failure in failures]
    try:
        if not tasks:
            await asyncio.Event().wait()
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return done.pop().result()
    finally:
        for task in tasks:
            task.cancel()


async def run_until(stop: "Stop", *failures: Callable[[], Awaitable[str]]) -> None:
    """Wait until the process shall stop; StartupError when something breaks down before."""

    stop.ready()

    async def stopped() -> str:
        await stop.wait()
        return ""

    reason = await first_of(stopped, *failures)
    if reason:
        raise StartupError(reason)


class _Pulse:
    """Whether the process is well: its nodes say so, and its event loop is not stuck."""

    def __init__(self) -> None:
        self._healthy = False
        self._beat = time.monotonic()
        self._stopping = False

    def is_good(self) -> bool:
        """Asked from the metrics server's threads."""
        return self._healthy and time.monotonic() - self._beat < _STALLED_S

    def stop(self) -> None:
        """Be well no more."""
        self._stopping = True
        self._healthy = False

    async def keep(self, server: GrpcServer, nodes: Sequence[Node]) -> None:
        """Beat until cancelled, and tell health checks when the nodes' health changes."""
        told = True
        self._healthy = True
        while not self._stopping:
            self._beat = time.monotonic()
            healthy = all(getattr(node, "healthy", True) for node in nodes)
            if healthy is not told:
                told = self._healthy = healthy
                _log.warning("this process is %s", "healthy again" if healthy else "not healthy")
                await server.set_serving(healthy)
            await asyncio.sleep(_HEARTBEAT_S)


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


@contextlib.contextmanager
def log_errors() -> Iterator[None]:
    """Around the opening of a log: what it says becomes the StartupError's sentence."""
    try:
        yield
    except LogError as error:
        raise StartupError(sentence(str(error))) from error


def calm_collector() -> None:
    """Let the collector look less often, and never at what was there at the start.

    For whole processes only, once they have loaded.
    """
    gc.collect()
    gc.freeze()
    collect_seldom()


def load_games() -> None:
    """Load the rules of every game now: the first command shall not have to wait for it.

    Raises StartupError when they cannot be loaded; then nothing could be served.
    """
    try:
        catalogue()
    except Exception as error:
        raise StartupError(
            f"The games cannot be loaded: {type(error).__name__}: {error}."
        ) from error


def sentence(text: str) -> str:
    """Return the text with a capital letter and a full stop."""
    text = " ".join(text.split()) or "something went wrong"
    return text[0].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def run_service(work: Coroutine[Any, Any, None]) -> None:
    """Run a process to its end; KeyboardInterrupt when it was stopped before it served."""
    try:
        asyncio.run(work)
    except _BrokenOff:
        raise KeyboardInterrupt from None


class _BrokenOff(Exception):
    """The process was to end while it was starting up."""


class Stop:
    """The wish, by SIGTERM or Ctrl-C, that the process ends."""

    def __init__(self, task: asyncio.Task[Any]) -> None:
        """Until `ready` the wish cancels the task that starts the process up."""
        self._task: asyncio.Task[Any] | None = task
        self._wished = asyncio.Event()

    def ready(self) -> None:
        """From now on the wish is only noted: `wait` returns."""
        self._task = None

    def wish(self) -> None:
        """End in order."""
        self._wished.set()
        if self._task is not None:
            self._task.cancel()

    @property
    def is_wished(self) -> bool:
        """Whether it was asked for."""
        return self._wished.is_set()

    async def wait(self) -> None:
        """Wait until it is."""
        await self._wished.wait()


@contextlib.contextmanager
def stop_requested() -> Iterator[Stop]:
    """Listen to SIGTERM and Ctrl-C for the length of the block.

    Before `Stop.ready` they break the block off, after its clean-up. A second one ends the process
    at once, as a kill does: logs stand that, and children end with it. Only within `run_service`.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None, "within a coroutine"
    stop = Stop(task)

    def request() -> None:
        for number in _STOP_SIGNALS:
            loop.remove_signal_handler(number)
            # Not Python's own handling of Ctrl-C: it breaks the clean-up off in the middle, with
            # traces of whatever was going on.
            signal.signal(number, signal.SIG_DFL)
        stop.wish()

    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, request)
    try:
        yield stop
    except asyncio.CancelledError:
        if stop.is_wished:
            raise _BrokenOff from None
        raise
    finally:
        for number in _STOP_SIGNALS:
            # False for one that is gone: then the default stays.
            loop.remove_signal_handler(number)
