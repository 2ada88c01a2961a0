"""A checker of histories: what the clients were told, against what lies in the log.

It shares no code with the services: it reads raw log records by the published wire format and
decides by itself which of them count (docs: the log section of the architecture; `commit.proto`).
It checks, with the names of the reliability paper:

A1 an acknowledged command is in the log, at the sequence that was acknowledged;
A2 a request is in the log at most once, and each (match, sequence) belongs to one commit;
A3 each commit's previous hash is the hash of the commit before: one successor for every link;
A4 sequences are 1, 2, 3 … in log order, and a command that was sent after the reply to another
   one of the same match has the higher sequence;
A5 nothing is in the log that nobody sent;
A9 a command that was refused for good is not in the log.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from diceledger.log.v1 import commit_pb2


@dataclass(frozen=True, slots=True)
class RawRecord:
    """A record as it lies in the log."""

    partition: int
    offset: int
    value: bytes


@dataclass(frozen=True, slots=True)
class Sent:
    """A command that a client sent, and what it was told; times in seconds of one clock."""

    actor: str
    match_id: str
    request_id: str
    issued_s: float
    ended_s: float
    # Acknowledged sequence; None: not acknowledged.
    sequence: int | None
    # Reason of a refusal for good; "" when acknowledged or when the outcome is unknown.
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Counted:
    """A commit that counts, as this checker decides it."""

    partition: int
    offset: int
    header: commit_pb2.CommitHeader
    cause: commit_pb2.Cause
    hash: bytes


@dataclass(slots=True)
class _Partition:
    epoch: int = 0
    # The owner gave the partition up: nothing of its epoch counts any more.
    is_released: bool = False
    # Match id -> last commit that counts.
    heads: dict[str, Counted] = field(default_factory=dict)
    requests: set[tuple[str, str, str]] = field(default_factory=set)
    finished: set[str] = field(default_factory=set)


def counted_commits(records: Iterable[RawRecord]) -> Iterator[Counted]:
    """The commits that count, in log order per partition; everything else is void."""
    partitions: dict[int, _Partition] = {}
    for record in sorted(records, key=lambda each: (each.partition, each.offset)):
        state = partitions.setdefault(record.partition, _Partition())
        commit = commit_pb2.Commit.FromString(record.value)
        header = commit_pb2.CommitHeader.FromString(commit.header)
        if header.partition != record.partition or not _hash_fits(commit):
            continue
        match commit.kind:
            case commit_pb2.COMMIT_KIND_CLAIM:
                if header.previous_epoch == state.epoch:
                    state.epoch = record.offset + 1
                    state.is_released = False
            case commit_pb2.COMMIT_KIND_RELEASE:
                if header.epoch == state.epoch:
                    state.is_released = True
            case commit_pb2.COMMIT_KIND_FACTS:
                cause = commit_pb2.Cause.FromString(commit.cause.body)
                counted = Counted(record.partition, record.offset, header, cause, commit.hash)
                if _counts(state, counted):
                    yield counted
            case _:
                pass


def _counts(state: _Partition, commit: Counted) -> bool:
    header = commit.header
    head = state.heads.get(header.match_id)
    sequence, previous = (0, b"") if head is None else (head.header.sequence, head.hash)
    request = (header.match_id, commit.cause.actor, commit.cause.request_id)
    fits = (
        header.epoch == state.epoch
        and not state.is_released
        and header.sequence == sequence + 1
        and header.previous_hash == previous
        and header.match_id not in state.finished
        and (not commit.cause.request_id or request not in state.requests)
    )
    if fits:
        state.heads[header.match_id] = commit
        state.requests.add(request)
        if header.final:
            state.finished.add(header.match_id)
    return fits


def _hash_fits(commit: commit_pb2.Commit) -> bool:
    """Recompute the commit's hash as `services/common/commits.py` documents it."""
    leaves = [_leaf(1, f.salt, f.fact.type_url.encode(), f.fact.value) for f in commit.facts]
    cause = _leaf(2, commit.cause.salt, commit.cause.body) if commit.HasField("cause") else b""
    parts = [
        _sized(b"diceledger.commit.v1"),
        commit.format.to_bytes(4, "big"),
        int(commit.kind).to_bytes(4, "big"),
        _sized(hashlib.sha256(commit.header).digest()),
        _sized(cause),
        len(leaves).to_bytes(4, "big"),
        *(_sized(leaf) for leaf in leaves),
    ]
    return hashlib.sha256(b"".join(parts)).digest() == commit.hash


def _leaf(tag: int, *parts: bytes) -> bytes:
    return hashlib.sha256(bytes([tag]) + b"".join(_sized(part) for part in parts)).digest()


def _sized(part: bytes) -> bytes:
    return len(part).to_bytes(4, "big") + part


def check_history(records: Iterable[RawRecord], history: Sequence[Sent]) -> list[str]:
    """Everything that is wrong, a sentence each; empty when the history is right.

    Matches that the history does not know belong to somebody else and are left out.
    """
    matches = {sent.match_id for sent in history}
    commits = [each for each in counted_commits(records) if each.header.match_id in matches]
    problems = [*_check_log(commits)]
    by_request: dict[tuple[str, str, str], list[int]] = {}
    for commit in commits:
        key = (commit.header.match_id, commit.cause.actor, commit.cause.request_id)
        # What time brought about was sent by nobody.
        if commit.cause.request_id and commit.cause.how != commit_pb2.CAUSE_KIND_TIMEOUT:
            by_request.setdefault(key, []).append(commit.header.sequence)
    problems += _check_replies(by_request, history)
    problems += _check_order(history)
    known = {(sent.match_id, sent.actor, sent.request_id) for sent in history}
    problems += [
        f"A5: {key} is in the log, nobody sent it" for key in by_request if key not in known
    ]
    return problems


def _check_log(commits: Sequence[Counted]) -> Iterator[str]:
    heads: dict[str, Counted] = {}
    facts: dict[str, int] = {}
    for commit in commits:
        header = commit.header
        head = heads.get(header.match_id)
        wanted = 1 if head is None else head.header.sequence + 1
        if header.sequence != wanted:
            yield f"A4: {header.match_id} has {header.sequence} where {wanted} belongs"
        if head is not None and header.previous_hash != head.hash:
            yield f"A3: {header.match_id} forks at {header.sequence}"
        if head is not None and head.partition != commit.partition:
            yield f"A3: {header.match_id} is in two partitions"
        if header.first_fact != facts.get(header.match_id, 0):
            yield f"A4: {header.match_id} miscounts its facts at {header.sequence}"
        facts[header.match_id] = header.first_fact + header.fact_count
        heads[header.match_id] = commit


def _check_replies(
    by_request: dict[tuple[str, str, str], list[int]], history: Sequence[Sent]
) -> Iterator[str]:
    for sent in history:
        key = (sent.match_id, sent.actor, sent.request_id)
        found = by_request.get(key, [])
        if len(found) > 1:
            yield f"A2: {key} is in the log {len(found)} times"
        if sent.sequence is not None and found != [sent.sequence]:
            yield f"A1: {key} was acknowledged at {sent.sequence}, the log has {found}"
        if sent.refusal and found:
            yield f"A9: {key} was refused ({sent.refusal}), the log has it at {found}"


def _check_order(history: Sequence[Sent]) -> Iterator[str]:
    """Real time: what was sent after a reply comes later in the match than what was replied to."""
    by_match: dict[str, list[Sent]] = {}
    for sent in history:
        if sent.sequence is not None:
            by_match.setdefault(sent.match_id, []).append(sent)
    for match_id, all_sent in by_match.items():
        by_reply = sorted(all_sent, key=lambda each: each.ended_s)
        highest, next_reply = 0, 0
        for sent in sorted(all_sent, key=lambda each: each.issued_s):
            while next_reply < len(by_reply) and by_reply[next_reply].ended_s < sent.issued_s:
                highest = max(highest, by_reply[next_reply].sequence or 0)
                next_reply += 1
            if (sent.sequence or 0) < highest:
                yield f"A4: {match_id}: {sent.sequence} was sent after the reply to {highest}"
