"""The bytes of a commit: what is written is read, and nothing else is."""

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diceledger.log.v1 import commit_pb2
from services.common.commits import (
    BAD_HASH,
    MALFORMED,
    UNKNOWN_FORMAT,
    UNKNOWN_KIND,
    BadCommit,
    EncodedFact,
    Kind,
    ParsedCommit,
    Ruleset,
    build_claim,
    build_commit,
    build_release,
    commit_hash,
    make_commit,
    parse_commit,
)
from tests.services.codec import makers
from tests.services.codec.makers import CAUSE

URL = "type.googleapis.com/diceledger.facts.core.v1.Something"
FACTS = [EncodedFact(URL, b"\x08\x01"), EncodedFact(URL, b"")]


def fields(**changed: Any) -> Any:
    return makers.fields(**{"facts": FACTS, **changed})


def content(commit: ParsedCommit) -> dict[str, Any]:
    return {name: getattr(commit, name) for name in ParsedCommit.__struct_fields__}


def refusal(value: bytes | None) -> str:
    with pytest.raises(BadCommit) as caught:
        parse_commit(value)
    return caught.value.reason


def rebuilt(value: bytes, **changed: Any) -> bytes:
    """The record with outer fields replaced and its hash made right again."""
    message = commit_pb2.Commit.FromString(value)
    for name, content in changed.items():
        setattr(message, name, content)
    leaves = [
        lp_sha(b"\x01", f.salt, f.fact.type_url.encode(), f.fact.value) for f in message.facts
    ]
    cause = message.cause
    leaf = lp_sha(b"\x02", cause.salt, cause.body) if message.HasField("cause") else b""
    message.hash = commit_hash(Kind(message.kind), message.header, leaf, leaves)
    return message.SerializeToString(deterministic=True)


def lp(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def lp_sha(prefix: bytes, *parts: bytes) -> bytes:
    return hashlib.sha256(prefix + b"".join(map(lp, parts))).digest()


def header_with(value: bytes, **changed: Any) -> bytes:
    """The record with header fields replaced and its hash made right again."""
    header = commit_pb2.CommitHeader.FromString(commit_pb2.Commit.FromString(value).header)
    for name, content in changed.items():
        setattr(header, name, content)
    return rebuilt(value, header=header.SerializeToString())


def test_what_is_built_is_what_is_read() -> None:
    made = make_commit(**fields(final=True))
    read = parse_commit(made.value)
    assert content(read) == content(made)
    assert read.value == made.value
    assert (read.kind, read.sequence, read.first_fact, read.fact_count) == (Kind.FACTS, 2, 5, 2)
    assert read.cause == CAUSE
    assert read.ruleset == Ruleset("king_of_tokyo", ("bay",), 7)
    assert read.encoded == (EncodedFact(URL, b"\x08\x01"), EncodedFact(URL, b""))
    assert read.final


def test_every_leaf_has_its_own_fresh_salt() -> None:
    first, again = make_commit(**fields()), make_commit(**fields())
    salts = {*first.salts, first.cause_salt, *again.salts, again.cause_salt}
    assert len(salts) == 6
    assert {len(salt) for salt in salts} == {16}
    assert first.hash != again.hash


def test_the_hash_is_the_documented_one() -> None:
    """Recomputed from the words of the module docstring, with hashlib alone."""
    commit = make_commit(**fields())
    leaves = [
        lp_sha(b"\x01", salt, url.encode(), value)
        for salt, (url, value) in zip(commit.salts, commit.encoded, strict=True)
    ]
    covered = (
        lp(b"diceledger.commit.v1")
        + (1).to_bytes(4, "big")
        + (1).to_bytes(4, "big")
        + lp(hashlib.sha256(commit.header).digest())
        + lp(lp_sha(b"\x02", commit.cause_salt, commit.cause_body))
        + (2).to_bytes(4, "big")
        + b"".join(map(lp, leaves))
    )
    assert hashlib.sha256(covered).digest() == commit.hash


def test_a_written_record_stays_readable() -> None:
    """The bytes of a commit written by version 0.1.0: hash, fields and form must never change."""
    value = bytes.fromhex(GOLDEN)
    commit = parse_commit(value)
    assert commit.hash.hex() == GOLDEN_HASH
    assert commit.cause == CAUSE
    assert commit.encoded == (EncodedFact(URL, b"\x08\x01"), EncodedFact(URL, b""))
    assert commit.build == "0.1.0"


@pytest.mark.parametrize("kind", ["facts", "claim", "release"])
def test_any_flipped_bit_is_refused(kind: str) -> None:
    value = {
        "facts": build_commit(**fields()),
        "claim": build_claim(
            log_id="log-1", partition=3, writer="m", address="h:1", previous_epoch=0
        ),
        "release": build_release(log_id="log-1", partition=3, writer="m", epoch=9),
    }[kind]
    for position in range(len(value)):
        for bit in range(8):
            damaged = bytearray(value)
            damaged[position] ^= 1 << bit
            refusal(bytes(damaged))


def test_a_shortened_or_lengthened_record_is_refused() -> None:
    value = build_commit(**fields())
    for length in range(len(value)):
        refusal(value[:length])
    assert refusal(value + b"\x00") == MALFORMED
    assert refusal(None) == MALFORMED


def test_another_spelling_of_the_same_content_is_refused() -> None:
    """A record has one encoding: no unknown field, no field given twice, no long varint."""
    value = build_commit(**fields())
    assert refusal(value + b"\xf8\x07\x01") == MALFORMED
    assert refusal(b"\x08\x01" + value) == MALFORMED
    assert refusal(b"\x08\x81\x00" + value[2:]) == MALFORMED


def test_newer_formats_and_kinds_are_told_apart_from_rubbish() -> None:
    value = build_commit(**fields())
    newer = commit_pb2.Commit.FromString(value)
    newer.format = 2
    assert refusal(newer.SerializeToString()) == UNKNOWN_FORMAT
    newer.format = 1
    newer.kind = 9  # type: ignore[assignment]  # a number of the future
    assert refusal(newer.SerializeToString()) == UNKNOWN_KIND
    unheard = commit_pb2.Commit.FromString(value)
    cause = commit_pb2.Cause.FromString(unheard.cause.body)
    cause.how = 9  # type: ignore[assignment]  # a number of the future
    unheard.cause.body = cause.SerializeToString()
    assert refusal(rebuilt(unheard.SerializeToString())) == UNKNOWN_KIND


def test_a_header_may_gain_fields() -> None:
    """The header is hashed as stored, so that newer writers may add to it."""
    value = build_commit(**fields())
    header = commit_pb2.Commit.FromString(value).header + b"\xf8\x07\x01"
    newer = rebuilt(value, header=header)
    assert parse_commit(newer).header == header


def test_a_wrong_hash_is_refused_as_such() -> None:
    message = commit_pb2.Commit.FromString(build_commit(**fields()))
    message.facts[0].salt = b"x" * 16
    assert refusal(message.SerializeToString()) == BAD_HASH


@pytest.mark.parametrize(
    "changed",
    [
        {"sequence": 0},
        {"sequence": 1},
        {"first_fact": 0},
        {"first_fact": -1},
        {"epoch": 0},
        {"fact_count": 3},
        {"previous_hash": b"short"},
        {"previous_hash": b""},
        {"match_id": ""},
        {"log_id": ""},
        {"partition": -1},
        {"address": "h:1"},
        {"previous_epoch": 1},
    ],
)
def test_a_header_that_cannot_be_right_is_malformed(changed: dict[str, Any]) -> None:
    assert refusal(header_with(build_commit(**fields()), **changed)) == MALFORMED


@pytest.mark.parametrize(
    "changed",
    [
        {"sequence": 0},
        {"facts": []},
        {"facts": [EncodedFact(URL, b"")] * 2001},
        {"previous_hash": b""},
        {"partition": 2**40},
        {"match_id": ""},
    ],
)
def test_what_no_reader_would_accept_is_not_built(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        build_commit(**fields(**changed))


def test_a_short_salt_is_malformed() -> None:
    message = commit_pb2.Commit.FromString(build_commit(**fields()))
    message.facts[0].salt = b"short"
    assert refusal(rebuilt(message.SerializeToString())) == MALFORMED


def test_a_commit_without_cause_is_malformed() -> None:
    message = commit_pb2.Commit.FromString(build_commit(**fields()))
    message.ClearField("cause")
    assert refusal(rebuilt(message.SerializeToString())) == MALFORMED


def test_claims_and_releases_carry_what_they_need() -> None:
    claim = parse_commit(
        build_claim(
            log_id="log-1", partition=0, writer="m", address="host:50051", previous_epoch=17
        )
    )
    assert (claim.kind, claim.epoch, claim.previous_epoch) == (Kind.CLAIM, 0, 17)
    assert (claim.address, claim.log_id, claim.cause) == ("host:50051", "log-1", None)
    release = parse_commit(build_release(log_id="log-1", partition=2, writer="m", epoch=18))
    assert (release.kind, release.epoch, release.partition) == (Kind.RELEASE, 18, 2)
    with pytest.raises(ValueError):
        build_claim(log_id="log-1", partition=0, writer="m", address="", previous_epoch=0)
    with pytest.raises(ValueError):
        build_release(log_id="log-1", partition=0, writer="m", epoch=0)


def test_a_claim_with_facts_is_malformed() -> None:
    value = rebuilt(build_commit(**fields()), kind=commit_pb2.COMMIT_KIND_CLAIM)
    assert refusal(value) == MALFORMED


@given(st.binary(max_size=200))
def test_rubbish_is_refused_and_never_crashes(value: bytes) -> None:
    refusal(value)


GOLDEN = (
    "080110011a85010a056c6f672d3110031a076d617463682d3020293a1a6162636465666768696a6b6c6d6e6f"
    "707172737475767778797a4002480550025a2070707070707070707070707070707070707070707070707070"
    "7070707070707062160a0d6b696e675f6f665f746f6b796f120362617918076a05302e312e307080d095ffbc"
    "3178b0ba97ffbc3122560a1033bdd3f9a61559ca10f52902b65713b512420a03722d31122064646464646464"
    "646464646464646464646464646464646464646464646464641a05616c69636520022a027034320210033801"
    "4206616e737765722a500a10fdaf31f8e6221752f8778a926688145f123c0a36747970652e676f6f676c6561"
    "7069732e636f6d2f646963656c65646765722e66616374732e636f72652e76312e536f6d657468696e671202"
    "08012a4c0a10a7e9c18d65344424f0e1e4dba9d7c72212380a36747970652e676f6f676c65617069732e636f"
    "6d2f646963656c65646765722e66616374732e636f72652e76312e536f6d657468696e673220578aa53de9c5"
    "c73989e85d7a59d865b2457c45f58a87ba29cd00e203edec0283"
)
GOLDEN_HASH = "578aa53de9c5c73989e85d7a59d865b2457c45f58a87ba29cd00e203edec0283"
