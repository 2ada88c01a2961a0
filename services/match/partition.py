"""One partition: its tail, its matches in memory, and the commands on them.

Everything that this process knows of a match comes from the partition's tail, its own commits
included. Commands of one match run one after the other; matches do not wait for each other.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from engine import MatchCreated, MatchEnded, RebuildMismatch, Refusal, Session, derive_seed
from services.common.admission import Admitted, Head
from services.common.commits import (
    BadCommit,
    Kind,
    ParsedCommit,
    Ruleset,
    make_commit,
    parse_commit,
)
from services.common.errors import ApiError, incident, refuse
from services.common.keys import KeyRing
from services.common.log import Log, LogBusy, LogError, LogUnavailable
from services.common.metrics import Metrics
from services.common.tail import PartitionTail
from services.match.census import Capacity, Census
from services.match.commands import (
    AnyCommand,
    Create,
    Decision,
    Expire,
    ExpireLobby,
    LaterCommand,
    Start,
    api_error,
    create_session,
    decide,
    expire,
    expire_lobby,
    name_of,
)
from services.match.deadlines import next_deadline_ms
from services.match.limits import Limits
from services.match.live_match import Frozen, LiveMatch, chain_of
from services.match.memory import Memory
from services.match.outcomes import Applied, NotApplied, Outcome, Superseded, position_of
from services.match.queue import Done, Job, MatchQueue
from services.match.timers import Timers
from services.match.writer import Identity, Writer

_logger = logging.getLogger(__name__)

# A command whose commit did not count is decided anew this often before the caller hears of it.
_ATTEMPTS: Final = 3
_EXPIRE_AGAIN_S: Final = 1.0
# Reasons for which there is nothing to expire any more.
_OVERTAKEN: Final = frozenset(
    {"PROMPT_CLOSED", "NOT_IN_LOBBY", "MATCH_FINISHED", "MATCH_NOT_FOUND", "MATCH_FROZEN"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What all partitions of one process share."""

    log: Log
    identity: Identity
    keys: KeyRing
    limits: Limits
    metrics: Metrics
    memory: Memory
    capacity: Capacity
    # Called with one sentence when a partition can be read no further: the process must end.
    alarm: Callable[[str], None]


class PartitionOwner:
    """Reads one partition, claims it, and serves its matches while the claim stands."""

    def __init__(self, parts: Parts, partition: int) -> None:
        """Nothing happens before `start`."""
        self._parts = parts
        self.partition = partition
        self._tail = PartitionTail(parts.log, partition, on_void=self._count_void)
        self._writer = Writer(parts.log, self._tail, parts.identity, parts.limits)
        self._timers = Timers(self._time_over)
        self._matches: dict[str, LiveMatch] = {}
        self._queues: dict[str, MatchQueue] = {}
        self._loads: dict[str, asyncio.Task[LiveMatch]] = {}
        # How many wait for a match that is being loaded.
        self._wanted: Counter[str] = Counter()
        self._frozen: dict[str, str] = {}
        self.census = Census()
        self._stuck: ApiError | None = None
        self._closing = False
        # The partition can be read no further; the process is about to end.
        self._is_blind = False
        self._reader: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    # -- life -------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to read the partition and to claim it."""
        self._reader = asyncio.create_task(self._read())
        self._writer.start(self)

    async def close(self) -> None:
        """Take no more commands, end those under way, release the partition, stop reading."""
        self._closing = True
        self._timers.stop()
        refusal = refuse("NO_OWNER")
        for queue in tuple(self._queues.values()):
            queue.refuse_waiting(refusal)
        await self._writer.close()
        # Commands under way have heard their outcome by now; let them say it.
        if self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=1.0)
        self._end_watches(refusal)
        self._parts.metrics.owned(self.partition, False)
        tasks = [*self._tasks, *self._loads.values()]
        tasks += [self._reader] if self._reader else []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for match in self._matches.values():
            self._parts.memory.forget(match)
        self._matches.clear()

    @property
    def accepts(self) -> bool:
        """Whether commands and watches may come."""
        return self._writer.accepts and not self._closing and not self._is_blind

    @property
    def address(self) -> str:
        """Where the partition's last owner serves, as far as the log tells; empty: nobody."""
        return self._tail.admission.owner

    async def wait_accepting(self, seconds: float) -> bool:
        """Wait until the partition is ours, at most so long; whether it is."""
        return await self._writer.wait_accepting(seconds) and self.accepts

    def check(self) -> None:
        """Called now and then: notice what does not move."""
        self._writer.check()

    def serving(self) -> None:
        """The claim counts: from now on this process decides."""
        _logger.info("partition %d is served from epoch %d on", self.partition, self._writer.epoch)
        self._parts.metrics.owned(self.partition, True)
        self._timers.start(self._parts.limits.takeover_grace_s)

    def resumed(self) -> None:
        """A barrier is through; while it lasted no answer was taken."""
        self._timers.postpone(self._parts.limits.takeover_grace_s)

    def lost(self) -> None:
        """Another process claimed the partition: stop at once."""
        self._parts.metrics.owned(self.partition, False)
        self._timers.stop()
        refusal = refuse("NO_OWNER")
        for queue in tuple(self._queues.values()):
            queue.refuse_waiting(refusal)
        for match in self._matches.values():
            match.drop_session()
        self._end_watches(refusal)

    def stuck(self, error: ApiError) -> None:
        """The log is out of reach: tell the callers, and keep only what may have been written."""
        self._stuck = error
        for queue in tuple(self._queues.values()):
            queue.refuse_waiting(refuse("LOG_UNAVAILABLE"))
            if queue.current is not None:
                queue.current.tell(error)

    def _end_watches(self, error: ApiError) -> None:
        for match in self._matches.values():
            for listener in tuple(match.listeners):
                listener.fail(error)

    # -- reading ----------------------------------------------------------------------------------

    async def _read(self) -> None:
        try:
            async with aclosing(self._tail.__aiter__()) as entries:
                async for entry in entries:
                    commit = entry.commit
                    match = None
                    if commit is not None and isinstance(entry.verdict, Admitted):
                        if commit.kind is Kind.FACTS:
                            match = self._admit(entry.offset, commit)
                        self._stuck = None
                    self._writer.read(entry)
                    if match is not None:
                        match.wake()
        except LogError as error:
            self._give_up(str(error))
        except Exception as error:
            _logger.exception("partition %d", self.partition)
            self._give_up(repr(error))

    def _give_up(self, why: str) -> None:
        self._is_blind = True
        self._end_watches(refuse("NO_OWNER"))
        self._parts.alarm(f"Partition {self.partition} can be read no further: {why}.")

    def _admit(self, offset: int, commit: ParsedCommit) -> LiveMatch | None:
        match_id = commit.match_id
        match = self._matches.get(match_id)
        if commit.sequence == 1:
            match = self._matches[match_id] = LiveMatch(match_id)
        self.census.note(commit)
        self._timers.note(match_id, 0 if commit.final else commit.deadline_ms)
        if match is not None:
            match.append(offset, commit)
            if not self._writer.is_pending(commit):
                # Somebody else's: our session, if any, does not know of it.
                match.drop_session()
            self._parts.memory.touch(match, self._evict)
        return match

    def _count_void(self, _: int, __: int, reason: str) -> None:
        self._parts.metrics.void(reason)

    # -- matches in memory ------------------------------------------------------------------------

    async def match(self, match_id: str) -> LiveMatch:
        """The match, read from the log if it is not in memory.

        Raises ApiError: MATCH_NOT_FOUND, MATCH_FROZEN, LOG_UNAVAILABLE.
        """
        match = self._matches.get(match_id)
        if match is not None:
            self._parts.memory.touch(match, self._evict)
            return match
        if self._tail.admission.head(match_id) is None:
            raise refuse("MATCH_NOT_FOUND")
        load = self._loads.get(match_id)
        if load is None:
            load = asyncio.create_task(self._load(match_id))
            self._loads[match_id] = load
            load.add_done_callback(partial(self._loaded, match_id))
        # Kept from being let go again before our turn comes.
        self._wanted[match_id] += 1
        try:
            return await asyncio.shield(load)
        except Frozen as error:
            raise self._freeze(match_id, str(error)) from error
        except LogUnavailable as error:
            raise refuse("LOG_UNAVAILABLE") from error
        except asyncio.CancelledError:
            if load.cancelled():
                # The partition goes, not the caller.
                raise refuse("NO_OWNER") from None
            raise
        finally:
            self._wanted[match_id] -= 1
            if not self._wanted[match_id]:
                del self._wanted[match_id]

    def _loaded(self, match_id: str, load: "asyncio.Task[LiveMatch]") -> None:
        del self._loads[match_id]
        # Looked at, so that nobody complains when all who waited are gone.
        if not load.cancelled():
            load.exception()

    async def _load(self, match_id: str) -> LiveMatch:
        records: dict[int, ParsedCommit] = {}
        start = self._head(match_id).first_offset
        while True:
            end = self._head(match_id).last_offset + 1
            async with aclosing(self._parts.log.read(self.partition, start, end)) as found:
                async for record in found:
                    if record.key == match_id.encode():
                        _keep(records, record.offset, record.value)
            # More may have come meanwhile, which the tail has passed already.
            head = self._head(match_id)
            if head.last_offset + 1 == end:
                break
            start = end
        match = LiveMatch(match_id)
        for offset, commit in chain_of(match_id, head.hash, iter(records.items())):
            match.append(offset, commit)
        self._matches[match_id] = match
        self._parts.memory.touch(match, self._evict)
        return match

    def _head(self, match_id: str) -> Head:
        head = self._tail.admission.head(match_id)
        assert head is not None, "only matches with commits are loaded"
        return head

    def _evict(self, match: LiveMatch) -> bool:
        """Let the match go; False when it is in use."""
        match_id = match.match_id
        if match.listeners or match_id in self._queues or match_id in self._wanted:
            return False
        return self._matches.pop(match_id, None) is not None

    def session_of(self, match: LiveMatch) -> Session:
        """The match's session as of its newest commit. Raises ApiError MATCH_FROZEN."""
        if match.match_id in self._frozen:
            raise refuse("MATCH_FROZEN")
        try:
            return match.open_session(self._parts.keys)
        except Frozen as error:
            raise self._freeze(match.match_id, str(error)) from error
        except RebuildMismatch as error:
            kinds = [type(fact).__name__ for fact in (error.expected, error.got)]
            why = f"fact {error.index}: the log has {kinds[0]}, the rules gave {kinds[1]}"
            raise self._freeze(match.match_id, why) from error
        except Exception as error:
            why = f"it cannot be rebuilt: {type(error).__name__}"
            raise self._freeze(match.match_id, why) from error

    def _freeze(self, match_id: str, why: str) -> ApiError:
        # `why` names no values: hidden facts do not belong into logs either.
        if match_id not in self._frozen:
            _logger.critical("match %s is frozen: %s", match_id, why)
            self._frozen[match_id] = why
            self._parts.metrics.incidents.inc()
        return refuse("MATCH_FROZEN")

    # -- commands ---------------------------------------------------------------------------------

    def submit(self, command: AnyCommand, done: Done) -> None:
        """Take the command on; `done` hears its outcome. Raises ApiError: nothing was begun."""
        if not self.accepts:
            raise refuse("NO_OWNER")
        if self._stuck is not None:
            raise refuse("LOG_UNAVAILABLE")
        queue = self._queues.get(command.match_id)
        if queue is None:
            queue = self._queues[command.match_id] = MatchQueue()
            queue.put(Job(command, done))
            self._spawn(self._work(command.match_id, queue))
        elif not queue.join(command, done):
            queue.put(Job(command, done))

    async def _work(self, match_id: str, queue: MatchQueue) -> None:
        try:
            while (job := queue.take()) is not None:
                outcome = await self._outcome(job.command)
                self._count(job, outcome)
                queue.finish(job, outcome)
        except asyncio.CancelledError:
            if queue.current is not None:
                queue.finish(queue.current, refuse("SHUTTING_DOWN"))
            raise
        finally:
            del self._queues[match_id]

    async def _outcome(self, command: AnyCommand) -> Outcome:
        try:
            return await self._perform(command)
        except ApiError as error:
            return error
        except Refusal as refusal:
            return api_error(refusal)
        except Exception as error:
            self._parts.metrics.incidents.inc()
            return incident(error, f"command {name_of(command)} of match {command.match_id}")

    def _count(self, job: Job, outcome: Outcome) -> None:
        name = name_of(job.command)
        if isinstance(outcome, Applied):
            self._parts.metrics.command(name, "ok", time.monotonic() - job.arrived)
        else:
            self._parts.metrics.command(name, outcome.reason)

    async def _perform(self, command: AnyCommand) -> Applied:
        for _ in range(_ATTEMPTS):
            try:
                return await self._attempt(command)
            except Superseded:
                raise refuse("NO_OWNER") from None
            except NotApplied:
                # A barrier says so: the command may be decided anew.
                continue
            except LogBusy as error:
                raise refuse("TOO_MANY_IN_FLIGHT") from error
            except LogUnavailable as error:
                # Nobody shall lose time by what is not their fault.
                self._timers.postpone(self._parts.limits.takeover_grace_s)
                raise refuse("LOG_UNAVAILABLE") from error
        raise refuse("NOT_APPLIED")

    async def _attempt(self, command: AnyCommand) -> Applied:
        await self._writer.ready()
        before = await self._done_before(command)
        if before is not None:
            return before
        if isinstance(command, Create):
            return await self._create(command)
        head = self._tail.admission.head(command.match_id)
        if head is None:
            raise refuse("MATCH_NOT_FOUND")
        if head.finished:
            raise refuse("MATCH_FINISHED")
        match = await self.match(command.match_id)
        await self._writer.ready()
        if isinstance(command, Start):
            self._parts.capacity.check_start()
        try:
            return await self._decide(match, self.session_of(match), command)
        except (ApiError, Refusal):
            # Nothing was changed.
            raise
        except BaseException:
            match.drop_session()
            raise

    async def _decide(self, match: LiveMatch, session: Session, command: LaterCommand) -> Applied:
        # From here to the append nothing waits: what was decided fits the head of the match.
        decision = decide(session, command, match.seats.get(command.actor, 0))
        last = match.commits[-1]
        deadline_ms = self._deadline_ms(session, decision, match)
        commit = self._commit(command, decision, last.ruleset, deadline_ms)
        return self._applied(commit, await self._append(commit, session))

    async def _create(self, command: Create) -> Applied:
        if self._tail.admission.head(command.match_id) is not None:
            raise refuse("REQUEST_ID_REUSED", field="request_id")
        self._parts.capacity.check_create(command.actor, is_organiser=command.is_organiser)
        key_id = self._parts.keys.current
        seed = derive_seed(self._parts.keys.current_key, key_id, command.match_id)
        session, decision = create_session(command, seed=seed, key_id=key_id)
        created = decision.step.facts[0]
        assert isinstance(created, MatchCreated), created
        ruleset = Ruleset(created.game, created.expansions, created.revision)
        deadline_ms = _now_ms() + round(self._parts.limits.lobby_s * 1000)
        commit = self._commit(command, decision, ruleset, deadline_ms)
        return self._applied(commit, await self._append(commit, session))

    def _commit(
        self, command: AnyCommand, decision: Decision, ruleset: Ruleset, deadline_ms: int
    ) -> ParsedCommit:
        head = self._tail.admission.head(command.match_id)
        facts = decision.step.facts
        return make_commit(
            log_id=self._parts.log.log_id,
            partition=self.partition,
            writer=self._parts.identity.writer,
            epoch=self._writer.epoch,
            match_id=command.match_id,
            sequence=head.sequence + 1 if head else 1,
            first_fact=head.facts if head else 0,
            facts=facts,
            cause=decision.cause,
            previous_hash=head.hash if head else b"",
            ruleset=ruleset,
            deadline_ms=deadline_ms,
            recorded_at_ms=_now_ms(),
            final=isinstance(facts[-1], MatchEnded),
        )

    def _deadline_ms(self, session: Session, decision: Decision, match: LiveMatch) -> int:
        """When open prompts are answered by default, or the lobby is abandoned; 0: never."""
        state = session.state
        if state.status == "lobby":
            return _now_ms() + round(self._parts.limits.lobby_s * 1000)
        return next_deadline_ms(
            decision.step,
            match.waiting,
            match.commits[-1].deadline_ms,
            now_ms=_now_ms(),
            timeout_s=state.answer_timeout_s,
        )

    async def _append(self, commit: ParsedCommit, session: Session) -> int:
        assert session.facts == commit.first_fact + commit.fact_count, (
            "the session is not the log's"
        )
        return await self._writer.append(commit, partial(self._settle, commit.match_id, session))

    def _settle(self, match_id: str, session: Session) -> None:
        match = self._matches.get(match_id)
        if match is not None:
            match.settle(session)

    def _applied(self, commit: ParsedCommit, offset: int) -> Applied:
        cause = commit.cause
        first = commit.facts()[0] if commit.sequence == 1 else None
        return Applied(
            commit.match_id,
            commit.sequence,
            position_of(self.partition, offset),
            seat=cause.seat if cause is not None else 0,
            commitment=first.commitment if isinstance(first, MatchCreated) else b"",
        )

    async def _done_before(self, command: AnyCommand) -> Applied | None:
        """The outcome of the same request when it is in the log already."""
        admission = self._tail.admission
        seen = admission.seen(command.match_id, command.actor, command.request_id)
        if seen is None:
            head = admission.head(command.match_id)
            if head is None or not head.finished:
                return None
            # Admission forgets the requests of old matches; their commits do not.
            match = await self.match(command.match_id)
            sequence = match.find_request(command.actor, command.request_id)
        else:
            match = await self.match(command.match_id)
            sequence = seen.sequence
        if not sequence:
            return None
        commit = match.commits[sequence - 1]
        if commit.cause is None or commit.cause.digest != command.digest:
            raise refuse("REQUEST_ID_REUSED", field="request_id")
        return self._applied(commit, match.offsets[sequence - 1])

    # -- time limits ------------------------------------------------------------------------------

    def _time_over(self, match_id: str, deadline_ms: int) -> None:
        self._spawn(self._expire(match_id, deadline_ms))

    async def _expire(self, match_id: str, deadline_ms: int) -> None:
        """Answer every prompt that is open by its default; end a match that has not begun."""
        loop = asyncio.get_running_loop()
        try:
            match = await self.match(match_id)
            self.session_of(match)
            if match.commits[-1].deadline_ms != deadline_ms:
                # Somebody was just in time: what is asked now has a deadline of its own.
                return
            due: list[Expire | ExpireLobby] = [expire(match_id, each) for each in match.waiting]
            if not match.started_at:
                due = [expire_lobby(match_id)]
            for command in due:
                outcome: asyncio.Future[Outcome] = loop.create_future()
                self.submit(command, outcome.set_result)
                result = await outcome
                if isinstance(result, ApiError) and result.reason not in _OVERTAKEN:
                    raise result
        except ApiError as error:
            if error.reason not in _OVERTAKEN:
                _logger.info("match %s: a prompt is not expired yet: %s", match_id, error)
                self._timers.again(match_id, _EXPIRE_AGAIN_S)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _keep(records: dict[int, ParsedCommit], offset: int, value: bytes) -> None:
    try:
        records[offset] = parse_commit(value)
    except BadCommit:
        # Void, as the tail found: nothing that the match's chain needs.
        return


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
