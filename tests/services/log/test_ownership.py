"""How partitions are spread over processes: joining, leaving, dying, freezing, and hints."""

import asyncio
import contextlib
import json
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest_asyncio

from services.common.log.kafka_client import KafkaOptions, create_topic
from services.common.log.kafka_ownership import KafkaOwnership
from services.common.log.sqlite import LocalOwnership

PARTITIONS = 8
ALL = frozenset(range(PARTITIONS))
SESSION_MS = 3_000
ROOT = Path(__file__).parents[3]


class Listener:
    """Keeps what it is told; takes `pause_s` for every revocation."""

    def __init__(self, pause_s: float = 0.0) -> None:
        self.owned: frozenset[int] = frozenset()
        self.told: list[tuple[str, frozenset[int]]] = []
        self.pause_s = pause_s
        self.changed = asyncio.Event()

    async def assigned(self, partitions: frozenset[int]) -> None:
        assert not partitions & self.owned
        self.owned |= partitions
        self._note("assigned", partitions)

    async def revoked(self, partitions: frozenset[int]) -> None:
        assert partitions <= self.owned
        await asyncio.sleep(self.pause_s)
        self.owned -= partitions
        self._note("revoked", partitions)

    async def until(self, owned: int, limit_s: float = 15) -> float:
        """Wait until it owns so many partitions; how long that took."""
        begun = time.monotonic()
        async with asyncio.timeout(limit_s):
            while len(self.owned) != owned:
                self.changed.clear()
                await self.changed.wait()
        return time.monotonic() - begun

    def _note(self, change: str, partitions: frozenset[int]) -> None:
        self.told.append((change, partitions))
        self.changed.set()


class Member:
    """A process that takes part."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.listener = Listener()
        self.reading = asyncio.ensure_future(self.read())

    async def read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            change, partitions = json.loads(line)
            await getattr(self.listener, change)(frozenset(partitions))


class Group:
    """One group on one topic; makes members in this process and in others."""

    def __init__(self, options: KafkaOptions, name: str) -> None:
        self.options = options
        self.name = name
        self.ownerships: list[KafkaOwnership] = []
        self.members: list[Member] = []

    async def join(self, address: str, listener: Listener) -> KafkaOwnership:
        ownership = KafkaOwnership(
            self.options, address=address, group=self.name, session_timeout_ms=SESSION_MS
        )
        await ownership.start(listener)
        self.ownerships.append(ownership)
        return ownership

    async def spawn(self, address: str) -> Member:
        program = [sys.executable, "-m", "tests.services.log.member", self.options.servers[0]]
        process = await asyncio.create_subprocess_exec(
            *program, self.options.topic, self.name, address, str(SESSION_MS),
            stdin=PIPE, stdout=PIPE, cwd=ROOT,
        )  # fmt: skip
        self.members.append(Member(process))
        return self.members[-1]

    async def close(self) -> None:
        for member in self.members:
            with contextlib.suppress(ProcessLookupError):
                member.process.kill()
            await member.process.wait()
            await member.reading
        for ownership in self.ownerships:
            await ownership.close()


@pytest_asyncio.fixture
async def group(
    kafka_options: KafkaOptions, fresh_name: Callable[[str], str]
) -> AsyncIterator[Group]:
    """A group of its own on a topic of its own."""
    await create_topic(kafka_options, partitions=PARTITIONS)
    group = Group(kafka_options, fresh_name("owners"))
    yield group
    await group.close()


async def test_the_first_member_gets_everything_the_second_half_of_it(group: Group) -> None:
    one, two = Listener(), Listener()
    first = await group.join("one:1", one)
    assert await one.until(PARTITIONS) < 8
    assert first.owned == ALL
    await group.join("two:2", two)
    await two.until(PARTITIONS // 2)
    assert len(one.owned) == PARTITIONS // 2
    assert one.owned | two.owned == ALL
    # What stayed was never taken away in between.
    assert [change for change, _ in one.told] == ["assigned", "revoked"]


async def test_a_member_that_leaves_hands_over_at_once(group: Group) -> None:
    one, two = Listener(), Listener()
    first = await group.join("one:1", one)
    await one.until(PARTITIONS)
    await group.join("two:2", two)
    await two.until(PARTITIONS // 2)
    begun = time.monotonic()
    await first.close()
    assert one.owned == frozenset() and first.owned == frozenset()
    await two.until(PARTITIONS)
    assert time.monotonic() - begun < SESSION_MS / 1000


async def test_partitions_are_handed_over_only_when_their_revocation_was_handled(
    group: Group,
) -> None:
    one, two = Listener(pause_s=1.0), Listener()
    await group.join("one:1", one)
    await one.until(PARTITIONS)
    await group.join("two:2", two)
    async with asyncio.timeout(15):
        while not two.owned:
            # At no moment do both own a partition: the first has drained by then.
            assert not one.owned & two.owned
            await asyncio.sleep(0.01)
    assert not one.owned & two.owned
    assert one.told[-1][0] == "revoked"


async def test_a_killed_process_is_replaced_after_its_session(group: Group) -> None:
    one = Listener()
    await group.join("one:1", one)
    await one.until(PARTITIONS)
    other = await group.spawn("other:2")
    await other.listener.until(PARTITIONS // 2)
    await one.until(PARTITIONS // 2)
    other.process.kill()
    took = await one.until(PARTITIONS)
    print(f"takeover after kill -9: {took:.1f} s with a session of {SESSION_MS / 1000} s")
    assert took < SESSION_MS / 1000 + 5


async def test_a_frozen_process_loses_its_partitions_and_is_told_when_it_wakes(
    group: Group,
) -> None:
    one = Listener()
    await group.join("one:1", one)
    await one.until(PARTITIONS)
    other = await group.spawn("other:2")
    await other.listener.until(PARTITIONS // 2)
    await one.until(PARTITIONS // 2)
    theirs = other.listener.owned
    other.process.send_signal(signal.SIGSTOP)
    took = await one.until(PARTITIONS)
    assert took < SESSION_MS / 1000 + 5
    other.process.send_signal(signal.SIGCONT)
    async with asyncio.timeout(15):
        while ("revoked", theirs) not in other.listener.told:
            other.listener.changed.clear()
            await other.listener.changed.wait()
    await other.listener.until(PARTITIONS // 2)
    await one.until(PARTITIONS // 2)
    assert one.owned | other.listener.owned == ALL


async def test_hints_name_the_address_of_the_assigned_member(group: Group) -> None:
    one, two = Listener(), Listener()
    first = await group.join("one.example:50051", one)
    assert await first.owner_hint(0) is None
    await one.until(PARTITIONS)
    assert await first.owner_hint(0, refresh=True) == "one.example:50051"
    second = await group.join("[::1]:50052", two)
    await two.until(PARTITIONS // 2)
    hints = {p: await first.owner_hint(p, refresh=p == 0) for p in range(PARTITIONS)}
    assert {p for p, hint in hints.items() if hint == "[::1]:50052"} == two.owned
    assert {p for p, hint in hints.items() if hint == "one.example:50051"} == one.owned
    asked = [second.owner_hint(p, refresh=True) for p in range(PARTITIONS)]
    assert dict(enumerate(await asyncio.gather(*asked))) == hints


async def test_a_listener_that_fails_does_not_end_the_membership(group: Group) -> None:
    class Failing(Listener):
        async def assigned(self, partitions: frozenset[int]) -> None:
            await super().assigned(partitions)
            raise ValueError("on purpose")

    one, two = Failing(), Listener()
    await group.join("one:1", one)
    await one.until(PARTITIONS)
    await group.join("two:2", two)
    await two.until(PARTITIONS // 2)


async def test_membership_waits_for_a_kafka_that_is_not_there(unused_tcp_port: int) -> None:
    options = KafkaOptions(servers=(f"127.0.0.1:{unused_tcp_port}",))
    ownership = KafkaOwnership(options, address="one:1")
    listener = Listener()
    await ownership.start(listener)
    assert await ownership.owner_hint(0) is None
    await asyncio.sleep(0.2)
    await ownership.close()
    assert listener.told == []


async def test_in_embedded_mode_one_process_owns_all() -> None:
    listener = Listener()
    ownership = LocalOwnership(PARTITIONS, "me:1")
    assert ownership.owned == frozenset()
    await ownership.start(listener)
    assert listener.owned == ownership.owned == ALL
    assert await ownership.owner_hint(3) == "me:1"
    await ownership.close()
    assert listener.owned == ownership.owned == frozenset()
