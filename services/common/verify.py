"""Whether a recorded match is what it claims to be: the checks, each with the place of its fault.

Used by the replay service on what admission let through, and by ``diceledger verify FILE`` on an
exported file, without a server. A check never raises for what it finds: damaged input of any kind
ends in a report. What is compared with Redis is the replay service's business.

=========== ====================================================================================
chain       the commits follow each other without gap, by sequence and by hash, to one end
admission   one match of one log and partition, epochs that only grow, no request twice, and every
            commit begins with what its cause asked for
rules       every turn run again by today's rules gives the same facts
dice        the revealed seed is the committed one and gives every drawn value
read_model  Redis holds what the fold gives (replay service only)
file        every byte of the file is what was exported (files only)
origin      it is the match whose commitment or commit hash somebody noted while it was played:
            without such a note, a file that is forged as a whole, seed and all, looks sound
=========== ====================================================================================
"""

import io
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, Final, Literal

from google.protobuf.message import DecodeError

from diceledger.match.v1 import match_pb2
from engine import (
    ActionTaken,
    Answer,
    Answered,
    ChanceDrawn,
    ChanceDrawnInSecret,
    EntropyRevealed,
    Fact,
    Hidden,
    MatchCreated,
    MatchEnded,
    MatchStarted,
    RebuildMismatch,
    Refusal,
    Seat,
    SeatTaken,
    SeedRevealed,
    Session,
    StandingAnswerDropped,
    StandingAnswerSet,
    commitment,
    entropy_commitment,
    find_game,
    fold,
    recompute,
    state_hash,
)
from services.common.bundle import BundleDamaged, BundledCommit, BundleTrailer, read_bundle
from services.common.commits import Cause, How, Kind, ParsedCommit
from services.common.factcodec import BadFact
from services.common.prompts_wire import answer_from_wire

CheckName = Literal["chain", "admission", "rules", "dice", "read_model", "file", "origin"]
_SHOWN_MAX: Final = 300
_COMMANDS: Final = frozenset(
    ("create", "join", "reveal", "start", "answer", "timeout", "action", "standing", "abandon")
)
# Of commands that come about in one way only.
_HOW: Final = {"answer": How.ANSWER, "action": How.ANSWER, "timeout": How.TIMEOUT}


class CheckStatus(StrEnum):
    """How a check ended; NOT_APPLICABLE: cannot be checked yet, or not here."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not_applicable"


@dataclass(frozen=True, slots=True)
class Check:
    """One check: how many things it looked at and, when it failed, where and what is wrong."""

    check: CheckName
    status: CheckStatus
    count: int = 0
    # Sequence of the commit with the first fault; 0: none, or not tied to a commit.
    sequence: int = 0
    finding: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """All checks of one match; `state_hash` is that of the fold of all its facts.

    commitment: to the seed. hashes: of the commits, in order. seats: how many the match has;
    committed: those of them that committed to their entropy before they revealed it.
    """

    match_id: str
    last_sequence: int
    state_hash: bytes
    checks: tuple[Check, ...]
    commitment: bytes = b""
    hashes: tuple[bytes, ...] = ()
    seats: int = 0
    committed: tuple[Seat, ...] = ()

    @property
    def last_hash(self) -> bytes:
        """Of the newest commit; empty where there is none."""
        return self.hashes[-1] if self.hashes else b""

    @property
    def passed(self) -> bool:
        """Nothing failed. (A match that is still running has checks that cannot be made yet.)"""
        return all(check.status is not CheckStatus.FAILED for check in self.checks)

    def check(self, name: CheckName) -> Check:
        """The check of that name; KeyError when it was not made."""
        for check in self.checks:
            if check.check == name:
                return check
        raise KeyError(name)


@dataclass(frozen=True, slots=True)
class Placed:
    """A commit and the offset at which it lies in its partition of the log."""

    offset: int
    commit: ParsedCommit


class _Fault(Exception):
    """A check ends here: `sequence` and what is wrong."""

    def __init__(self, sequence: int, finding: str) -> None:
        super().__init__(finding)
        self.sequence = sequence
        self.finding = finding


class _Later(Exception):
    """The check cannot be made here or now; the text says why."""


@dataclass(slots=True)
class _Record:
    """What is known of the match while it is checked."""

    commits: Sequence[Placed]
    # Facts of hidden kinds may be shown in findings.
    open: bool
    facts: list[Fact] = field(default_factory=list)
    # Index of each decoded commit's first fact, and its sequence.
    firsts: list[int] = field(default_factory=list)
    sequences: list[int] = field(default_factory=list)

    def sequence_of(self, fact_index: int) -> int:
        """The sequence of the commit that holds the fact."""
        at = bisect_right(self.firsts, fact_index) - 1
        return self.sequences[at] if at >= 0 else 0

    def shown(self, fact: Fact | None) -> str:
        """A fact in a finding."""
        if fact is None:
            return "nothing"
        tag = str(type(fact).__struct_config__.tag)
        return f"{fact!r:.{_SHOWN_MAX}}" if self.open else f"a fact {tag!r}"

    def last(self) -> int:
        """The sequence of the last sound commit."""
        return self.sequences[-1] if self.sequences else 0


_Step = Callable[[_Record], int]


def verify_commits(
    commits: Iterable[Placed],
    *,
    epoch_at: Callable[[int], int] | None = None,
    secrets_open: bool = True,
) -> Report:
    """Check the commits of one match, in the order of the log.

    `epoch_at` gives the epoch that the partition had at an offset, where the whole partition is at
    hand. `secrets_open`: findings may show what the facts of a running match hide.
    """
    record = _Record(tuple(commits), secrets_open)
    return _report(record, _all_checks(record, epoch_at))


def verify_file(source: Path | BinaryIO | bytes) -> Report:
    """Check an exported file. Raises OSError when it cannot be read at all."""
    commits: list[Placed] = []
    trailer: BundleTrailer | None = None
    file = Check("file", CheckStatus.PASSED)
    records = 0
    try:
        for item in read_bundle(io.BytesIO(source) if isinstance(source, bytes) else source):
            records += 1
            if isinstance(item, BundledCommit):
                commits.append(Placed(item.offset, item.commit))
            elif isinstance(item, BundleTrailer):
                trailer = item
        file = replace(file, count=records)
    except BundleDamaged as damage:
        # Record 1 is the header, so record n holds commit n - 1.
        at = min(damage.record - 1, len(commits) + 1)
        file = Check("file", CheckStatus.FAILED, records, at, str(damage))
    record = _Record(tuple(commits), open=True)
    checks = _all_checks(record, None)
    report = _report(record, checks)
    if file.status is CheckStatus.FAILED:
        # What is sound so far says nothing about what the damage hides.
        checks = [_partial(file, check, record) for check in checks]
    elif trailer is not None and trailer.state_hash != report.state_hash:
        file = Check(
            "file", CheckStatus.FAILED, records, 0, "the facts do not give the trailer's state hash"
        )
    offline = Check("read_model", CheckStatus.NOT_APPLICABLE, finding="there is none in a file")
    return replace(report, checks=(file, *checks, offline))


def with_origin(report: Report, *, commitment: bytes = b"", last_hash: bytes = b"") -> Report:
    """The report with one more check: of what was noted while the match was played.

    `last_hash` is that of the newest commit that was seen; the commits up to it are the same then.
    Empty: not noted.
    """
    check = Check("origin", CheckStatus.PASSED, bool(commitment) + bool(last_hash))
    if commitment and commitment != report.commitment:
        seen = report.commitment.hex() or "nothing"
        finding = f"the match commits to the seed {seen}, noted was {commitment.hex()}"
        check = Check("origin", CheckStatus.FAILED, 0, 1, finding)
    elif last_hash and last_hash not in report.hashes:
        seen = report.last_hash.hex() or "none"
        finding = f"no commit has the hash {last_hash.hex()}; the last one has {seen}"
        check = Check("origin", CheckStatus.FAILED, 0, report.last_sequence, finding)
    return replace(report, checks=(*report.checks, check))


def _all_checks(record: _Record, epoch_at: Callable[[int], int] | None) -> list[Check]:
    chain = _run("chain", _check_chain, record)
    return [
        chain,
        _run("admission", lambda each: _check_admission(each, epoch_at), record),
        _partial(chain, _run("rules", _check_rules, record), record),
        _partial(chain, _run("dice", _check_dice, record), record),
    ]


def _report(record: _Record, checks: Sequence[Check]) -> Report:
    match_id = record.commits[0].commit.match_id if record.commits else ""
    created = next((fact for fact in record.facts if isinstance(fact, MatchCreated)), None)
    return Report(
        match_id,
        record.last(),
        _hash(record),
        tuple(checks),
        commitment=created.commitment if created else b"",
        hashes=tuple(placed.commit.hash for placed in record.commits),
        seats=created.seats if created else 0,
        committed=tuple(
            sorted(fact.seat for fact in record.facts if isinstance(fact, EntropyRevealed))
        ),
    )


def _run(name: CheckName, step: _Step, record: _Record) -> Check:
    """Make one check; whatever goes wrong in it is its finding."""
    try:
        count = step(record)
    except _Fault as fault:
        return Check(name, CheckStatus.FAILED, 0, fault.sequence, fault.finding)
    except _Later as later:
        return Check(name, CheckStatus.NOT_APPLICABLE, 0, 0, str(later))
    except Exception as error:
        # The input may be anything; only the kind of trouble is told, never a trace.
        return Check(name, CheckStatus.FAILED, 0, 0, f"cannot be checked ({type(error).__name__})")
    return Check(name, CheckStatus.PASSED, count)


def _partial(whole: Check, check: Check, record: _Record) -> Check:
    """What `check` may say when, by `whole` (chain or file), only a part was there to check."""
    if whole.status is CheckStatus.PASSED or check.status is CheckStatus.NOT_APPLICABLE:
        return check
    if not record.sequences:
        return Check(check.check, CheckStatus.NOT_APPLICABLE, 0, 0, "nothing there can be checked")
    if check.status is CheckStatus.FAILED:
        return check
    finding = f"nothing wrong up to commit {record.last()}, where the {whole.check} breaks"
    return Check(check.check, CheckStatus.NOT_APPLICABLE, check.count, 0, finding)


def _hash(record: _Record) -> bytes:
    try:
        return state_hash(fold(record.facts))
    except Exception:
        # Facts that do not fit each other: the checks say so.
        return b""


# -- chain ----------------------------------------------------------------------------------------


def _check_chain(record: _Record) -> int:
    """Links each commit to the one before and takes over the facts of those that hold."""
    before: ParsedCommit | None = None
    for placed in record.commits:
        commit = placed.commit
        _check_link(before, commit, len(record.facts))
        _take_facts(record, commit)
        before = commit
    if before is None:
        raise _Fault(0, "there is no commit at all")
    ended = bool(record.facts) and isinstance(record.facts[-1], MatchEnded)
    if before.final and not ended:
        raise _Fault(before.sequence, "it says that it ends the match, and its facts do not")
    return len(record.commits)


def _check_link(before: ParsedCommit | None, commit: ParsedCommit, facts: int) -> None:
    at = commit.sequence
    if commit.kind is not Kind.FACTS:
        raise _Fault(at, f"a {commit.kind.name.lower()} lies among the commits of the match")
    due = before.sequence + 1 if before else 1
    if at > due:
        gap = f"commit {due} is" if at == due + 1 else f"commits {due} to {at - 1} are"
        raise _Fault(due, f"{gap} missing: commit {at} follows {_or_start(due - 1)}")
    if at < due:
        raise _Fault(due, f"commit {at} lies where commit {due} belongs")
    if before is not None and commit.match_id != before.match_id:
        raise _Fault(at, f"it belongs to another match, {commit.match_id}")
    expected = before.hash if before else b""
    if commit.previous_hash != expected:
        raise _Fault(
            at,
            f"it says that it follows the commit {_short(commit.previous_hash)}; "
            f"before it lies {_short(expected)}",
        )
    if before is not None and before.final:
        raise _Fault(at, f"commit {before.sequence} ended the match already")
    if commit.first_fact != facts:
        raise _Fault(at, f"its first fact has the number {commit.first_fact}, not {facts}")


def _take_facts(record: _Record, commit: ParsedCommit) -> None:
    try:
        facts = commit.facts()
    except BadFact as error:
        raise _Fault(commit.sequence, f"a fact cannot be read: {error}") from error
    ends = [index for index, fact in enumerate(facts) if isinstance(fact, MatchEnded)]
    if ends and (not commit.final or ends != [len(facts) - 1]):
        raise _Fault(commit.sequence, "the match ends in the middle of it, or without saying so")
    record.firsts.append(len(record.facts))
    record.sequences.append(commit.sequence)
    record.facts += facts


def _or_start(sequence: int) -> str:
    return f"commit {sequence}" if sequence else "the start"


def _short(digest: bytes) -> str:
    return digest.hex()[:16] or "none"


# -- admission ------------------------------------------------------------------------------------


def _check_admission(record: _Record, epoch_at: Callable[[int], int] | None) -> int:
    before: Placed | None = None
    requests: dict[tuple[str, str], int] = {}
    # Who sits where, as it is learnt from the facts; 0 is the host.
    people: dict[int, str] = {}
    for number, placed in enumerate(record.commits):
        commit = placed.commit
        _check_place(before, placed)
        if epoch_at is not None and epoch_at(placed.offset) != commit.epoch:
            raise _Fault(
                commit.sequence,
                f"it was written under epoch {commit.epoch}; at offset {placed.offset} "
                f"the partition had epoch {epoch_at(placed.offset)}",
            )
        cause = commit.cause
        if cause is not None and cause.request_id:
            first = requests.setdefault((cause.actor, cause.request_id), commit.sequence)
            if first != commit.sequence:
                raise _Fault(commit.sequence, f"its request was applied by commit {first} already")
        if cause is not None and number < len(record.firsts):
            _check_cause(commit.sequence, cause, record.facts[record.firsts[number]], people)
        before = placed
    return len(record.commits)


def _check_place(before: Placed | None, placed: Placed) -> None:
    commit, at = placed.commit, placed.commit.sequence
    if commit.epoch > placed.offset:
        raise _Fault(at, f"its epoch {commit.epoch} began after its own offset {placed.offset}")
    if before is None:
        return
    earlier = before.commit
    if (commit.log_id, commit.partition) != (earlier.log_id, earlier.partition):
        raise _Fault(at, f"it was written to log {commit.log_id}, partition {commit.partition}")
    if placed.offset <= before.offset:
        raise _Fault(at, f"its offset {placed.offset} is not past {before.offset}, the one before")
    if commit.epoch < earlier.epoch:
        raise _Fault(at, f"epoch {commit.epoch} was over: epoch {earlier.epoch} wrote before it")
    if commit.ruleset != earlier.ruleset:
        raise _Fault(at, "its header names other rules than the commits before")


def _check_cause(at: int, cause: Cause, fact: Fact, people: dict[int, str]) -> None:
    """The commit's first fact is what the caller asked for, and the caller was one who might."""
    if cause.how is not _HOW.get(cause.command, cause.how):
        raise _Fault(at, f"its cause is {cause.command!r}, marked as {cause.how.name.lower()}")
    match cause.command, fact:
        case "create", MatchCreated():
            people[0] = fact.host
            who = fact.host
        case "join", SeatTaken():
            people[fact.seat] = fact.player
            who = fact.player
        case "reveal", EntropyRevealed():
            who = people.get(fact.seat, "")
        case "start", MatchStarted():
            who = people.get(0, "")
        case "answer" | "timeout", Answered():
            who = _check_answer(at, cause, fact, people)
        case "action", ActionTaken():
            who = _check_action(at, cause, fact, people)
        case "standing", StandingAnswerSet() | StandingAnswerDropped():
            who = _check_standing(at, cause, fact, people)
        case "abandon", SeedRevealed():
            # When time is over the process ends a lobby, else its host.
            who = cause.actor if cause.how is How.TIMEOUT else people.get(0, "")
        case _ if cause.command in _COMMANDS:
            tag = str(type(fact).__struct_config__.tag)
            raise _Fault(at, f"its cause is {cause.command!r}, and it begins with {tag!r}")
        case _:
            # A command of newer software: the rules still check what came of it.
            return
    if cause.actor != who:
        raise _Fault(at, f"{cause.command} was for another than the actor of its cause to say")


def _check_standing(
    at: int, cause: Cause, fact: StandingAnswerSet | StandingAnswerDropped, people: dict[int, str]
) -> str:
    """What was set is what the cause holds; return who might set it."""
    if fact.seat != cause.seat:
        raise _Fault(at, f"it is of seat {fact.seat}, its cause of seat {cause.seat}")
    said = _said(at, cause) if cause.answer else None
    standing = fact.standing if isinstance(fact, StandingAnswerSet) else None
    if getattr(standing, "answer", None) != said:
        raise _Fault(at, "the answer in its cause is not the one that was recorded")
    return people.get(fact.seat, "")


def _check_answer(at: int, cause: Cause, fact: Answered, people: dict[int, str]) -> str:
    """The answer is the one that the cause holds; return who might give it."""
    if (fact.seat, fact.prompt_id) != (cause.seat, cause.prompt_id):
        raise _Fault(at, f"seat {fact.seat} answers {fact.prompt_id}, its cause is about another")
    if _said(at, cause) != fact.answer:
        raise _Fault(at, "the answer in its cause is not the one that was recorded")
    # When time is over the process answers, by the default.
    return cause.actor if cause.how is How.TIMEOUT else people.get(fact.seat, "")


def _check_action(at: int, cause: Cause, fact: ActionTaken, people: dict[int, str]) -> str:
    """The action is the one that the cause holds; return who might take it."""
    if fact.seat != cause.seat:
        raise _Fault(at, f"seat {fact.seat} acts, its cause is of seat {cause.seat}")
    if _said(at, cause) != Answer(picks=(fact.action,)):
        raise _Fault(at, "the action in its cause is not the one that was recorded")
    return people.get(fact.seat, "")


def _said(at: int, cause: Cause) -> Answer:
    """What the caller answered, set or took."""
    try:
        return answer_from_wire(match_pb2.Answer.FromString(cause.answer))
    except (DecodeError, Refusal) as error:
        raise _Fault(at, "the answer in its cause cannot be read") from error


# -- rules ----------------------------------------------------------------------------------------


def _check_rules(record: _Record) -> int:
    facts = record.facts
    if not facts:
        raise _Fault(0, "there are no facts")
    _check_lobby(record)
    created = facts[0]
    assert isinstance(created, MatchCreated), "the lobby was checked"
    try:
        game = find_game(created.game)
    except Refusal as error:
        raise _Later(f"this software does not know the game {created.game!r:.80}") from error
    if created.revision > game.revision:
        raise _Later(f"played by revision {created.revision} of the rules, newer than those here")
    try:
        Session.verify_rules(facts)
    except RebuildMismatch as mismatch:
        raise _Fault(
            record.sequence_of(mismatch.index),
            f"fact {mismatch.index}: the log has {record.shown(mismatch.expected)}, "
            f"the rules give {record.shown(mismatch.got)}",
        ) from mismatch
    return len(facts)


def _check_lobby(record: _Record) -> None:
    """The part of a match that no rule of a game runs."""
    created = record.facts[0]
    if not isinstance(created, MatchCreated):
        raise _Fault(1, f"a match begins with match_created, not with {record.shown(created)}")
    if created.match_id != record.commits[0].commit.match_id:
        raise _Fault(1, f"the facts are of match {created.match_id}")
    seats: set[int] = set()
    players: set[str] = set()
    for index, fact in enumerate(record.facts[1:], 1):
        at = record.sequence_of(index)
        if isinstance(fact, MatchStarted):
            if len(seats) != created.seats:
                raise _Fault(at, f"{len(seats)} of {created.seats} seats were taken at the start")
            return
        match record.facts[index:]:
            case [SeedRevealed(), MatchEnded(winners=())]:
                # Abandoned: nobody started it.
                return
        if isinstance(fact, EntropyRevealed):
            # The engine checks it together with the rules.
            continue
        if not isinstance(fact, SeatTaken):
            raise _Fault(at, f"{record.shown(fact)} before the match was started")
        if fact.seat in seats or not 1 <= fact.seat <= created.seats:
            raise _Fault(at, f"seat {fact.seat} was not free")
        if fact.player in players:
            raise _Fault(at, "a player took a second seat")
        seats.add(fact.seat)
        players.add(fact.player)


# -- dice -----------------------------------------------------------------------------------------


def _check_dice(record: _Record) -> int:
    revealed = [(i, f) for i, f in enumerate(record.facts) if isinstance(f, SeedRevealed)]
    if not revealed:
        raise _Later("the seed is revealed when the match is over")
    created = record.facts[0]
    if not isinstance(created, MatchCreated):
        raise _Fault(1, "there is no commitment to check")
    index, reveal = revealed[0]
    if commitment(reveal.seed) != created.commitment:
        raise _Fault(
            record.sequence_of(index), "the revealed seed is not the one that was committed to"
        )
    entropies = _entropies(record)
    draws = 0
    values = 0
    for index, fact in enumerate(record.facts):
        if not isinstance(fact, ChanceDrawn | ChanceDrawnInSecret):
            continue
        at = record.sequence_of(index)
        if fact.number != draws:
            raise _Fault(at, f"draw {fact.number} where draw {draws} was due")
        right = recompute(fact, reveal.seed, created.match_id, entropies)
        if isinstance(fact.values, Hidden) or fact.values != right:
            raise _Fault(
                at, f"draw {draws} ({fact.domain}) has {fact.values}, the seed gives {right}"
            )
        draws += 1
        values += len(right)
    return values


def _entropies(record: _Record) -> tuple[bytes, ...]:
    """What the seats brought to the dice, in their order; what was committed to, as revealed."""
    seats: dict[int, bytes] = {}
    promised: dict[int, bytes] = {}
    for index, fact in enumerate(record.facts):
        at = record.sequence_of(index)
        match fact:
            case SeatTaken():
                seats[fact.seat] = fact.entropy
                if fact.entropy_commitment:
                    promised[fact.seat] = fact.entropy_commitment
            case EntropyRevealed():
                if promised.pop(fact.seat, b"") != entropy_commitment(fact.entropy):
                    raise _Fault(
                        at, f"seat {fact.seat} had not committed to the entropy that it revealed"
                    )
                seats[fact.seat] = fact.entropy
            case MatchStarted() if promised:
                raise _Fault(at, f"seat {min(promised)} never revealed its entropy")
            case _:
                pass
    return tuple(entropy for _, entropy in sorted(seats.items()))
