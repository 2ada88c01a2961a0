"""Faults of the log and of ownership: what is acknowledged counts, what is refused does not."""

import asyncio
from typing import Any

import pytest

from engine import Seat, SeatTaken, Session
from services.common.commits import Cause, build_claim, make_commit
from services.common.errors import ApiError
from services.common.keys import KeyRing
from services.common.log import partition_of
from services.common.log.sqlite import SqliteLog
from services.common.tail import PartitionTail
from tests.services.match.serving import (
    LIMITS,
    FaultyLog,
    Shares,
    admitted,
    begin,
    play_out,
    process,
    records,
    refused,
    until,
)


def _commands(commits: list[Any]) -> list[str]:
    return [commit.cause.command for commit in commits]


@pytest.mark.parametrize("fault", ["lose", "unknown", "late", "twice"])
async def test_an_append_whose_outcome_is_unknown(log: SqliteLog, fault: str) -> None:
    """A barrier tells whether the commit counts; the caller hears the truth, and once is once."""
    faulty = FaultyLog(log)
    async with process(faulty) as here:
        ann = here.player("ann")
        created = await ann.create()
        faulty.faults = [fault]
        joined = await ann.join(created.match_id, request_id="j")
        assert joined.seat == 1
        assert await ann.join(created.match_id, request_id="j") == joined
        await here.player("bob").join(created.match_id)
        await ann.start(created.match_id)
        # A late copy comes after the barrier: it must be void by then.
        await asyncio.sleep(faulty.late_s + 0.1)
    commits = (await admitted(log))[created.match_id]
    assert _commands(commits) == ["create", "join", "join", "start"]
    assert commits[1].sequence == joined.receipt.sequence


async def test_not_applied_twice_is_said(log: SqliteLog) -> None:
    """When the commit does not come to count, the reply says so, and it never counts."""
    faulty = FaultyLog(log)
    async with process(faulty) as here:
        ann = here.player("ann")
        created = await ann.create()
        faulty.faults = ["late"] * 3
        with pytest.raises(ApiError) as error:
            await ann.join(created.match_id, request_id="j")
        assert refused(error) == "NOT_APPLIED"
        await asyncio.sleep(faulty.late_s + 0.1)
        assert len((await admitted(log))[created.match_id]) == 1
        assert (await ann.join(created.match_id, request_id="j")).seat == 1
    assert _commands((await admitted(log))[created.match_id]) == ["create", "join"]


async def test_a_log_that_refuses(log: SqliteLog) -> None:
    """Surely not written: UNAVAILABLE, nothing in the log, the match goes on."""
    faulty = FaultyLog(log)
    async with process(faulty) as here:
        ann = here.player("ann")
        created = await ann.create()
        faulty.faults = ["refuse"]
        with pytest.raises(ApiError) as error:
            await ann.join(created.match_id)
        assert refused(error) == "LOG_UNAVAILABLE"
        assert len((await admitted(log))[created.match_id]) == 1
        assert (await ann.join(created.match_id)).seat == 1


async def test_claims_that_fail(log: SqliteLog) -> None:
    """A process that takes over, and a barrier, try again until a claim counts."""
    faults = ["unknown", "refuse", "lose", "late"]
    faulty = FaultyLog(log, claim_faults=list(faults), late_s=0.05)
    async with process(faulty) as here:
        ann = here.player("ann")
        created = await ann.create()
        faulty.faults, faulty.claim_faults = ["unknown"], list(faults)
        assert (await ann.join(created.match_id)).seat == 1
    assert _commands((await admitted(log))[created.match_id]) == ["create", "join"]


async def test_other_matches_survive_a_barrier(log: SqliteLog) -> None:
    """Commits of other matches under way during a barrier count or are decided anew."""
    faulty = FaultyLog(log)
    async with process(faulty) as here:
        matches = [await begin(here, (f"a{n}", f"b{n}")) for n in range(12)]
        faulty.faults = ["", "unknown", "", "late", "lose", "", "twice", "", "unknown"] * 3
        await asyncio.gather(*(play_out(match, patient=True) for match in matches))
        await asyncio.sleep(faulty.late_s + 0.1)
    counted = await admitted(log)
    for match in matches:
        assert counted[match.match_id][-1].final
        requests = [(c.cause.actor, c.cause.request_id) for c in counted[match.match_id] if c.cause]
        assert len(requests) == len(set(requests))


async def test_a_log_that_stays_away(log: SqliteLog) -> None:
    """Callers do not wait without end; afterwards the truth can be asked for."""
    faulty = FaultyLog(log)
    limits = LIMITS.__class__(outcome_wait_s=0.2, takeover_grace_s=0.2)
    async with process(faulty, limits=limits) as here:
        ann = here.player("ann")
        created = await ann.create()
        faulty.faults, faulty.claim_faults = ["late"], ["refuse"] * 10_000
        faulty.late_s = 1.0
        partition = partition_of(created.match_id, log.partitions)
        for _ in range(2):
            with pytest.raises(ApiError) as error:
                await ann.join(created.match_id, request_id="j")
            assert refused(error) == "LOG_UNAVAILABLE"
        await asyncio.sleep(1.2)
        faulty.claim_faults = []
        await until(lambda: not here.node._owners[partition]._stuck)
        # It was written after all, and counts: the same request hears of it.
        assert (await ann.join(created.match_id, request_id="j")).receipt.sequence == 2
    assert _commands((await admitted(log))[created.match_id]) == ["create", "join"]


async def test_a_lost_acknowledgement(log: SqliteLog) -> None:
    """What was read back counts, whatever became of the acknowledgement."""
    faulty = FaultyLog(log)
    async with process(faulty) as here:
        ann = here.player("ann")
        created = await ann.create()
        faulty.faults, faulty.claim_faults = ["lose"], ["refuse"] * 10_000
        assert (await ann.join(created.match_id)).receipt.sequence == 2


async def _claim(log: SqliteLog, partition: int) -> None:
    """Another process claims the partition."""
    tail = PartitionTail(log, partition)
    reader = asyncio.create_task(_drain(tail))
    await tail.catch_up()
    reader.cancel()
    claim = build_claim(
        log_id=log.log_id,
        partition=partition,
        writer="other",
        address="127.0.0.1:9",
        previous_epoch=tail.admission.epoch,
    )
    await log.append(partition, b"", claim)


async def _drain(tail: PartitionTail) -> None:
    async for _ in tail:
        pass


async def test_a_foreign_claim(log: SqliteLog) -> None:
    """A process whose partition was claimed steps down at once: commands, watches and all."""
    limits = LIMITS.__class__(reclaim_s=60, takeover_wait_s=0.1)
    async with process(log, limits=limits) as here:
        match = await begin(here)
        ann = match.players[0]
        (prompt,) = await ann.prompts(match.match_id)
        watching = asyncio.create_task(ann.updates(match.match_id))
        await asyncio.sleep(0.1)
        for partition in range(log.partitions):
            await _claim(log, partition)
        with pytest.raises(ApiError) as error:
            await watching
        assert refused(error) == "NO_OWNER"
        with pytest.raises(ApiError) as error:
            await ann.answer(match.match_id, prompt.prompt_id, "keep")
        assert refused(error) == "NO_OWNER"
        before = (await admitted(log))[match.match_id]
    assert len(before) == 4


async def test_a_commit_overtaken_by_a_foreign_claim(log: SqliteLog) -> None:
    """What comes into the log after the claim does not count, and its caller hears so."""
    faulty = FaultyLog(log)
    limits = LIMITS.__class__(reclaim_s=0.3, takeover_grace_s=0.1)
    async with process(faulty, limits=limits) as here:
        ann = here.player("ann")
        created = await ann.create()
        faulty.faults = ["hold"]
        joining = asyncio.create_task(ann.join(created.match_id, request_id="j"))
        await until(lambda: faulty.held == 1)
        for partition in range(log.partitions):
            await _claim(log, partition)
        with pytest.raises(ApiError) as error:
            await joining
        assert refused(error) == "NO_OWNER"
        faulty.release.set()
        await asyncio.sleep(0.1)
        assert len((await admitted(log))[created.match_id]) == 1
        # The other does not serve: the process that owns the partition takes it back.
        await until(lambda: all(owner.accepts for owner in here.node._owners.values()))
        assert (await ann.join(created.match_id, request_id="j")).seat == 1
    assert _commands((await admitted(log))[created.match_id]) == ["create", "join"]


async def test_an_acknowledged_append_is_no_proof(log: SqliteLog) -> None:
    """What the log took after a claim that was not read yet does not count, and is not said to."""
    faulty = FaultyLog(log)
    limits = LIMITS.__class__(reclaim_s=60, takeover_wait_s=0.1)
    async with process(faulty, limits=limits) as here:
        ann = here.player("ann")
        created = await ann.create()
        faulty.readable.clear()
        await _claim(log, partition_of(created.match_id, log.partitions))
        joining = asyncio.create_task(ann.join(created.match_id))
        await until(lambda: faulty.appended == 2)
        await asyncio.sleep(0.1)
        assert not joining.done()
        faulty.readable.set()
        with pytest.raises(ApiError) as error:
            await joining
        assert refused(error) == "NO_OWNER"
    assert len((await admitted(log))[created.match_id]) == 1


async def test_one_result_for_one_request(log: SqliteLog) -> None:
    """Callers of the same request at the same time hear the same, a failure too."""
    faulty = FaultyLog(log)
    async with process(faulty) as here:
        ann = here.player("ann")
        created = await ann.create()
        faulty.faults = ["late"] * 3
        joins = [ann.join(created.match_id, request_id="j") for _ in range(4)]
        results = await asyncio.gather(*joins, return_exceptions=True)
        assert [getattr(result, "reason", "") for result in results] == ["NOT_APPLIED"] * 4
        await asyncio.sleep(faulty.late_s + 0.1)
    assert len((await admitted(log))[created.match_id]) == 1


async def _rogue_join(log: SqliteLog, match_id: str, subject: str, seat: int) -> None:
    """Somebody who knows our epoch writes a commit that counts."""
    partition = partition_of(match_id, log.partitions)
    last = (await admitted(log))[match_id][-1]
    commit = make_commit(
        log_id=log.log_id,
        partition=partition,
        writer="rogue",
        epoch=last.epoch,
        match_id=match_id,
        sequence=last.sequence + 1,
        first_fact=last.first_fact + last.fact_count,
        facts=[SeatTaken(Seat(seat), subject, subject, b"")],
        cause=Cause(actor=subject, request_id="rogue", digest=b"x", command="join", seat=seat),
        previous_hash=last.hash,
        ruleset=last.ruleset,
    )
    await log.append(partition, match_id.encode(), commit.value)


async def test_another_writer_under_our_epoch(log: SqliteLog) -> None:
    """A commit of somebody else that counts is taken for what it is: the match goes on from it."""
    async with process(log) as here:
        ann, bob = here.player("ann"), here.player("bob")
        created = await ann.create()
        await ann.join(created.match_id)
        await _rogue_join(log, created.match_id, "bob", 2)
        with pytest.raises(ApiError) as error:
            await bob.join(created.match_id)
        assert refused(error) == "ALREADY_SEATED"
        assert (await ann.start(created.match_id)).receipt.sequence == 4


async def test_a_commit_overtaken_under_our_epoch(log: SqliteLog) -> None:
    """A commit of ours that was read back as void is settled by a barrier, and decided anew."""
    faulty = FaultyLog(log)
    async with process(faulty) as here:
        ann = here.player("ann")
        created = await ann.create()
        faulty.faults = ["hold"]
        joining = asyncio.create_task(ann.join(created.match_id))
        await until(lambda: faulty.held == 1)
        await _rogue_join(log, created.match_id, "bob", 1)
        faulty.release.set()
        joined = await asyncio.wait_for(joining, 10)
        assert (joined.seat, joined.receipt.sequence) == (2, 3)


async def test_nothing_is_shown_before_it_counts(log: SqliteLog) -> None:
    """While an answer is on its way, watchers see the match as it was before."""
    faulty = FaultyLog(log)
    async with process(faulty) as here:
        match = await begin(here)
        ann = match.players[0]
        (prompt,) = await ann.prompts(match.match_id)
        faulty.faults = ["hold"]
        answering = asyncio.create_task(ann.answer(match.match_id, prompt.prompt_id, "keep"))
        await until(lambda: faulty.held == 1)
        assert await ann.prompts(match.match_id) == [prompt]
        faulty.release.set()
        await answering
        assert await ann.prompts(match.match_id) == []


async def test_handing_over(log: SqliteLog) -> None:
    """A revoked partition is released, its watches end as resumable, the next owner goes on."""
    hints: dict[int, str] = {}
    first, second = Shares(range(log.partitions), hints), Shares((), hints)
    async with process(log, ownership=first) as one, process(log, ownership=second) as two:
        match = await begin(one)
        watching = asyncio.create_task(match.players[0].updates(match.match_id))
        await asyncio.sleep(0.05)
        await first.take(range(log.partitions))
        with pytest.raises(ApiError) as error:
            await watching
        assert refused(error) == "NO_OWNER"
        hints.update(dict.fromkeys(range(log.partitions), two.address))
        await second.give(range(log.partitions))
        # The first process passes everything on by now.
        await play_out(match)
    assert (await admitted(log))[match.match_id][-1].final


async def test_handing_over_under_load(log: SqliteLog) -> None:
    """Partitions go to and fro while matches are played: each request counts at most once."""
    hints: dict[int, str] = {}
    shares = [Shares(range(log.partitions), hints), Shares((), hints)]
    async with process(log, ownership=shares[0]) as one, process(log, ownership=shares[1]) as two:
        matches = [await begin(one, (f"a{n}", f"b{n}")) for n in range(4)]

        async def swap() -> None:
            for turn in range(6):
                await asyncio.sleep(0.1)
                old, new = shares[turn % 2], shares[(turn + 1) % 2]
                await old.take(range(log.partitions))
                where = (two, one)[turn % 2]
                hints.update(dict.fromkeys(range(log.partitions), where.address))
                await new.give(range(log.partitions))

        swapping = asyncio.create_task(swap())
        await asyncio.gather(*(play_out(match, patient=True) for match in matches))
        await swapping
    counted = await admitted(log)
    for match in matches:
        commits = counted[match.match_id]
        assert commits[-1].final
        requests = [(c.cause.actor, c.cause.request_id) for c in commits if c.cause]
        assert len(requests) == len(set(requests))


async def test_a_process_that_was_killed(log: SqliteLog) -> None:
    """Without a release the next process claims all the same, and goes on."""
    async with process(log) as first:
        match = await begin(first)
        claims = len(await records(log, 0))
        async with process(log) as second:
            match.players = [second.player("ann"), second.player("bob")]
            await play_out(match)
    assert claims
    assert (await admitted(log))[match.match_id][-1].final


async def test_rules_that_differ_from_the_log(
    log: SqliteLog, caplog: pytest.LogCaptureFixture
) -> None:
    """A match whose record the rules do not repeat is frozen; the others go on."""
    async with process(log) as here:
        match = await begin(here)
        healthy = await begin(here, ("eve", "fay"))
    commits = (await admitted(log))[match.match_id]
    await _forge(log, commits)
    async with process(log) as here:
        ann = here.player("ann")
        with pytest.raises(ApiError) as error:
            await ann.answer(match.match_id, "p1", "keep")
        assert refused(error) == "MATCH_FROZEN"
        # It can still be looked at.
        updates = await ann.updates(match.match_id, until=5)
        assert [update.sequence for update in updates] == [1, 2, 3, 4, 5]
        healthy.players = [here.player("eve"), here.player("fay")]
        await play_out(healthy)
        assert here.node.healthy
    # Operators learn where, nobody learns what.
    assert "is frozen: fact" in caplog.text
    assert "picks=" not in caplog.text


async def _forge(log: SqliteLog, commits: list[Any]) -> None:
    """Add a commit that counts but that no rule would have made: the last one's facts again."""
    partition = commits[-1].partition
    tail = PartitionTail(log, partition)
    reader = asyncio.create_task(_drain(tail))
    await _claim(log, partition)
    await tail.catch_up()
    reader.cancel()
    last, cause = commits[-1], commits[-1].cause
    forged = make_commit(
        log_id=log.log_id,
        partition=partition,
        writer="forger",
        epoch=tail.admission.epoch,
        match_id=last.match_id,
        sequence=last.sequence + 1,
        first_fact=last.first_fact + last.fact_count,
        facts=last.facts()[-1:],
        cause=type(cause)(actor=cause.actor, request_id="forged", digest=b"x"),
        previous_hash=last.hash,
        ruleset=last.ruleset,
    )
    await log.append(partition, last.match_id.encode(), forged.value)


async def test_a_wrong_master_key(log: SqliteLog) -> None:
    """Dice that do not fit the commitment are never rolled: the match is frozen."""
    async with process(log) as here:
        match = await begin(here)
        (prompt,) = await match.players[0].prompts(match.match_id)
    for keys in (KeyRing("k1", {"k1": bytes(32)}), KeyRing("k2", {"k2": bytes(32)})):
        async with process(log, keys=keys) as here:
            with pytest.raises(ApiError) as error:
                await here.player("ann").answer(match.match_id, prompt.prompt_id, "keep")
            assert refused(error) == "MATCH_FROZEN"


async def test_a_session_that_breaks(log: SqliteLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unexpected failure of the rules is an incident; the match goes on from the log."""
    async with process(log) as here:
        match = await begin(here)
        (prompt,) = await match.players[0].prompts(match.match_id)
        with monkeypatch.context() as patched:
            patched.setattr(Session, "answer", _broken)
            with pytest.raises(ApiError) as error:
                await match.players[0].answer(match.match_id, prompt.prompt_id, "keep")
            assert refused(error) == "INTERNAL"
            assert "secret" not in error.value.message
        await match.players[0].answer(match.match_id, prompt.prompt_id, "keep")
        await play_out(match)


async def test_a_step_that_cannot_be_written(
    log: SqliteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When a decided step cannot become a record, the session that took it is thrown away."""
    async with process(log) as here:
        match = await begin(here)
        (prompt,) = await match.players[0].prompts(match.match_id)
        with monkeypatch.context() as patched:
            patched.setattr("services.match.partition.make_commit", _broken)
            with pytest.raises(ApiError) as error:
                await match.players[0].answer(match.match_id, prompt.prompt_id, "keep")
            assert refused(error) == "INTERNAL"
        await match.players[0].answer(match.match_id, prompt.prompt_id, "keep")
        await play_out(match)


async def test_a_match_that_cannot_be_rebuilt(
    log: SqliteLog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever goes wrong in rebuilding freezes the match, and no fact's content is logged."""
    async with process(log) as here:
        match = await begin(here)
        (prompt,) = await match.players[0].prompts(match.match_id)
    async with process(log) as here:
        monkeypatch.setattr(Session, "rebuild", _broken)
        for _ in range(2):
            with pytest.raises(ApiError) as error:
                await here.player("ann").answer(match.match_id, prompt.prompt_id, "keep")
            assert refused(error) == "MATCH_FROZEN"
    assert len([r for r in caplog.records if "is frozen" in r.message]) == 1
    assert "secret" not in caplog.text


def _broken(*_: object, **__: object) -> None:
    raise ZeroDivisionError("a secret detail")


async def test_a_record_of_newer_software(log: SqliteLog) -> None:
    """What cannot be read is not passed: the process says that it must end."""
    async with process(log) as here:
        ann = here.player("ann")
        created = await ann.create()
        watching = asyncio.create_task(ann.updates(created.match_id))
        await ann.join(created.match_id)
        assert here.node.healthy
        partition = partition_of(created.match_id, log.partitions)
        await log.append(partition, b"x", b"\x08\x63")
        sentence = await asyncio.wait_for(here.node.failed(), 5)
        assert "newer software" in sentence
        assert not here.node.healthy
        with pytest.raises(ApiError) as error:
            await watching
        assert refused(error) == "NO_OWNER"
