"""Actions at any time: whoever is asked, a seat may do what it is offered."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from diceledger.match.v1 import match_pb2
from engine import (
    ActionTaken,
    Answer,
    MatchState,
    Option,
    Prompted,
    PromptsWithdrawn,
    Seat,
    encode_state,
    state_hash,
)
from services.client import RandomBot, Record, connect, take_part
from services.common.auth import make_token
from services.common.commits import Cause, How, ParsedCommit, make_commit
from services.common.errors import ApiError, from_status
from services.common.log.sqlite import SqliteLog
from services.common.prompts_wire import answer_from_wire, answer_to_wire
from services.common.redis_store import connect_redis
from services.common.verify import CheckStatus, Placed, verify_commits
from tests.services.match.healing import (
    Healing,
    another_is_asked,
    healing,
    hurt,
    the_question_changes,
)
from tests.services.match.serving import (
    KEY,
    LIMITS,
    FaultyLog,
    Player,
    Process,
    Shares,
    admitted,
    begin,
    cause_of,
    new_id,
    placed,
    play_out,
    process,
    refused,
    size,
)
from tests.services.match.test_play import Stream
from tests.services.match.test_queries import Whole, _get, whole
from tests.services.projector.checking import views_of

__all__ = ["whole"]


def taking(match_id: str, action: str, **fields: Any) -> match_pb2.TakeActionRequest:
    """The request that takes an action."""
    fields = {"request_id": new_id(), **fields}
    return match_pb2.TakeActionRequest(match_id=match_id, action=action, **fields)


async def take(player: Player, match_id: str, action: str, **fields: Any) -> match_pb2.Receipt:
    done = await player.call("TakeAction", taking(match_id, action, **fields))
    receipt: match_pb2.Receipt = done.receipt
    return receipt


async def newest(player: Player, match_id: str) -> match_pb2.Update:
    """The newest commit as the player sees it."""
    call = player.watch(match_id, 1)
    try:
        async for response in call:
            if response.update.live:
                update: match_pb2.Update = response.update
                return update
    finally:
        call.cancel()
    raise AssertionError("the watch ended")


async def commits_of(log: SqliteLog, match_id: str) -> list[ParsedCommit]:
    return (await admitted(log))[match_id]


async def test_an_action_while_another_is_asked(log: SqliteLog, here: Process) -> None:
    """A commit of its own; the cause names it, the question stays open, the match verifies."""
    found = await healing(here, another_is_asked)
    before = await newest(found.healer, found.match_id)
    assert not before.prompts
    (offered,) = before.actions
    assert (offered.action, offered.subject) == (found.action, "use:rapid_healing")
    assert offered.label == "use Rapid Healing"
    (asked,) = await found.other.prompts(found.match_id)
    receipt = await take(found.healer, found.match_id, found.action, request_id="act")
    assert receipt.sequence == found.match.sequence + 1
    assert await found.other.prompts(found.match_id) == [asked]
    commit = (await commits_of(log, found.match_id))[-1]
    assert commit.facts()[0] == ActionTaken(found.seat, found.action)
    cause = cause_of(commit)
    assert (cause.command, cause.how, cause.seat) == ("action", How.ANSWER, found.seat)
    said = answer_from_wire(match_pb2.Answer.FromString(cause.answer))
    assert said == Answer(picks=(found.action,))
    # The engine alone does the same.
    assert commit.facts() == found.session.take_action(found.seat, found.action).facts
    assert await take(found.healer, found.match_id, found.action, request_id="act") == receipt
    with pytest.raises(ApiError) as error:
        await take(found.healer, found.match_id, "use:9", request_id="act")
    assert refused(error) == "REQUEST_ID_REUSED"
    await _to_the_end(found)
    report = verify_commits(await placed(log, found.match_id))
    assert report.passed, report
    assert report.check("dice").status is CheckStatus.PASSED


async def _to_the_end(found: Healing) -> None:
    """Everybody answers by the default."""
    await asyncio.gather(*(_play(found.match_id, player) for player in found.match.players))


async def _play(match_id: str, player: Player) -> None:
    async for response in player.watch(match_id, 1):
        for prompt in response.update.prompts:
            await player.answer(match_id, prompt.prompt_id, answer=prompt.default_answer)


async def test_only_the_own_seat_is_told_what_it_may_do(here: Process) -> None:
    """In updates as of the newest commit; in Chinese for who reads Chinese."""
    found = await healing(here)
    for player in (found.other, here.player("zoe")):
        assert not (await newest(player, found.match_id)).actions
    healer = found.healer
    updates = await healer.updates(found.match_id, until=found.match.sequence)
    assert [len(update.actions) for update in updates[-2:]] == [0, 1]
    healer.metadata += (("accept-language", "zh"),)
    (offered,) = (await newest(healer, found.match_id)).actions
    assert offered.label.startswith("使用")


async def test_a_question_that_changes_is_put_anew(log: SqliteLog, here: Process) -> None:
    """It is withdrawn; who answers it all the same is told so; the new one keeps its deadline."""
    found = await healing(here, the_question_changes, answer_timeout_s=3600)
    (asked,) = await found.healer.prompts(found.match_id)
    await take(found.healer, found.match_id, found.action)
    (again,) = await found.healer.prompts(found.match_id)
    assert again.prompt_id != asked.prompt_id
    assert (again.kind, again.deadline_ms) == (asked.kind, asked.deadline_ms)
    assert len(again.options) < len(asked.options)
    commits = await commits_of(log, found.match_id)
    facts = commits[-1].facts()
    assert [fact.prompt_ids for fact in facts if isinstance(fact, PromptsWithdrawn)] == [
        (asked.prompt_id,)
    ]
    assert [fact.prompt.id for fact in facts if isinstance(fact, Prompted)] == [again.prompt_id]
    assert commits[-1].deadline_ms == commits[-2].deadline_ms > 0
    with pytest.raises(ApiError) as error:
        await found.healer.answer(
            found.match_id, asked.prompt_id, answer=answer_to_wire(Answer(), "select")
        )
    assert refused(error) == "PROMPT_CLOSED"
    await found.healer.answer(
        found.match_id, again.prompt_id, answer=answer_to_wire(Answer(), "select")
    )
    commits = await commits_of(log, found.match_id)
    # What is asked next has time of its own.
    assert commits[-1].deadline_ms > commits[-2].deadline_ms


async def test_an_action_gives_nobody_time(log: SqliteLog, here: Process) -> None:
    """A question that stays open keeps its deadline when somebody else acts."""
    found = await healing(here, another_is_asked, answer_timeout_s=3600)
    (asked,) = await found.other.prompts(found.match_id)
    await take(found.healer, found.match_id, found.action)
    assert await found.other.prompts(found.match_id) == [asked]
    commits = await commits_of(log, found.match_id)
    assert commits[-1].deadline_ms == commits[-2].deadline_ms == asked.deadline_ms > 0


async def test_actions_that_are_refused(log: SqliteLog, here: Process) -> None:
    """Each refusal has its reason and writes nothing."""
    found = await healing(here)
    lobby = await found.healer.create()
    await found.healer.join(lobby.match_id)
    finished = await begin(here)
    await play_out(finished)
    before = await size(log)
    healer, here_it_is = found.healer, found.match_id
    cases = {
        "NOT_A_PLAYER": take(here.player("zoe"), here_it_is, found.action),
        "ACTION_NOT_OFFERED to another": take(found.other, here_it_is, found.action),
        "ACTION_NOT_OFFERED at all": take(healer, here_it_is, "use:99"),
        "ACTION_NOT_OFFERED empty": take(healer, here_it_is, ""),
        "ACTION_NOT_OFFERED too long": take(healer, here_it_is, "u" * 65),
        "BAD_REQUEST_ID": take(healer, here_it_is, found.action, request_id="?"),
        "BAD_MATCH_ID": take(healer, "x", found.action),
        "MATCH_NOT_FOUND": take(healer, "a" * 26, found.action),
        "MATCH_NOT_STARTED": take(healer, lobby.match_id, found.action),
        "MATCH_FINISHED": take(finished.players[0], finished.match_id, found.action),
    }
    reasons = {}
    for name, call in cases.items():
        with pytest.raises(ApiError) as error:
            await call
        reasons[name] = refused(error)
    assert reasons == {name: name.partition(" ")[0] for name in cases}
    assert await size(log) == before
    labels = {"command": "action", "result": "ACTION_NOT_OFFERED"}
    assert here.metrics.registry.get_sample_value("diceledger_commands_total", labels) == 4


async def test_the_same_action_sixteen_times_at_once(log: SqliteLog, here: Process) -> None:
    """One request is one commit; different requests are as many as the seat can pay for."""
    found = await healing(here, hurt(2))
    before = len(await commits_of(log, found.match_id))
    same = [take(found.healer, found.match_id, found.action, request_id="one") for _ in range(16)]
    receipts = await asyncio.gather(*same)
    assert all(receipt == receipts[0] for receipt in receipts)
    commits = await commits_of(log, found.match_id)
    assert len(commits) == before + 1
    session = found.session
    session.take_action(found.seat, found.action)
    left = 0
    while session.state.actions_of(found.seat):
        session.take_action(found.seat, found.action)
        left += 1
    outcomes = await asyncio.gather(
        *(take(found.healer, found.match_id, found.action) for _ in range(16)),
        return_exceptions=True,
    )
    reasons = [each.reason for each in outcomes if isinstance(each, ApiError)]
    assert reasons == ["ACTION_NOT_OFFERED"] * (16 - left)
    assert left >= 1
    assert len(await commits_of(log, found.match_id)) == before + 1 + left
    assert not (await newest(found.healer, found.match_id)).actions


async def test_through_another_process(log: SqliteLog) -> None:
    """The call is passed on to the owner, in either language; so is what a watch is told."""
    hints: dict[int, str] = {}
    async with (
        process(log, ownership=Shares(range(log.partitions), hints)),
        process(log, ownership=Shares((), hints)) as other,
    ):
        found = await healing(other)
        assert len((await newest(found.healer, found.match_id)).actions) == 1
        with pytest.raises(ApiError) as error:
            await take(found.other, found.match_id, found.action)
        assert refused(error) == "ACTION_NOT_OFFERED"
        receipt = await take(found.healer, found.match_id, found.action)
        assert receipt.sequence == found.match.sequence + 1


async def test_over_the_stream(log: SqliteLog, here: Process) -> None:
    """A reply by its request id, and an update; a refusal is a reply as well."""
    found = await healing(here, another_is_asked)
    stream = Stream(found.healer)

    async def send(action: str, request_id: str) -> None:
        request = taking(found.match_id, action, request_id=request_id)
        await stream.call.write(match_pb2.PlayRequest(take=request))

    await stream.watch(found.match_id, found.match.sequence)
    (update,) = await stream.updates(1)
    assert [each.action for each in update.actions] == [found.action]
    for action, request_id, reason in (
        ("use:99", "r1", "ACTION_NOT_OFFERED"),
        ("", "r2", "ACTION_NOT_OFFERED"),
        (found.action, "", "BAD_REQUEST_ID"),
    ):
        await send(action, request_id)
        reply = (await stream.read()).reply
        assert (reply.request_id, from_status(reply.error).reason) == (request_id, reason)
    await send(found.action, "act")
    got = [await stream.read(), await stream.read()]
    (reply,) = [each.reply for each in got if each.WhichOneof("response") == "reply"]
    (update,) = [each.update for each in got if each.WhichOneof("response") == "update"]
    assert reply.request_id == "act"
    assert reply.receipt.sequence == update.sequence == found.match.sequence + 1
    # The same request the other way: one commit.
    again = await take(found.healer, found.match_id, found.action, request_id="act")
    assert again == reply.receipt
    stream.cancel()
    assert len(await commits_of(log, found.match_id)) == reply.receipt.sequence


async def test_taken_over_after_actions(log: SqliteLog) -> None:
    """Another process comes to the same: questions, what is offered, deadlines, and it goes on."""
    async with process(log) as here:
        found = await healing(here, the_question_changes, answer_timeout_s=3600)
        await take(found.healer, found.match_id, found.action, request_id="act")
        seen = [await newest(player, found.match_id) for player in found.match.players]
    async with process(log) as here:
        found.match.players = [here.player(each.subject) for each in found.match.players]
        assert [await newest(p, found.match_id) for p in found.match.players] == seen
        receipt = await take(found.healer, found.match_id, found.action, request_id="act")
        assert receipt.sequence == seen[0].sequence
        (prompt,) = await found.healer.prompts(found.match_id)
        commits = await commits_of(log, found.match_id)
        assert prompt.deadline_ms == commits[found.match.sequence - 1].deadline_ms > 0
        if seen[found.seat - 1].actions:
            await take(found.healer, found.match_id, found.action)
        await _to_the_end(found)
    report = verify_commits(await placed(log, found.match_id))
    assert report.passed, report


@pytest.mark.parametrize("fault", ["lose", "unknown", "late", "twice", "refuse"])
async def test_an_append_that_goes_wrong(log: SqliteLog, fault: str) -> None:
    """The session that acted ahead of the log is thrown away; the action counts once, or is
    refused, and then nothing of it is left.
    """
    faulty = FaultyLog(log, late_s=0.05)
    async with process(faulty) as here:
        found = await healing(here, the_question_changes)
        (asked,) = await found.healer.prompts(found.match_id)
        faulty.faults = [fault]
        if fault == "refuse":
            with pytest.raises(ApiError) as error:
                await take(found.healer, found.match_id, found.action, request_id="act")
            assert refused(error) == "LOG_UNAVAILABLE"
            assert await found.healer.prompts(found.match_id) == [asked]
            assert (await newest(found.healer, found.match_id)).actions
        receipt = await take(found.healer, found.match_id, found.action, request_id="act")
        assert receipt.sequence == found.match.sequence + 1
        (again,) = await found.healer.prompts(found.match_id)
        assert again.prompt_id != asked.prompt_id
        await asyncio.sleep(2 * faulty.late_s)
        await _to_the_end(found)
    commits = await commits_of(log, found.match_id)
    assert [cause_of(each).command for each in commits].count("action") == 1
    taken = found.session.take_action(found.seat, found.action)
    assert commits[receipt.sequence - 1].facts() == taken.facts
    report = verify_commits(await placed(log, found.match_id))
    assert report.passed, report


async def test_a_question_that_was_put_anew_is_expired_in_its_time(log: SqliteLog) -> None:
    """Whoever acts until the time is over gets the default of what is asked then."""
    limits = replace(LIMITS, takeover_grace_s=0.05)
    async with process(log, limits=limits) as here:
        found = await healing(here, the_question_changes, answer_timeout_s=2)
        (asked,) = await found.healer.prompts(found.match_id)
        receipt = await take(found.healer, found.match_id, found.action)
        (again,) = await found.healer.prompts(found.match_id)
        await found.healer.updates(found.match_id, until=receipt.sequence + 1)
    expired = (await commits_of(log, found.match_id))[receipt.sequence]
    cause = cause_of(expired)
    assert (cause.how, cause.prompt_id) == (How.TIMEOUT, again.prompt_id)
    assert again.deadline_ms == asked.deadline_ms


async def test_bots_act_when_they_may(log: SqliteLog, here: Process) -> None:
    """Both play on to the end over streams of their own; what they did is in the log."""
    found = await healing(here, hurt(2))

    class Eager(RandomBot):
        def act(self, seat: Seat, actions: tuple[Option, ...], state: MatchState) -> str | None:
            return actions[0].id

    async def play(seat: int, player: Player) -> Record:
        async with (
            connect(here.address, token=make_token(KEY, player.subject)) as client,
            client.play() as stream,
        ):
            return await take_part(stream, found.match_id, seat, Eager(f"seed/{seat}"))

    played = [play(seat, player) for seat, player in enumerate(found.match.players, 1)]
    records = await asyncio.gather(*played)
    acts = [each for record in records for each in record.commands if not each.prompt_id]
    applied = {each.receipt.sequence for each in acts if each.receipt is not None}
    assert applied
    commits = await commits_of(log, found.match_id)
    assert commits[-1].final
    taken = {c.sequence for c in commits if isinstance(c.facts()[0], ActionTaken)}
    assert taken == applied
    report = verify_commits(await placed(log, found.match_id))
    assert report.passed, report


async def test_what_the_read_model_shows(whole: Whole, log: SqliteLog) -> None:
    """Every viewer's state is the fold of what it may see; only the healer is told its actions."""
    found = await healing(whole.match, hurt(2), answer_timeout_s=3600)
    receipt = await take(found.healer, found.match_id, found.action)
    found.session.take_action(found.seat, found.action)
    deadline_ms = (await commits_of(log, found.match_id))[-1].deadline_ms
    for player in (found.healer, found.other, whole.match.player("zoe")):
        view = await _get(player, found.match_id, receipt.position)
        live = await newest(player, found.match_id)
        assert list(view.prompts) == list(live.prompts)
        assert list(view.actions) == list(live.actions)
        assert len(view.actions) == (1 if player is found.healer else 0)
        assert all(prompt.deadline_ms == deadline_ms for prompt in view.prompts)
        # The game has no secrets yet.
        assert view.state_hash == state_hash(found.session.state)
    redis = connect_redis(whole.redis.url, connect_timeout_s=0.5, command_timeout_s=2)
    row = await views_of(redis, log).read_match(found.match_id)
    await redis.aclose()
    assert row is not None
    assert row.state(None) == encode_state(found.session.state)
    assert row.summary.deadline_ms == deadline_ms


# -- verification -------------------------------------------------------------------------------


@pytest.fixture
async def recorded(log: SqliteLog, here: Process) -> AsyncIterator[tuple[Healing, list[Placed]]]:
    """A match up to an action, which is its last commit."""
    found = await healing(here, another_is_asked)
    await take(found.healer, found.match_id, found.action)
    yield found, await placed(log, found.match_id)


def forged(commits: list[Placed], cause: Cause, taken: ActionTaken | None = None) -> list[Placed]:
    """The match with another cause of its last commit, or another action; the hashes fit."""
    last = commits[-1].commit
    facts = (taken or last.facts()[0], *last.facts()[1:])
    made = make_commit(
        log_id=last.log_id,
        partition=last.partition,
        writer=last.writer,
        epoch=last.epoch,
        match_id=last.match_id,
        sequence=last.sequence,
        first_fact=last.first_fact,
        facts=facts,
        cause=cause,
        previous_hash=last.previous_hash,
        ruleset=last.ruleset,
        recorded_at_ms=last.recorded_at_ms,
    )
    return [*commits[:-1], Placed(commits[-1].offset, made)]


async def test_an_action_is_what_its_cause_asked_for(
    recorded: tuple[Healing, list[Placed]],
) -> None:
    """Another action, another seat, another person, no action at all: each is named."""
    found, commits = recorded
    cause = cause_of(commits[-1].commit)
    assert verify_commits(forged(commits, cause)).passed

    def other(**changed: Any) -> Cause:
        fields = {name: getattr(cause, name) for name in cause.__struct_fields__}
        return Cause(**{**fields, **changed})

    elsewhere = answer_to_wire(Answer(picks=("use:9",))).SerializeToString()
    another = 3 - found.seat
    forgeries = {
        "the action in its cause is not": forged(commits, other(answer=elsewhere)),
        f"seat {found.seat} acts": forged(commits, other(seat=another)),
        "for another than the actor": forged(commits, other(actor=found.other.subject)),
        "the answer in its cause cannot be read": forged(commits, other(answer=b"")),
        "its cause is 'answer'": forged(commits, other(command="answer")),
        "its cause is 'action', marked as timeout": forged(commits, other(how=How.TIMEOUT)),
        # Said of the fact instead.
        "the action in its cause is not ": forged(commits, cause, ActionTaken(found.seat, "use:9")),
    }
    for finding, forgery in forgeries.items():
        check = verify_commits(forgery).check("admission")
        assert check.status is CheckStatus.FAILED, finding
        assert check.sequence == len(commits)
        assert finding.strip() in check.finding
    for taken in (
        ActionTaken(found.seat, "use:9"),
        ActionTaken(Seat(another), found.action),
    ):
        rules = verify_commits(forged(commits, cause, taken)).check("rules")
        assert (rules.status, rules.sequence) == (CheckStatus.FAILED, len(commits))
