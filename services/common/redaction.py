"""Commits as their viewers may see them, and how a viewer checks what it got.

Who may see which field is declared by the engine's facts; this module applies it to records. A
viewer gets every fact, without its hidden fields and then with its leaf hash instead of the salt:
so it can recompute the hash of every commit and follow the chain, and learns nothing else.
"""

from typing import Final

from google.protobuf.message import DecodeError

from diceledger.log.v1 import commit_pb2
from engine import Fact, Seat, has_hidden, redact
from services.common.commits import (
    FORMAT,
    HASH_BYTES,
    SALT_BYTES,
    Kind,
    ParsedCommit,
    cause_leaf_hash,
    commit_hash,
    leaf_hash,
)
from services.common.factcodec import codec

_FACTS: Final = commit_pb2.COMMIT_KIND_FACTS


class ChainBroken(Exception):
    """A redacted commit does not fit: `sequence` says where (0: unknown), `detail` why."""

    def __init__(self, sequence: int, detail: str) -> None:
        super().__init__(f"commit {sequence}: {detail}")
        self.sequence = sequence
        self.detail = detail


def redact_commit(
    commit: ParsedCommit, viewer: Seat | None, *, everything: bool = False
) -> commit_pb2.RedactedCommit:
    """A commit of facts for the eyes of a seat, or of spectators (None).

    `everything`: the match is over, or the viewer is an arbiter; nothing is hidden. The cause is
    for the seat that it names, and for nobody where it names none. Raises UnknownFact for a fact
    of newer software: what it would hide is not known.
    """
    assert commit.kind is Kind.FACTS, "claims and releases are no part of a match"
    seen = commit_pb2.RedactedCommit(
        format=FORMAT, kind=_FACTS, header=commit.header, hash=commit.hash
    )
    cause = commit.cause
    if everything or (viewer and cause is not None and cause.seat == viewer):
        seen.cause.salt = commit.cause_salt
        seen.cause.body = commit.cause_body
    else:
        seen.cause_leaf = commit.cause_leaf
    fact_type, add = codec().fact_type, seen.facts.add
    for index, (type_url, value) in enumerate(commit.encoded):
        if not everything and has_hidden(fact_type(type_url)):
            whole = commit.facts()[index]
            fact = redact(whole, viewer)
            # The very same fact: nothing of it is hidden from this viewer.
            if fact is not whole:
                encoded, hidden = codec().encode_redacted(fact)
                one = add(hidden_fields=hidden, leaf_hash=commit.leaves[index])
                one.fact.type_url = type_url
                one.fact.value = encoded.value
                continue
        one = add(salt=commit.salts[index])
        one.fact.type_url = type_url
        one.fact.value = value
    return seen


def restore_facts(seen: commit_pb2.RedactedCommit) -> tuple[Fact, ...]:
    """The facts of a redacted commit, HIDDEN where hidden. Raises BadFact, UnknownFact."""
    decode = codec().decode_fact
    return tuple(
        [decode(each.fact.type_url, each.fact.value, each.hidden_fields) for each in seen.facts]
    )


def redacted_hash(seen: commit_pb2.RedactedCommit) -> bytes:
    """The hash that a redacted commit must have, from what is visible in it.

    Raises ChainBroken where it is not formed as a redacted commit is.
    """
    return _recomputed(seen, _header(seen))


def check_redacted_chain(
    previous_hash: bytes,
    seen: commit_pb2.RedactedCommit,
    *,
    match_id: str | None = None,
    sequence: int | None = None,
) -> bytes:
    """Check that a redacted commit is whole and follows the one with `previous_hash`.

    `previous_hash` is empty before the first commit; `match_id` and `sequence` are checked where
    given. Returns the commit's hash, recomputed, for the next call. Raises ChainBroken.
    """
    header = _header(seen)
    at = header.sequence
    if sequence is not None and at != sequence:
        raise ChainBroken(at, f"sequence {at} came where {sequence} was due")
    if match_id is not None and header.match_id != match_id:
        raise ChainBroken(at, f"it is of match {header.match_id}")
    if bool(previous_hash) != (at > 1):
        raise ChainBroken(at, "only the first commit of a match has no previous hash")
    if header.previous_hash != previous_hash:
        raise ChainBroken(at, f"it follows {header.previous_hash.hex()}, not {previous_hash.hex()}")
    recomputed = _recomputed(seen, header)
    if recomputed != seen.hash:
        raise ChainBroken(at, "its content does not match its hash")
    return recomputed


def _header(seen: commit_pb2.RedactedCommit) -> commit_pb2.CommitHeader:
    header = commit_pb2.CommitHeader()
    try:
        header.ParseFromString(seen.header)
    except DecodeError:
        raise ChainBroken(0, "its header cannot be read") from None
    return header


def _recomputed(seen: commit_pb2.RedactedCommit, header: commit_pb2.CommitHeader) -> bytes:
    at = header.sequence
    if seen.format != FORMAT or seen.kind != _FACTS:
        raise ChainBroken(at, f"format {seen.format} and kind {seen.kind} are not known")
    if len(seen.facts) != header.fact_count:
        raise ChainBroken(at, f"{len(seen.facts)} facts came, {header.fact_count} were written")
    leaves = [_leaf(at, index, each) for index, each in enumerate(seen.facts)]
    if seen.HasField("cause"):
        if seen.cause_leaf or len(seen.cause.salt) != SALT_BYTES:
            raise ChainBroken(at, "its cause is neither shown nor hidden")
        cause_leaf = cause_leaf_hash(seen.cause.salt, seen.cause.body)
    else:
        cause_leaf = seen.cause_leaf
        if len(cause_leaf) != HASH_BYTES:
            raise ChainBroken(at, "its cause is missing")
    return commit_hash(Kind.FACTS, seen.header, cause_leaf, leaves)


def _leaf(at: int, index: int, each: commit_pb2.RedactedFact) -> bytes:
    if each.hidden_fields:
        if len(each.leaf_hash) != HASH_BYTES or each.salt:
            raise ChainBroken(at, f"fact {index}: what is hidden comes with a leaf hash alone")
        return each.leaf_hash
    if len(each.salt) != SALT_BYTES or each.leaf_hash:
        raise ChainBroken(at, f"fact {index}: a whole fact comes with its salt alone")
    return leaf_hash(each.salt, each.fact.type_url, each.fact.value)
