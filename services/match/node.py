"""One match process: the partitions it owns, the way to those it does not, and its limits."""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, Final, TypeVar

import grpc.aio
from redis.asyncio import Redis

from services.common.errors import ApiError, incident, refuse
from services.common.factcodec import codec
from services.common.keys import KeyRing
from services.common.log import Log, LogUnavailable, Ownership, partition_of
from services.common.metrics import Metrics
from services.common.settings import Settings
from services.common.views import Views
from services.match.census import Capacity
from services.match.commands import PlayerCommand, name_of
from services.match.forward import Forwarder, Origin, peer_credentials
from services.match.limits import Limits, Quota
from services.match.memory import Memory
from services.match.outcomes import Applied, Outcome
from services.match.partition import PartitionOwner, Parts
from services.match.queries import Queries
from services.match.queue import Done
from services.match.service import MatchServicer
from services.match.streams import Outlet
from services.match.watch import Feed, LocalFeed
from services.match.writer import Identity

_logger = logging.getLogger(__name__)

_SWEEP_S: Final = 1.0

T = TypeVar("T")


class MatchNode:
    """The match service of one process. Order of use: `register`, `start`, …, `close`."""

    def __init__(
        self,
        *,
        settings: Settings,
        log: Log,
        ownership: Ownership,
        redis: "Redis",
        keys: KeyRing,
        metrics: Metrics,
        limits: Limits | None = None,
        address: str = "",
    ) -> None:
        """`log` is started already. `address`, where other processes reach this one, is by default
        what the settings say; `limits` likewise. Raises StartupError for unusable TLS files.
        """
        self.limits = limits or Limits.of(settings)
        self.log = log
        self.metrics = metrics
        self._ownership = ownership
        self._address = address or str(settings.advertise or settings.listen)
        self._memory = Memory(self.limits.memory_bytes)
        self._parts = Parts(
            log=log,
            # Two runs of the same process must not take each other's claims for their own.
            identity=Identity(f"{settings.node_name}.{secrets.token_hex(4)}", self._address),
            keys=keys,
            limits=self.limits,
            metrics=metrics,
            memory=self._memory,
            capacity=Capacity(
                self.limits, lambda: [owner.census for owner in self._owners.values()]
            ),
            alarm=self._alarm,
        )
        self._owners: dict[int, PartitionOwner] = {}
        self._forwarder = Forwarder(peer_credentials(settings))
        self._in_flight = Quota(
            "TOO_MANY_IN_FLIGHT", self.limits.in_flight, self.limits.in_flight_per_caller
        )
        self._watchers = Quota(
            "TOO_MANY_WATCHERS", self.limits.watchers, self.limits.watchers_per_caller
        )
        self._outlets: set[Outlet] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closing = False
        self._failure = ""
        self._failed = asyncio.Event()
        views = Views(redis, log.log_id, log.partitions, metrics.damaged_views.inc)
        queries = Queries(views, self.limits.views_wait_s)
        self._servicer = MatchServicer(self, queries)

    @property
    def log_id(self) -> str:
        """Identity of the log."""
        return self.log.log_id

    # -- life -------------------------------------------------------------------------------------

    def register(self, server: grpc.aio.Server) -> None:
        """Add MatchService to the server."""
        server.add_generic_rpc_handlers((self._servicer.handlers(),))

    async def start(self) -> None:
        """Take part in the sharing of the partitions; they are served as they come."""
        # Loaded now, so that a broken installation is found before the first command.
        codec()
        self._spawn(self._sweep())
        await self._ownership.start(self)

    async def close(self) -> None:
        """Hand the partitions over, end commands and watches with UNAVAILABLE. May be repeated."""
        if self._closing:
            return
        self._closing = True
        await self._ownership.close()
        await self._let_go(frozenset(self._owners))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._forwarder.close()

    @property
    def healthy(self) -> bool:
        """Whether the process can do its work; False for good after an alarm, and when closing."""
        return not self._failure and not self._closing

    async def failed(self) -> str:
        """Wait for what the process must end upon; one sentence that says what it was."""
        await self._failed.wait()
        return self._failure

    def _alarm(self, sentence: str) -> None:
        _logger.critical("%s", sentence)
        self._failure = self._failure or sentence
        self._failed.set()

    async def _sweep(self) -> None:
        """Notice now and then what does not move."""
        while True:
            await asyncio.sleep(_SWEEP_S)
            self.metrics.live_matches.set(len(self._memory))
            for owner in self._owners.values():
                owner.check()
            for outlet in self._outlets:
                outlet.check(self.limits.write_stall_s)

    # -- ownership (services.common.log.OwnershipListener) ----------------------------------------

    async def assigned(self, partitions: frozenset[int]) -> None:
        """Read and claim these partitions."""
        for partition in sorted(partitions - self._owners.keys()):
            owner = self._owners[partition] = PartitionOwner(self._parts, partition)
            owner.start()

    async def revoked(self, partitions: frozenset[int]) -> None:
        """Hand these partitions over."""
        await self._let_go(partitions)

    async def _let_go(self, partitions: frozenset[int]) -> None:
        owners = [self._owners[partition] for partition in partitions & self._owners.keys()]
        await asyncio.gather(*(owner.close() for owner in owners))
        for owner in owners:
            del self._owners[owner.partition]

    # -- commands ---------------------------------------------------------------------------------

    def submit(self, command: PlayerCommand, origin: Origin, done: Done) -> None:
        """Take the command on, here or at its owner; `done` hears the outcome, perhaps at once."""
        subject = origin.caller.subject
        try:
            if self._closing:
                raise refuse("SHUTTING_DOWN")
            self._in_flight.take(subject)
        except ApiError as error:
            self.metrics.command(name_of(command), error.reason)
            done(error)
            return
        self.metrics.in_flight.inc()

        def finish(outcome: Outcome) -> None:
            self._in_flight.give_back(subject)
            self.metrics.in_flight.dec()
            done(outcome)

        owner = self._owners.get(partition_of(command.match_id, self.log.partitions))
        if owner is not None and owner.accepts:
            self._submit_to(owner, command, finish)
        else:
            self._spawn(self._route(command, origin, finish))

    def _submit_to(self, owner: PartitionOwner, command: PlayerCommand, done: Done) -> None:
        try:
            owner.submit(command, done)
        except ApiError as error:
            self.metrics.command(name_of(command), error.reason)
            done(error)

    async def _route(self, command: PlayerCommand, origin: Origin, finish: Done) -> None:
        """The slow way: wait for a partition that is just coming, or pass the command on."""
        outcome: Outcome = refuse("SHUTTING_DOWN")
        try:
            outcome = await self._routed(command, origin)
        except ApiError as error:
            outcome = error
        except Exception as error:
            self.metrics.incidents.inc()
            outcome = incident(error, f"routing a command of match {command.match_id}")
        finally:
            finish(outcome)

    async def _routed(self, command: PlayerCommand, origin: Origin) -> Outcome:
        partition = partition_of(command.match_id, self.log.partitions)
        owner = await self._coming_owner(partition)
        if owner is not None:
            outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
            self._submit_to(owner, command, outcome.set_result)
            return await outcome

        async def there(address: str) -> Applied:
            return await self._forwarder.command(address, command, origin)

        try:
            return await self._elsewhere(partition, origin, there)
        except ApiError as error:
            if error.reason == "NO_OWNER":
                self.metrics.command(name_of(command), error.reason)
            raise

    async def _coming_owner(self, partition: int) -> PartitionOwner | None:
        """This process's own owner of the partition, once it serves; None when it will not."""
        owner = self._owners.get(partition)
        if owner is not None and await owner.wait_accepting(self.limits.takeover_wait_s):
            return owner
        return None

    async def _elsewhere(
        self, partition: int, origin: Origin, there: Callable[[str], Coroutine[Any, Any, T]]
    ) -> T:
        """Do it at the partition's owner; asks anew where that is when it is not there."""
        refusal = refuse("NO_OWNER")
        if not origin.may_go_on:
            raise refusal
        async for address in self._addresses(partition):
            try:
                return await there(address)
            except ApiError as error:
                if error.reason != "NO_OWNER":
                    raise
                refusal = error
        raise refusal

    async def _addresses(self, partition: int) -> AsyncIterator[str]:
        """Where the partition's owner may be: as assigned, as claimed, as assigned by now."""
        tried = {self._address, ""}
        owner = self._owners.get(partition)
        for source in ("assigned", "claimed", "refreshed"):
            address = owner.address if owner is not None and source == "claimed" else ""
            if source != "claimed":
                with contextlib.suppress(LogUnavailable):
                    refresh = source == "refreshed"
                    hint = await self._ownership.owner_hint(partition, refresh=refresh)
                    address = hint or ""
            if address not in tried:
                tried.add(address)
                yield address

    # -- watches ----------------------------------------------------------------------------------

    async def open_feed(
        self, match_id: str, from_sequence: int, origin: Origin, wake: Callable[[], None]
    ) -> Feed:
        """Begin to watch; to be ended by `close_feed`. Raises ApiError."""
        if self._closing:
            raise refuse("SHUTTING_DOWN")
        subject = origin.caller.subject
        self._watchers.take(subject)
        try:
            feed = await self._feed(match_id, from_sequence, origin, wake)
        except BaseException:
            self._watchers.give_back(subject)
            raise
        self.metrics.watchers.inc()
        return feed

    def close_feed(self, feed: Feed, origin: Origin) -> None:
        """End a watch."""
        feed.close()
        self._watchers.give_back(origin.caller.subject)
        self.metrics.watchers.dec()

    async def _feed(
        self, match_id: str, from_sequence: int, origin: Origin, wake: Callable[[], None]
    ) -> Feed:
        partition = partition_of(match_id, self.log.partitions)
        owner = await self._coming_owner(partition)
        if owner is None:

            async def there(address: str) -> Feed:
                return await self._forwarder.watch(address, match_id, from_sequence, origin, wake)

            return await self._elsewhere(partition, origin, there)
        match = await owner.match(match_id)
        if len(match.listeners) >= self.limits.watchers_per_match:
            raise refuse("TOO_MANY_WATCHERS", metadata={"of": "match"})
        if not owner.accepts:
            raise refuse("NO_OWNER")
        return LocalFeed(
            owner,
            match,
            subject=origin.caller.subject,
            locale=origin.locale,
            from_sequence=from_sequence,
            lag_max=self.limits.watch_lag,
            wake=wake,
        )

    @contextlib.contextmanager
    def outlet(self, context: Any) -> Iterator[Outlet]:
        """The sending side of a stream, under supervision."""
        outlet = Outlet(context)
        self._outlets.add(outlet)
        try:
            yield outlet
        finally:
            self._outlets.discard(outlet)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
