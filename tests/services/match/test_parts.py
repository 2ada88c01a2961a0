"""The parts of the service one by one: ids, queues, quotas, memory, chains of commits, limits."""

from dataclasses import replace
from typing import Any

import pytest

from diceledger.match.v1 import match_pb2
from services.common.auth import Caller
from services.common.commits import Cause, ParsedCommit, Ruleset, make_commit
from services.common.errors import ApiError, refuse
from services.common.factcodec import EncodedFact
from services.common.log.sqlite import SqliteLog
from services.common.settings import Settings
from services.match.commands import new_match_id, read_create, read_join, read_submit
from services.match.limits import Limits, Quota
from services.match.live_match import Frozen, LiveMatch, chain_of
from services.match.memory import Memory
from services.match.outcomes import Outcome
from services.match.queue import Job, MatchQueue
from tests.services.match.serving import (
    LIMITS,
    Begun,
    answering,
    begin,
    play_out,
    process,
    refused,
)

ANN = Caller("ann", frozenset({"player"}), "Ann A.", 9e9)


def test_match_ids() -> None:
    """The id follows from log, caller and request: nobody can choose another's."""
    ids = {
        new_match_id(*parts)
        for parts in (("l", "ann", "r"), ("l", "an", "nr"), ("k", "ann", "r"), ("l", "ann", "s"))
    }
    assert len(ids) == 4
    assert all(len(match_id) == 26 and match_id.isalnum() for match_id in ids)


def test_digests_tell_contents_apart() -> None:
    """Every field of a request is part of its digest; unset and default are the same."""
    base: dict[str, Any] = {"request_id": "r", "game": "g", "seats": 2}
    variants: tuple[dict[str, Any], ...] = (
        {},
        {"seats": 3},
        {"preset": "a"},
        {"options": {"a": "b"}},
        {"options": {"a": "b", "c": "d"}},
        {"expansions": ["a", "b"]},
        {"expansions": ["ab"]},
        {"answer_timeout_seconds": 5},
    )
    digests = [
        read_create(match_pb2.CreateMatchRequest(**{**base, **variant}), ANN, "log").digest
        for variant in variants
    ]
    assert len(set(digests)) == len(variants)
    one, two = {"a": "1", "b": "2"}, {"b": "2", "a": "1"}
    same = [
        read_create(match_pb2.CreateMatchRequest(**base, options=options), ANN, "log").digest
        for options in (one, two)
    ]
    assert same[0] == same[1]


def test_answers_are_told_apart() -> None:
    """A selection of nothing, a number and an allocation are different answers."""
    answers = (
        match_pb2.Answer(selection=match_pb2.Selection()),
        match_pb2.Answer(selection=match_pb2.Selection(options=["1"])),
        match_pb2.Answer(number=0),
        match_pb2.Answer(number=1),
        match_pb2.Answer(allocation=match_pb2.Allocation(amounts=[1])),
        match_pb2.Answer(allocation=match_pb2.Allocation(amounts=[1, 0])),
    )
    digests = {
        read_submit(answering("a" * 26, "p1", answer=answer), ANN).digest for answer in answers
    }
    assert len(digests) == len(answers)


def test_an_empty_name_is_the_tokens() -> None:
    """The name at the table is the request's, else the token's; the digest is the request's."""
    request = match_pb2.JoinMatchRequest(request_id="r", match_id="a" * 26)
    command = read_join(request, ANN)
    assert command.name == "Ann A."
    assert read_join(request, replace(ANN, name="Other")).digest == command.digest


def test_long_answers_are_refused() -> None:
    """The edge refuses what no prompt can want, before any match is looked at."""
    for picks in (["x"] * 201, ["x" * 65]):
        with pytest.raises(ApiError) as error:
            read_submit(answering("a" * 26, "p1", *picks), ANN)
        assert refused(error) == "ILLEGAL_ANSWER"


def _submit(request_id: str, pick: str = "keep") -> Any:
    return read_submit(answering("a" * 26, "p1", pick, request_id=request_id), ANN)


def test_a_queue_holds_each_request_once() -> None:
    """The same request again joins the one that is under way; another content is refused."""
    queue, heard = MatchQueue(), list[Outcome]()
    queue.put(Job(_submit("r1"), heard.append))
    assert queue.join(_submit("r1"), heard.append)
    assert not queue.join(_submit("r2"), heard.append)
    with pytest.raises(ApiError) as error:
        queue.join(_submit("r1", "swap"), heard.append)
    assert refused(error) == "REQUEST_ID_REUSED"
    queue.put(Job(_submit("r2"), heard.append))
    job = queue.take()
    assert job is not None
    outcome = refuse("NOT_APPLIED")
    queue.finish(job, outcome)
    assert heard == [outcome, outcome]
    assert not queue.join(_submit("r1"), heard.append)
    over = refuse("NO_OWNER")
    queue.refuse_waiting(over)
    assert heard[2:] == [over]
    assert queue.take() is None


def test_quotas() -> None:
    """What each and what all have is counted, and given back."""
    quota = Quota("TOO_MANY_IN_FLIGHT", 3, 2)
    quota.take("ann")
    quota.take("ann")
    with pytest.raises(ApiError) as error:
        quota.take("ann")
    assert error.value.metadata == {"limit": "2", "of": "caller"}
    quota.take("bob")
    with pytest.raises(ApiError):
        quota.take("cid")
    quota.give_back("ann")
    quota.take("cid")
    assert quota.total == 3


def test_limits_of_settings() -> None:
    """What an operator sets is what holds."""
    limits = Limits.of(Settings(in_flight_max=8, watchers_max=7, live_matches_max=5))
    assert (limits.in_flight, limits.in_flight_per_caller) == (8, 4)
    assert limits.in_flight_per_stream <= limits.in_flight_per_caller
    assert (limits.watchers, limits.live_matches) == (7, 5)


def _commit(sequence: int, before: ParsedCommit | None, request_id: str = "r") -> ParsedCommit:
    return make_commit(
        log_id="log",
        partition=0,
        writer="w",
        epoch=1,
        match_id="a" * 26,
        sequence=sequence,
        first_fact=sequence - 1,
        facts=[EncodedFact("type", bytes(100))],
        cause=Cause(request_id=f"{request_id}{sequence}", actor="ann"),
        previous_hash=before.hash if before else b"",
        ruleset=Ruleset("game"),
    )


def test_the_chain_is_found_among_void_records() -> None:
    """Only the commits that lead to the head count, whatever else lies in the log."""
    first = _commit(1, None)
    second, twin = _commit(2, first), _commit(2, first, "zombie")
    third = _commit(3, second)
    late = _commit(3, twin)
    records = [(5, first), (6, twin), (7, second), (8, first), (9, late), (11, third), (12, second)]
    chain = chain_of("a" * 26, third.hash, iter(records))
    assert [offset for offset, _ in chain] == [5, 7, 11]
    with pytest.raises(Frozen):
        chain_of("a" * 26, third.hash, iter(records[4:]))


def test_memory_lets_the_oldest_go() -> None:
    """The least recently used match goes first; one in use stays; the newest always stays."""
    memory, gone = Memory(2_000), list[LiveMatch]()
    matches = []
    for _ in range(4):
        match = LiveMatch("a" * 26)
        match.append(0, _commit(1, None))
        matches.append(match)
    in_use = matches[0]

    def evict(match: LiveMatch) -> bool:
        if match is in_use:
            return False
        gone.append(match)
        return True

    for match in matches:
        memory.touch(match, evict)
    assert gone[0] is matches[1]
    assert in_use not in gone
    assert matches[3] not in gone
    memory.forget(in_use)
    for match in matches:
        memory.forget(match)
    assert memory.bytes == 0
    assert len(memory) == 0


async def test_too_many_matches_of_one_host(log: SqliteLog) -> None:
    """Nobody opens more matches than a host may; a repeated request is answered all the same."""
    async with process(log, limits=LIMITS.__class__(matches_per_host=2)) as here:
        ann = here.player("ann")
        created = [await ann.create(request_id=f"c{number}") for number in range(2)]
        with pytest.raises(ApiError) as error:
            await ann.create()
        assert refused(error) == "TOO_MANY_MATCHES"
        assert error.value.metadata == {"limit": "2", "of": "host"}
        assert await ann.create(request_id="c0") == created[0]
        await here.player("bob").create()
        organiser = here.player("ann", roles=["organiser"])
        await organiser.create()
    # What counts is what is in the log, whoever reads it; a match that is over counts no more.
    limits = LIMITS.__class__(matches_per_host=4)
    async with process(log, limits=limits) as here:
        ann, bob = here.player("ann"), here.player("bob")
        await ann.create()
        with pytest.raises(ApiError):
            await ann.create()
        for player in (ann, bob):
            await player.join(created[0].match_id)
        started = await ann.start(created[0].match_id)
        await play_out(Begun(created[0].match_id, [ann, bob], started.receipt.sequence))
        await ann.create()


async def test_lobbies_do_not_keep_players_out(log: SqliteLog) -> None:
    """Lobbies and running matches have limits of their own."""
    async with process(log, limits=LIMITS.__class__(lobbies=2, live_matches=1)) as here:
        running = await begin(here)
        waiting = [await here.player(f"h{number}").create() for number in range(2)]
        with pytest.raises(ApiError) as error:
            await here.player("zoe").create()
        assert refused(error) == "TOO_MANY_MATCHES"
        for name in ("h0", "eve"):
            await here.player(name).join(waiting[0].match_id)
        with pytest.raises(ApiError) as error:
            await here.player("h0").start(waiting[0].match_id)
        assert refused(error) == "TOO_MANY_MATCHES"
        await play_out(running)
        await here.player("h0").start(waiting[0].match_id)


async def test_metrics(log: SqliteLog) -> None:
    """Commands by result, latency, partitions, matches and watches can be scraped."""
    async with process(log) as here:
        ann = here.player("ann")
        created = await ann.create()
        with pytest.raises(ApiError):
            await ann.create(game="chess")
        call = ann.watch(created.match_id)
        await call.read()
        value = here.metrics.registry.get_sample_value
        labels = {"command": "create", "result": "ok"}
        assert value("diceledger_commands_total", labels) == 1
        labels["result"] = "UNKNOWN_GAME"
        assert value("diceledger_commands_total", labels) == 1
        assert value("diceledger_command_ack_seconds_count", {"command": "create"}) == 1
        assert value("diceledger_partition_owned", {"partition": "1"}) == 1
        assert value("diceledger_watchers") == 1
        assert value("diceledger_commands_in_flight") == 0
        call.cancel()
    assert value("diceledger_partition_owned", {"partition": "1"}) == 0
