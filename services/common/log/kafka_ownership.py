"""Who should own which partition: a Kafka consumer group whose members read nothing.

The group only spreads the partitions; that a process owns one is decided by its claim in the log
(``services.common.admission``). So a late or wrong notice here costs time, never correctness.

What kafka-python believes of its membership is not trusted: the group itself is asked now and
then, and a membership that it does not know of is thrown away for a new one.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from typing import Final

from services.common.log.kafka_client import Admin, KafkaOptions
from services.common.log.kafka_membership import LEAVE_S, Membership, Notice
from services.common.log.port import LogError, OwnershipListener

_logger = logging.getLogger(__name__)

_HANG_S: Final = 45.0
_HINT_S: Final = 1.0
# In units of the session timeout: how often the group is asked whether it knows this process, and
# how long it may not, though it answers, before the membership is given up.
_LOOK_SESSIONS: Final = 0.5
_PATIENCE_SESSIONS: Final = 2.0
# So many memberships in a row that the group did not know of, and the process should end.
_UNKNOWN_MAX: Final = 3


class KafkaOwnership:
    """`services.common.log.Ownership` by the consumer group `group` on the log's topic.

    `address` ("host:port", where this process serves gRPC) travels in the member's client id, so
    that every process can read off the group who should own what.
    """

    def __init__(
        self,
        options: KafkaOptions,
        *,
        address: str,
        group: str = "match-owners",
        session_timeout_ms: int = 6_000,
        on_given_up: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_given_up` is called whenever a membership is thrown away for a new one."""
        self._options = options
        self._address = address
        self._group = group
        self._session_timeout_ms = session_timeout_ms
        self._on_given_up = on_given_up
        self._owned: frozenset[int] = frozenset()
        self._notices: asyncio.Queue[Notice] = asyncio.Queue()
        self._is_telling = False
        self._tasks: list[asyncio.Task[None]] = []
        self._membership: Membership
        self._admin = Admin(options)
        self._hints: dict[int, str] = {}
        self._hints_at = float("-inf")
        self._asking: asyncio.Task[None] | None = None
        # Memberships in a row that the group did not know of.
        self._unknown = 0
        self._failed = asyncio.Event()

    @property
    def owned(self) -> frozenset[int]:
        """The partitions that the listener was last told to own."""
        return self._owned

    async def start(self, listener: OwnershipListener) -> None:
        """Join the group, in the background, for as long as it takes to reach Kafka."""
        self._loop = asyncio.get_running_loop()
        self._tasks = [
            self._loop.create_task(self._tell(listener), name="ownership-tell"),
            self._loop.create_task(self._watch(), name="ownership-watch"),
        ]
        self._begin()

    def _begin(self) -> None:
        self._membership = Membership(
            self._options,
            group=self._group,
            address=self._address,
            session_timeout_ms=self._session_timeout_ms,
            tell=self._post,
        )
        self._membership.start()

    async def close(self) -> None:
        """Have everything revoked, then leave the group; others take over at once."""
        if not self._tasks:
            return
        telling, watching = self._tasks
        self._tasks = []
        await _cancelled(watching)
        self._membership.stop()
        await asyncio.to_thread(self._membership.join, LEAVE_S)
        # Normally the member's leaving has had everything revoked already.
        self._notices.put_nowait(Notice(self._membership, "revoked", None))
        await self._notices.join()
        await _cancelled(telling)
        await self._admin.close()

    async def failed(self) -> str:
        """Wait until joining anew has not helped several times; a sentence. Never if all is well.

        The process should end then; until it does, this one goes on trying.
        """
        await self._failed.wait()
        return (
            f"The group {self._group} at {self._options.shown_servers} answers, "
            "but this process does not get into it."
        )

    async def owner_hint(self, partition: int, *, refresh: bool = False) -> str | None:
        """Address of the group's member that `partition` is assigned to; see the port."""
        if refresh or time.monotonic() - self._hints_at > _HINT_S:
            if self._asking is None:
                self._asking = asyncio.get_running_loop().create_task(self._ask())
            # Shielded: others may wait for the same answer.
            await asyncio.shield(self._asking)
        return self._hints.get(partition)

    async def _ask(self) -> None:
        try:
            group = await self._admin.group(self._group)
        except LogError as error:
            _logger.debug("no owner hints: %s", error)
            return
        finally:
            self._asking = None
            self._hints_at = time.monotonic()
        # While the group is being rearranged, the last known owners are the better guess.
        for client_id, partitions in group.members.items():
            self._hints.update(dict.fromkeys(partitions, client_id.rpartition("@")[2]))

    # ---- notices

    def _post(self, notice: Notice) -> None:
        """Hand a notice to the loop, from any thread."""
        try:
            self._loop.call_soon_threadsafe(self._notices.put_nowait, notice)
        except RuntimeError:  # the loop is closed: nobody is there to be told
            notice.handled.set()

    async def _tell(self, listener: OwnershipListener) -> None:
        while True:
            notice = await self._notices.get()
            self._is_telling = True
            try:
                # Nobody listens to a membership that was given up.
                if notice.membership is self._membership:
                    await self._change(listener, notice)
            except Exception:
                # The log decides who owns; a listener that fails must not end the membership.
                _logger.exception("telling about %s partitions failed", notice.change)
            finally:
                self._is_telling = False
                notice.handled.set()
                self._notices.task_done()

    async def _change(self, listener: OwnershipListener, notice: Notice) -> None:
        if notice.change == "assigned":
            fresh = (notice.partitions or frozenset()) - self._owned
            self._owned |= fresh
            if fresh:
                await listener.assigned(fresh)
            return
        gone = self._owned if notice.partitions is None else notice.partitions & self._owned
        self._owned -= gone
        if gone:
            await listener.revoked(gone)

    # ---- whether the membership is one

    async def _watch(self) -> None:
        """Give up a membership that the group does not know of, or whose thread hangs."""
        session_s = self._session_timeout_ms / 1000
        look_s = _LOOK_SESSIONS * session_s
        # Counted by looks, not by the clock: a process that was frozen begins at its first look.
        unknown_s = hanging_s = 0.0
        turns = -1
        while True:
            await asyncio.sleep(look_s)
            known = await self._is_known()
            if known:
                self._unknown = 0
            unknown_s = unknown_s + look_s if known is False else 0.0
            hanging_s = hanging_s + look_s if self._membership.turns == turns else 0.0
            turns = self._membership.turns
            if unknown_s > _PATIENCE_SESSIONS * session_s:
                self._start_over(f"the group has not known of it for {unknown_s:g} s")
                self._unknown += 1
                if self._unknown >= _UNKNOWN_MAX:
                    self._failed.set()
            elif hanging_s > _HANG_S:
                self._start_over(f"its thread has been hanging for {hanging_s:g} s")
            else:
                continue
            unknown_s = hanging_s = 0.0

    async def _is_known(self) -> bool | None:
        """Whether the group has this process as a member with the partitions that it was told.

        None: that cannot be said now, because Kafka does not answer, or things are in motion.
        """
        try:
            group = await self._admin.group(self._group)
        except LogError as error:
            _logger.debug("no view of the group %s: %s", self._group, error)
            return None
        if not group.settled or self._is_telling or not self._notices.empty():
            return None
        return group.members.get(self._membership.client_id) == self._owned

    def _start_over(self, why: str) -> None:
        _logger.error("the membership in the group %s is given up: %s", self._group, why)
        self._on_given_up()
        self._membership.stop()
        self._begin()
        # Before anything that the new one has to say.
        self._notices.put_nowait(Notice(self._membership, "revoked", None))


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
