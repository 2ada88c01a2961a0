"""Watches: from any sequence, each commit once, nothing that the viewer may not know."""

import asyncio

import grpc.aio
import pytest

from diceledger.log.v1 import commit_pb2
from diceledger.match.v1 import match_pb2
from engine import CORE_FACTS, Hidden, Seat
from services.common.errors import ApiError, parse_error
from services.common.log.sqlite import SqliteLog
from services.common.redaction import check_redacted_chain, redact_commit, restore_facts
from services.match.watch import LocalFeed
from services.match.wire import (
    LIVE,
    encode_own,
    play_response,
    unwrap_watch_response,
    watch_response,
)
from tests.services.match.serving import (
    LIMITS,
    Process,
    admitted,
    begin,
    play_out,
    process,
    refused,
    until,
)


async def test_from_every_sequence(here: Process) -> None:
    """The stream from any sequence is the suffix of the whole stream; it ends after the last."""
    match = await begin(here)
    last = await play_out(match)
    ann = match.players[0]
    whole = await ann.updates(match.match_id)
    assert [update.sequence for update in whole] == list(range(1, last + 1))
    for start in range(1, last + 2):
        assert await ann.updates(match.match_id, start) == whole[start - 1 :]


async def test_past_the_end(here: Process) -> None:
    """Nobody can watch from a commit that nobody knows."""
    match = await begin(here)
    for wanted, reason in ((match.sequence + 2, "SEQUENCE_OUT_OF_RANGE"), (-1, "BAD_SEQUENCE")):
        with pytest.raises(ApiError) as error:
            await match.players[0].updates(match.match_id, wanted)
        assert refused(error) == reason
    with pytest.raises(ApiError) as error:
        await match.players[0].updates("a" * 26)
    assert refused(error) == "MATCH_NOT_FOUND"


async def test_live_and_gapless(here: Process) -> None:
    """Watchers that come and go at any time see every commit once, in order."""
    match = await begin(here)
    spectator = here.player("zoe")
    seen: dict[int, list[int]] = {}

    async def watch(number: int) -> None:
        await asyncio.sleep(0.01 * number)
        start = 1 + number % 4
        updates = await spectator.updates(match.match_id, start)
        seen[number] = [update.sequence for update in updates]

    watching = [asyncio.create_task(watch(number)) for number in range(12)]
    last = await play_out(match)
    await asyncio.gather(*watching)
    for number, sequences in seen.items():
        assert sequences == list(range(1 + number % 4, last + 1))


async def test_secrets_stay_secret_until_the_end(log: SqliteLog, here: Process) -> None:
    """Each viewer gets what redaction gives it, a whole hash chain, after the end everything."""
    match = await begin(here)
    before = [
        await player.updates(match.match_id, until=match.sequence)
        for player in (*match.players, here.player("zoe"))
    ]
    commits = (await admitted(log))[match.match_id]
    for seat, updates in enumerate(before, 1):
        viewer = Seat(seat) if seat <= 2 else None
        digest = b""
        for update, commit in zip(updates, commits, strict=True):
            assert update.commit == redact_commit(commit, viewer)
            digest = check_redacted_chain(digest, update.commit)
    assert _hidden(before[0]) == _hidden(before[1]) > 0
    assert _hidden(before[2]) > _hidden(before[0])
    await play_out(match)
    commits = (await admitted(log))[match.match_id]
    after = await here.player("zoe").updates(match.match_id)
    assert [u.commit for u in after] == [redact_commit(c, None, everything=True) for c in commits]
    assert _hidden(after) == 0


def _hidden(updates: list[match_pb2.Update]) -> int:
    facts = [fact for update in updates for fact in restore_facts(update.commit)]
    return sum(
        isinstance(getattr(fact, f), Hidden) for fact in facts for f in fact.__struct_fields__
    )


async def test_prompts_are_for_their_seat_alone(here: Process) -> None:
    """Prompts come with the newest commit, to the seat that is asked, in its language."""
    match = await begin(here)
    ann, bob = match.players
    for player, seat in ((ann, 1), (bob, 2)):
        updates = await player.updates(match.match_id, until=match.sequence)
        assert [bool(update.prompts) for update in updates] == [False] * 3 + [True]
        assert [update.live for update in updates] == [False] * 3 + [True]
        (prompt,) = updates[-1].prompts
        assert prompt.seat == seat
        assert prompt.title == f"{player.subject}, swap your card?"
        assert [option.label for option in prompt.options] == ["swap", "keep"]
    updates = await here.player("zoe").updates(match.match_id, until=match.sequence)
    assert not any(update.prompts for update in updates)
    bob.metadata += (("accept-language", "zh"),)
    (prompt,) = await bob.prompts(match.match_id)
    assert prompt.title == "bob，换牌吗？"


async def test_status(here: Process) -> None:
    """Each update says what the match is after its commit."""
    match = await begin(here)
    last = await play_out(match)
    updates = await match.players[0].updates(match.match_id)
    lobby, running = match_pb2.MATCH_STATUS_LOBBY, match_pb2.MATCH_STATUS_RUNNING
    finished = match_pb2.MATCH_STATUS_FINISHED
    assert [u.status for u in updates] == [lobby] * 3 + [running] * (last - 4) + [finished]


async def test_a_spectator_who_sits_down(here: Process) -> None:
    """Who joins while watching sees as the seat from then on."""
    ann, bob = here.player("ann"), here.player("bob")
    created = await ann.create()
    watching = asyncio.create_task(bob.updates(created.match_id, until=4))
    await asyncio.sleep(0.05)
    await ann.join(created.match_id)
    await bob.join(created.match_id)
    await ann.start(created.match_id)
    updates = await watching
    assert [prompt.seat for prompt in updates[-1].prompts] == [2]


async def test_finished_matches_are_read_from_the_log(log: SqliteLog) -> None:
    """What is in memory no more is read back, void records and other matches left out."""
    async with process(log, limits=LIMITS.__class__(memory_bytes=1)) as here:
        matches = [await begin(here, (f"a{n}", f"b{n}")) for n in range(4)]
        await asyncio.gather(*(play_out(match) for match in matches))
        # Copies of records that counted: void.
        commits = await admitted(log)
        for match in matches:
            for commit in commits[match.match_id][::3]:
                await log.append(commit.partition, match.match_id.encode(), commit.value)
        fresh = [await begin(here, (f"c{n}", f"d{n}")) for n in range(3)]
        assert len(here.node._memory) < 4
        for match in matches:
            updates = await match.players[0].updates(match.match_id)
            wanted = commits[match.match_id]
            assert [update.commit.hash for update in updates] == [c.hash for c in wanted]
        for match in fresh:
            await play_out(match)


async def test_a_slow_watcher(here: Process) -> None:
    """A watcher that was live and fell too far behind is cut off, and told where to resume."""
    match = await begin(here)
    woken: list[int] = []
    owner = next(o for o in here.node._owners.values() if match.match_id in o._matches)
    feed = LocalFeed(
        owner,
        owner._matches[match.match_id],
        subject="zoe",
        locale="en",
        from_sequence=1,
        lag_max=3,
        wake=lambda: woken.append(1),
    )
    assert len(feed.take(2)) == 2
    assert len(feed.take(9)) == 2
    last = await play_out(match)
    assert woken
    assert feed.take(9) == []
    assert feed.ended
    assert feed.error is not None
    assert feed.error.reason == "SLOW_WATCHER"
    assert feed.error.metadata["next_sequence"] == "5" != str(last)
    feed.close()
    assert not owner._matches[match.match_id].listeners


async def test_a_watcher_that_takes_nothing(log: SqliteLog) -> None:
    """A stream whose reader stopped reading is ended; the match goes on."""
    limits = LIMITS.__class__(write_stall_s=0.3)
    async with process(log, limits=limits) as here:
        match = await begin(here)
        await play_out(match)
        options = [
            ("grpc.http2.lookahead_bytes", 1024),
            ("grpc.http2.bdp_probe", 0),
            ("grpc.use_local_subchannel_pool", 1),
        ]
        async with grpc.aio.insecure_channel(here.address, options=options) as channel:
            zoe = here.player("zoe")
            watch = channel.unary_stream(
                "/diceledger.match.v1.MatchService/WatchMatch",
                request_serializer=match_pb2.WatchMatchRequest.SerializeToString,
                response_deserializer=match_pb2.WatchMatchResponse.FromString,
            )
            request = match_pb2.WatchMatchRequest(match_id=match.match_id)
            call = watch(request, metadata=zoe.metadata)
            await asyncio.sleep(2.5)
            sequences = []
            with pytest.raises(grpc.aio.AioRpcError) as error:
                async for response in call:
                    sequences.append(response.update.sequence)
        failure = parse_error(error.value)
        assert failure.reason == "SLOW_WATCHER"
        assert sequences
        # The last one may or may not have been on its way.
        assert sequences[-1] <= int(failure.metadata["next_sequence"]) <= sequences[-1] + 1


async def test_limits_of_watchers(log: SqliteLog) -> None:
    """Watchers of one caller, of one match and of the process are limited."""
    limits = LIMITS.__class__(watchers=5, watchers_per_caller=2, watchers_per_match=3)
    async with process(log, limits=limits) as here:
        first, second = await begin(here), await begin(here, ("cid", "dan"))
        opened = []

        async def refusal(name: str, match_id: str) -> str:
            call = here.player(name).watch(match_id)
            try:
                await call.read()
            except grpc.aio.AioRpcError as error:
                return parse_error(error).reason
            opened.append(call)
            return ""

        assert await refusal("zoe", first.match_id) == ""
        assert await refusal("zoe", second.match_id) == ""
        assert await refusal("zoe", second.match_id) == "TOO_MANY_WATCHERS"
        assert await refusal("yan", first.match_id) == ""
        assert await refusal("wes", first.match_id) == ""
        assert await refusal("vic", first.match_id) == "TOO_MANY_WATCHERS"
        assert await refusal("vic", second.match_id) == ""
        assert await refusal("uma", second.match_id) == "TOO_MANY_WATCHERS"
        for call in opened:
            call.cancel()
        await until(lambda: not here.node._watchers.total)
        assert await refusal("uma", second.match_id) == ""


def test_updates_as_bytes() -> None:
    """What is put together by hand is what protobuf itself makes."""
    prompts = [match_pb2.Prompt(prompt_id="p1", seat=2), match_pb2.Prompt(prompt_id="p2")]
    actions = [match_pb2.Action(action="use:3")]
    for size in (0, 1, 100, 127, 128, 20_000):
        base = match_pb2.Update(
            match_id="m", sequence=3, commit=commit_pb2.RedactedCommit(hash=bytes(size))
        )
        whole = match_pb2.Update()
        whole.CopyFrom(base)
        whole.live = True
        whole.prompts.extend(prompts)
        whole.actions.extend(actions)
        encoded = base.SerializeToString() + LIVE + encode_own(prompts, actions)
        watched = watch_response(encoded)
        assert match_pb2.WatchMatchResponse.FromString(watched).update == whole
        assert match_pb2.PlayResponse.FromString(play_response(encoded)).update == whole
        assert unwrap_watch_response(watched) == encoded
    for bad in (b"\x12\x00", b"\x0a\x01", b"\x0a\x00\x00"):
        with pytest.raises(ValueError, match="WatchMatchResponse"):
            unwrap_watch_response(bad)


def test_core_facts_are_what_the_service_reads() -> None:
    """The service knows the lobby by its causes; their facts exist."""
    assert {"match_created", "seat_taken", "match_started"} <= {
        str(fact.__struct_config__.tag) for fact in CORE_FACTS
    }
