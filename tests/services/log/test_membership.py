"""Memberships that kafka-python believes in and the group does not: noticed, and begun anew."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from kafka import KafkaAdminClient, KafkaConsumer
from kafka.admin import MemberToRemove

from services.common.log import kafka_membership
from services.common.log.kafka_client import Admin, KafkaOptions, create_topic
from services.common.log.kafka_ownership import KafkaOwnership
from services.common.log.port import LogUnavailable
from tests.services.log.test_ownership import ALL, PARTITIONS, Listener

SESSION_S = 2.0
# From the moment on that the group has settled without a process: patience, a look, joining anew.
# The rest is for a busy machine.
BOUND_S = 3 * SESSION_S + 20


class Members:
    """Makes members of one group, and lets the tests at their consumers."""

    def __init__(self, options: KafkaOptions, group: str) -> None:
        self.options = options
        self.group = group
        self.consumers: list[Any] = []
        self.ownerships: list[KafkaOwnership] = []
        self.given_up = 0

    async def join(self, name: str, listener: Listener) -> KafkaOwnership:
        ownership = KafkaOwnership(
            self.options,
            address=f"{name}:1",
            group=self.group,
            session_timeout_ms=int(1000 * SESSION_S),
            on_given_up=self._count,
        )
        await ownership.start(listener)
        self.ownerships.append(ownership)
        return ownership

    def _count(self) -> None:
        self.given_up += 1

    async def remove_all(self) -> None:
        """Take every member out of the group, as an operator can."""

        def remove() -> None:
            admin = KafkaAdminClient(bootstrap_servers=list(self.options.servers))
            try:
                described = admin.describe_groups([self.group])[self.group]["members"]
                members = [MemberToRemove(each["member_id"]) for each in described]
                admin.remove_group_members(self.group, members)
            finally:
                admin.close()

        await asyncio.to_thread(remove)

    async def seen(self) -> frozenset[int]:
        """The partitions that the group has given to somebody."""
        admin = Admin(self.options)
        try:
            group = await admin.group(self.group)
        finally:
            await admin.close()
        return frozenset().union(*group.members.values())

    async def close(self) -> None:
        for ownership in self.ownerships:
            await ownership.close()


@pytest_asyncio.fixture
async def members(
    kafka_options: KafkaOptions, fresh_name: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Members]:
    await create_topic(kafka_options, partitions=PARTITIONS)
    made = Members(kafka_options, fresh_name("members"))

    def build(**options: Any) -> Any:
        consumer = KafkaConsumer(**options)
        made.consumers.append(consumer)
        return consumer

    monkeypatch.setattr(kafka_membership, "KafkaConsumer", build)
    yield made
    await made.close()


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(BOUND_S):
        while not true():  # noqa: ASYNC110 - nobody tells of what is waited for
            await asyncio.sleep(0.05)


async def shared(one: Listener, two: Listener) -> None:
    """Wait until the two have all partitions between them."""
    await until(
        lambda: bool(one.owned and two.owned) and len(one.owned) + len(two.owned) == len(ALL)
    )
    assert one.owned | two.owned == ALL


async def test_a_rejoining_that_polls_break_off_is_brought_to_its_end(
    members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Polls so short that hardly any request is answered within one: each join is broken off."""
    monkeypatch.setattr(kafka_membership, "_POLL_MS", 1)
    for _ in range(5):
        listener = Listener()
        ownership = await members.join("one", listener)
        await listener.until(PARTITIONS, BOUND_S)
        await ownership.close()
    assert members.given_up == 0, "it was not for the watch to mend"


async def test_a_broken_off_rejoining_is_remembered(members: Members) -> None:
    """The state in which kafka-python forgets: rejoining, and no reason to."""
    listener = Listener()
    await members.join("one", listener)
    await listener.until(PARTITIONS)
    coordinator = members.consumers[0]._coordinator
    assert not coordinator.need_rejoin()
    coordinator.rejoining = True
    await until(lambda: not coordinator.rejoining)
    assert coordinator.stable() and not coordinator.need_rejoin()
    assert listener.owned == ALL


async def test_members_removed_behind_their_backs_come_back(members: Members) -> None:
    one, two = Listener(), Listener()
    await members.join("one", one)
    await members.join("two", two)
    await shared(one, two)
    told = one.told + two.told
    await members.remove_all()
    await until(lambda: len(one.told + two.told) > len(told))
    await shared(one, two)


async def test_a_member_that_takes_no_notice_of_its_removal_is_thrown_away(
    members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It sends no heartbeats and sees no reason to rejoin, as the one that forgot did."""
    monkeypatch.setattr(kafka_membership, "remember_rejoining", lambda consumer: None)
    one, two = Listener(), Listener()
    first = await members.join("one", one)
    await one.until(PARTITIONS)
    deaf = members.consumers[0]._coordinator
    await members.join("two", two)
    await shared(one, two)
    deaf._disable_heartbeat()
    deaf.need_rejoin = lambda: False
    await two.until(PARTITIONS, BOUND_S)
    await shared(one, two)
    assert members.given_up == 1
    assert len(members.consumers) == 3
    assert await members.seen() == ALL
    assert first.owned == one.owned


async def test_a_member_whose_network_thread_stands_still_is_thrown_away(members: Members) -> None:
    listener = Listener()
    await members.join("one", listener)
    await listener.until(PARTITIONS)
    begun = time.monotonic()
    stalled = members.consumers[0]._net
    stalled.call_soon_threadsafe(lambda: time.sleep(BOUND_S))
    async with asyncio.timeout(BOUND_S):
        while listener.told[-1][0] != "revoked":
            listener.changed.clear()
            await listener.changed.wait()
    await listener.until(PARTITIONS, BOUND_S)
    assert members.given_up == 1
    # The old one wakes up, and what it has to say is not heard.
    told = len(listener.told)
    await asyncio.sleep(max(0.0, begun + BOUND_S + 1 - time.monotonic()))
    assert listener.owned == ALL
    assert len(listener.told) == told


async def test_a_process_that_never_gets_into_the_group_says_that_it_failed(
    members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        kafka_membership.Membership, "_take_part", lambda self, _: self._stopping.wait()
    )
    ownership = await members.join("one", Listener())
    async with asyncio.timeout(4 * BOUND_S):
        reason = await ownership.failed()
    assert members.given_up == 3
    assert reason.startswith(f"The group {members.group} at ") and reason.endswith(".")


async def test_nothing_is_given_up_while_all_is_well_or_kafka_is_away(
    members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = Listener()
    ownership = await members.join("one", listener)
    await listener.until(PARTITIONS)
    await asyncio.sleep(3 * SESSION_S)
    assert members.given_up == 0

    async def away(_: str) -> None:
        raise LogUnavailable("not there")

    monkeypatch.setattr(ownership._admin, "group", away)
    await asyncio.sleep(3 * SESSION_S)
    assert members.given_up == 0
    assert listener.told == [("assigned", ALL)]
