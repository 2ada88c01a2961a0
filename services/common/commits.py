"""The log record: building, parsing and hashing of commits.

What a commit means is decided elsewhere (admission: does it count? engine: what happened?); here
are its bytes only. ``proto/diceledger/log/v1/commit.proto`` gives the fields. The hashes, exactly,
so that anybody can recompute them (all are SHA-256, ``‖`` joins bytes):

* ``u32(n)`` is n as 4 bytes, most significant first; ``L(x)`` is ``u32(length of x) ‖ x``; texts
  are UTF-8.
* Leaf of a fact: ``SHA-256(0x01 ‖ L(salt) ‖ L(type url) ‖ L(value))``, with type url and value as
  they lie in the record's ``google.protobuf.Any``.
* Leaf of the cause: ``SHA-256(0x02 ‖ L(salt) ‖ L(body))``, body being the serialised ``Cause``.
* Hash of the commit::

    SHA-256( L("diceledger.commit.v1") ‖ u32(format) ‖ u32(kind) ‖ L(SHA-256(header))
             ‖ L(leaf of the cause; empty where there is no cause)
             ‖ u32(number of facts) ‖ L(leaf of fact 1) ‖ L(leaf of fact 2) … )

``header`` is the serialised ``CommitHeader`` as stored; it holds ``previous_hash``, the hash of
the match's previous commit, so the commits of a match form a chain. Every salt is 16 random bytes:
a leaf hash tells nothing about what it covers to someone who does not know the salt.

A record has one encoding only: the fields of ``Commit`` in the order of their numbers, zero values
left out, nothing unknown. So each byte of a record is bound by its hash (or is the hash).
"""

import os
from collections.abc import Sequence
from enum import IntEnum
from hashlib import sha256
from typing import Final, NotRequired, TypedDict, Unpack

import msgspec
from google.protobuf.message import DecodeError

from diceledger import __version__
from diceledger.log.v1 import commit_pb2
from engine import Fact
from services.common.factcodec import EncodedFact as EncodedFact
from services.common.factcodec import codec

FORMAT: Final = 1
HASH_BYTES: Final = 32
SALT_BYTES: Final = 16
# The engine's own limit for one step.
FACTS_MAX: Final = 2_000

_DOMAIN: Final = b"diceledger.commit.v1"
_HASH_PREFIX: Final = len(_DOMAIN).to_bytes(4, "big") + _DOMAIN + FORMAT.to_bytes(4, "big")
_LEAF_LENGTH: Final = HASH_BYTES.to_bytes(4, "big")

MALFORMED: Final = "MALFORMED"
BAD_HASH: Final = "BAD_HASH"
UNKNOWN_FORMAT: Final = "UNKNOWN_FORMAT"
UNKNOWN_KIND: Final = "UNKNOWN_KIND"


class BadCommit(Exception):
    """A record that is no commit: `reason` for programs and counters, `detail` for people.

    Reasons: ``MALFORMED`` (not the bytes that a writer of this format makes), ``BAD_HASH`` (they do
    not match the stored hash), ``UNKNOWN_FORMAT`` and ``UNKNOWN_KIND`` (written by newer software:
    a reader must stop, not skip).
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class Kind(IntEnum):
    """What a commit is; the numbers are those of ``CommitKind``."""

    FACTS = 1
    CLAIM = 2
    RELEASE = 3


class How(IntEnum):
    """What brought a commit about; the numbers are those of ``CauseKind``."""

    ANSWER = 1
    TIMEOUT = 2
    HOST = 3
    RULING = 4


class Ruleset(msgspec.Struct, frozen=True):
    """Which rules the match is played by."""

    game: str
    expansions: tuple[str, ...] = ()
    revision: int = 0


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """The command that led to a commit.

    `digest` is the SHA-256 of the request's content, `answer` a serialised
    ``diceledger.match.v1.Answer`` (of an action: the selection of what was taken), `seat` 0 where
    no seat is concerned, `command` one of create, join, reveal, start, answer, timeout, action,
    standing, abandon.
    """

    request_id: str
    actor: str
    seat: int = 0
    prompt_id: str = ""
    answer: bytes = b""
    how: How = How.ANSWER
    digest: bytes = b""
    command: str = "answer"


class ParsedCommit(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A commit whose bytes, form and hash were checked; `value` is the record, byte for byte.

    Fields that its kind does not have are zero or empty, as in ``CommitHeader``. Of a match's
    facts, `encoded`, `salts` and `leaves` hold the stored form, the salt and the leaf hash, in
    order.
    """

    value: bytes
    kind: Kind
    header: bytes
    hash: bytes
    log_id: str
    partition: int
    writer: str
    epoch: int
    previous_epoch: int
    address: str
    match_id: str
    sequence: int
    first_fact: int
    fact_count: int
    previous_hash: bytes
    ruleset: Ruleset
    build: str
    recorded_at_ms: int
    deadline_ms: int
    final: bool
    cause: Cause | None
    cause_salt: bytes
    cause_body: bytes
    cause_leaf: bytes
    encoded: tuple[EncodedFact, ...]
    salts: tuple[bytes, ...]
    leaves: tuple[bytes, ...]
    _facts: tuple[Fact, ...] | None = None

    def facts(self) -> tuple[Fact, ...]:
        """The facts, decoded at the first call. Raises BadFact, UnknownFact."""
        known = self._facts
        if known is None:
            decode = codec().decode_fact
            known = tuple([decode(*each) for each in self.encoded])
            # Not a change of the commit: the same bytes in another form.
            msgspec.structs.force_setattr(self, "_facts", known)
        return known


class CommitFields(TypedDict):
    """What the writer of a commit says; `previous_hash` is empty for a match's first commit.

    Facts may be given as they lie in the log already.
    """

    log_id: str
    partition: int
    writer: str
    epoch: int
    match_id: str
    sequence: int
    first_fact: int
    facts: Sequence[Fact | EncodedFact]
    cause: Cause
    previous_hash: bytes
    ruleset: Ruleset
    deadline_ms: NotRequired[int]
    recorded_at_ms: NotRequired[int]
    final: NotRequired[bool]
    build: NotRequired[str]


def build_commit(**fields: Unpack[CommitFields]) -> bytes:
    """The record of one accepted command; see `make_commit`."""
    return make_commit(**fields).value


def make_commit(**fields: Unpack[CommitFields]) -> ParsedCommit:
    """The commit of one accepted command, as `parse_commit` would return it from its `value`.

    Draws fresh salts, so the same fields twice give two different records. Raises ValueError for
    fields that no reader would accept, and for facts with a HIDDEN field.
    """
    encode = codec().encode_fact
    facts = [each if isinstance(each, EncodedFact) else encode(each) for each in fields["facts"]]
    cause = fields["cause"]
    ruleset = fields["ruleset"]
    header = commit_pb2.CommitHeader(
        log_id=fields["log_id"],
        partition=fields["partition"],
        writer=fields["writer"],
        epoch=fields["epoch"],
        match_id=fields["match_id"],
        sequence=fields["sequence"],
        first_fact=fields["first_fact"],
        fact_count=len(facts),
        previous_hash=fields["previous_hash"],
        ruleset=commit_pb2.Ruleset(
            game=ruleset.game, expansions=ruleset.expansions, revision=ruleset.revision
        ),
        build=fields.get("build", __version__),
        recorded_at_ms=fields.get("recorded_at_ms", 0),
        deadline_ms=fields.get("deadline_ms", 0),
        final=fields.get("final", False),
    )
    fault = _facts_fault(header, len(facts))
    if fault:
        raise ValueError(fault)
    body = commit_pb2.Cause(
        request_id=cause.request_id,
        digest=cause.digest,
        actor=cause.actor,
        seat=cause.seat,
        prompt_id=cause.prompt_id,
        answer=cause.answer,
        how=commit_pb2.CauseKind.ValueType(cause.how),
        command=cause.command,
    ).SerializeToString()
    if not body:
        raise ValueError("the cause is empty")
    made = _seal(header, cause, body, facts)
    if all(isinstance(each, Fact) for each in fields["facts"]):
        msgspec.structs.force_setattr(made, "_facts", tuple(fields["facts"]))
    return made


def build_claim(
    *,
    log_id: str,
    partition: int,
    writer: str,
    address: str,
    previous_epoch: int,
    recorded_at_ms: int = 0,
    build: str = __version__,
) -> bytes:
    """The record by which `writer`, serving at `address`, takes the partition over.

    `previous_epoch` is the epoch that it believes to be current, 0 for none. Its own epoch will be
    the record's offset + 1, if the claim is admitted.
    """
    header = commit_pb2.CommitHeader(
        log_id=log_id,
        partition=partition,
        writer=writer,
        address=address,
        previous_epoch=previous_epoch,
        recorded_at_ms=recorded_at_ms,
        build=build,
    )
    fault = _claim_fault(header)
    if fault:
        raise ValueError(fault)
    return _seal_bare(Kind.CLAIM, header)


def build_release(
    *,
    log_id: str,
    partition: int,
    writer: str,
    epoch: int,
    recorded_at_ms: int = 0,
    build: str = __version__,
) -> bytes:
    """The record by which the owner of the partition under `epoch` gives it up."""
    header = commit_pb2.CommitHeader(
        log_id=log_id,
        partition=partition,
        writer=writer,
        epoch=epoch,
        recorded_at_ms=recorded_at_ms,
        build=build,
    )
    fault = _release_fault(header)
    if fault:
        raise ValueError(fault)
    return _seal_bare(Kind.RELEASE, header)


def parse_commit(value: bytes | None) -> ParsedCommit:
    """Read one record, check its form and its hash. Raises BadCommit."""
    if not value:
        raise BadCommit(MALFORMED, "the record is empty")
    message = commit_pb2.Commit()
    try:
        message.ParseFromString(value)
    except DecodeError:
        raise BadCommit(MALFORMED, "the record is no protobuf message") from None
    if message.format != FORMAT:
        raise BadCommit(UNKNOWN_FORMAT, f"format {message.format}, this software knows {FORMAT}")
    try:
        kind = Kind(message.kind)
    except ValueError:
        raise BadCommit(UNKNOWN_KIND, f"kind {message.kind}") from None
    # Unknown or repeated fields and other spellings of the same content are not what was hashed.
    message.DiscardUnknownFields()
    if message.SerializeToString(deterministic=True) != value:
        raise BadCommit(MALFORMED, "the record has more than one encoding or unknown fields")
    return _checked(value, kind, message)


def _checked(value: bytes, kind: Kind, message: commit_pb2.Commit) -> ParsedCommit:
    raw_header = message.header
    encoded: list[EncodedFact] = []
    salts: list[bytes] = []
    leaves: list[bytes] = []
    for salted in message.facts:
        fact = salted.fact
        one = EncodedFact(fact.type_url, fact.value)
        salt = salted.salt
        encoded.append(one)
        salts.append(salt)
        leaves.append(leaf_hash(salt, *one))
    cause_salt = cause_body = cause_leaf = b""
    if message.HasField("cause"):
        cause_salt, cause_body = message.cause.salt, message.cause.body
        cause_leaf = cause_leaf_hash(cause_salt, cause_body)
    if commit_hash(kind, raw_header, cause_leaf, leaves) != message.hash:
        raise BadCommit(BAD_HASH, "the content does not match the stored hash")
    header = commit_pb2.CommitHeader()
    body = commit_pb2.Cause()
    try:
        header.ParseFromString(raw_header)
        body.ParseFromString(cause_body)
    except DecodeError:
        raise BadCommit(MALFORMED, "the header or the cause is no protobuf message") from None
    _check_form(kind, header, cause_salt, cause_body, salts)
    return _parsed(
        value=value,
        kind=kind,
        raw_header=raw_header,
        header=header,
        digest=message.hash,
        cause=_cause_of(body) if cause_body else None,
        sealed_cause=(cause_salt, cause_body, cause_leaf),
        sealed_facts=(tuple(encoded), tuple(salts), tuple(leaves)),
    )


def _check_form(
    kind: Kind,
    header: commit_pb2.CommitHeader,
    cause_salt: bytes,
    cause_body: bytes,
    salts: Sequence[bytes],
) -> None:
    match kind:
        case Kind.FACTS:
            fault = _facts_fault(header, len(salts))
            if not cause_body or len(cause_salt) != SALT_BYTES:
                fault = fault or "the cause or its salt is missing"
            if any(len(salt) != SALT_BYTES for salt in salts):
                fault = fault or f"a salt is not {SALT_BYTES} bytes long"
        case Kind.CLAIM | Kind.RELEASE:
            fault = _claim_fault(header) if kind is Kind.CLAIM else _release_fault(header)
            if salts or cause_salt or cause_body:
                fault = fault or f"a {kind.name.lower()} carries no facts and no cause"
    if fault:
        raise BadCommit(MALFORMED, fault)


def _facts_fault(header: commit_pb2.CommitHeader, facts: int) -> str:
    """Why a header of facts cannot be right, or nothing."""
    previous = len(header.previous_hash)
    if header.sequence < 1 or header.first_fact < 0 or header.epoch < 1:
        return "sequence, first fact or epoch is out of range"
    if not facts or facts > FACTS_MAX or header.fact_count != facts:
        return f"{facts} facts, the header says {header.fact_count}; 1 to {FACTS_MAX} are possible"
    if previous != (0 if header.sequence == 1 else HASH_BYTES):
        return f"previous hash of {previous} bytes at sequence {header.sequence}"
    if (header.first_fact == 0) != (header.sequence == 1):
        return f"first fact {header.first_fact} at sequence {header.sequence}"
    if not header.match_id or header.previous_epoch or header.address:
        return "match id missing, or fields of a claim present"
    return _common_fault(header)


def _claim_fault(header: commit_pb2.CommitHeader) -> str:
    if header.epoch or header.previous_epoch < 0 or not header.address:
        return "a claim has an address, a previous epoch of 0 or more and no epoch"
    return _bare_fault(header)


def _release_fault(header: commit_pb2.CommitHeader) -> str:
    if header.epoch < 1 or header.previous_epoch or header.address:
        return "a release has an epoch, no previous epoch and no address"
    return _bare_fault(header)


def _bare_fault(header: commit_pb2.CommitHeader) -> str:
    of_match = (header.match_id, header.sequence, header.first_fact, header.fact_count)
    if any(of_match) or header.previous_hash or header.deadline_ms or header.final:
        return "a claim or release carries fields of a match"
    return _common_fault(header)


def _common_fault(header: commit_pb2.CommitHeader) -> str:
    if not header.log_id or header.partition < 0:
        return "log id missing or partition negative"
    return ""


def commit_hash(
    kind: Kind, header: bytes, cause_leaf: bytes, fact_leaves: Sequence[bytes]
) -> bytes:
    """Hash of a commit of this format; the module docstring gives the layout.

    `header` as stored (it contains the previous hash); `cause_leaf` empty where there is no cause.
    """
    parts = [_HASH_PREFIX, kind.to_bytes(4, "big"), _LEAF_LENGTH, sha256(header).digest()]
    parts += (len(cause_leaf).to_bytes(4, "big"), cause_leaf, len(fact_leaves).to_bytes(4, "big"))
    for leaf in fact_leaves:
        parts.append(len(leaf).to_bytes(4, "big"))
        parts.append(leaf)
    return sha256(b"".join(parts)).digest()


def leaf_hash(salt: bytes, type_url: str, value: bytes) -> bytes:
    """Leaf hash of one fact; the module docstring gives the layout."""
    url = type_url.encode()
    return sha256(
        b"".join(
            (
                b"\x01",
                len(salt).to_bytes(4, "big"),
                salt,
                len(url).to_bytes(4, "big"),
                url,
                len(value).to_bytes(4, "big"),
                value,
            )
        )
    ).digest()


def cause_leaf_hash(salt: bytes, body: bytes) -> bytes:
    """Leaf hash of a commit's cause; the module docstring gives the layout."""
    lengths = (len(salt).to_bytes(4, "big"), len(body).to_bytes(4, "big"))
    return sha256(b"\x02" + lengths[0] + salt + lengths[1] + body).digest()


def _seal(
    header: commit_pb2.CommitHeader, cause: Cause, body: bytes, facts: Sequence[EncodedFact]
) -> ParsedCommit:
    raw_header = header.SerializeToString()
    pool = os.urandom(SALT_BYTES * (len(facts) + 1))
    cause_salt = pool[:SALT_BYTES]
    cause_leaf = cause_leaf_hash(cause_salt, body)
    message = commit_pb2.Commit(format=FORMAT, kind=commit_pb2.COMMIT_KIND_FACTS, header=raw_header)
    message.cause.salt = cause_salt
    message.cause.body = body
    salts: list[bytes] = []
    leaves: list[bytes] = []
    for start, (type_url, value) in enumerate(facts, 1):
        salt = pool[start * SALT_BYTES : (start + 1) * SALT_BYTES]
        fact = message.facts.add(salt=salt).fact
        fact.type_url = type_url
        fact.value = value
        salts.append(salt)
        leaves.append(leaf_hash(salt, type_url, value))
    digest = commit_hash(Kind.FACTS, raw_header, cause_leaf, leaves)
    message.hash = digest
    return _parsed(
        value=message.SerializeToString(deterministic=True),
        kind=Kind.FACTS,
        raw_header=raw_header,
        header=header,
        digest=digest,
        cause=cause,
        sealed_cause=(cause_salt, body, cause_leaf),
        sealed_facts=(tuple(facts), tuple(salts), tuple(leaves)),
    )


def _seal_bare(kind: Kind, header: commit_pb2.CommitHeader) -> bytes:
    raw_header = header.SerializeToString()
    return commit_pb2.Commit(
        format=FORMAT,
        kind=commit_pb2.CommitKind.ValueType(kind),
        header=raw_header,
        hash=commit_hash(kind, raw_header, b"", ()),
    ).SerializeToString(deterministic=True)


def _cause_of(body: commit_pb2.Cause) -> Cause:
    try:
        how = How(body.how)
    except ValueError:
        raise BadCommit(UNKNOWN_KIND, f"cause of kind {body.how}") from None
    return Cause(
        request_id=body.request_id,
        actor=body.actor,
        seat=body.seat,
        prompt_id=body.prompt_id,
        answer=body.answer,
        how=how,
        digest=body.digest,
        command=body.command,
    )


def _parsed(
    *,
    value: bytes,
    kind: Kind,
    raw_header: bytes,
    header: commit_pb2.CommitHeader,
    digest: bytes,
    cause: Cause | None,
    sealed_cause: tuple[bytes, bytes, bytes],
    sealed_facts: tuple[tuple[EncodedFact, ...], tuple[bytes, ...], tuple[bytes, ...]],
) -> ParsedCommit:
    ruleset = header.ruleset
    return ParsedCommit(
        value=value,
        kind=kind,
        header=raw_header,
        hash=digest,
        log_id=header.log_id,
        partition=header.partition,
        writer=header.writer,
        epoch=header.epoch,
        previous_epoch=header.previous_epoch,
        address=header.address,
        match_id=header.match_id,
        sequence=header.sequence,
        first_fact=header.first_fact,
        fact_count=header.fact_count,
        previous_hash=header.previous_hash,
        ruleset=Ruleset(ruleset.game, tuple(ruleset.expansions), ruleset.revision),
        build=header.build,
        recorded_at_ms=header.recorded_at_ms,
        deadline_ms=header.deadline_ms,
        final=header.final,
        cause=cause,
        cause_salt=sealed_cause[0],
        cause_body=sealed_cause[1],
        cause_leaf=sealed_cause[2],
        encoded=sealed_facts[0],
        salts=sealed_facts[1],
        leaves=sealed_facts[2],
    )
