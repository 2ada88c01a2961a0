"""What a viewer gets of a commit: nothing it may not know, all it needs to check the chain."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diceledger.log.v1 import commit_pb2
from engine import (
    HIDDEN,
    Answer,
    Answered,
    ChanceDrawn,
    ChanceDrawnInSecret,
    Fact,
    PromptId,
    Seat,
    redact,
    visibility_of,
)
from services.common.commits import EncodedFact, ParsedCommit, make_commit
from services.common.factcodec import UnknownFact
from services.common.redaction import (
    ChainBroken,
    check_redacted_chain,
    redact_commit,
    redacted_hash,
    restore_facts,
)
from tests.services.codec.makers import CAUSE, FACTS, SEATS, chain, fields, structs

VIEWERS = st.one_of(st.none(), SEATS)
STEPS = st.lists(st.lists(FACTS, min_size=1, max_size=4), min_size=1, max_size=3)
OPEN = ChanceDrawn("die", 0, 6, 2, (3, 5))
SECRET = Answered(Seat(1), PromptId("p1"), Answer(picks=("wings",)))


@given(STEPS, VIEWERS, st.booleans())
def test_every_viewer_can_check_the_chain(
    steps: list[list[Fact]], viewer: Seat | None, everything: bool
) -> None:
    previous = b""
    for sequence, commit in enumerate(chain(steps), 1):
        seen = redact_commit(commit, viewer, everything=everything)
        arrived = commit_pb2.RedactedCommit.FromString(seen.SerializeToString())
        previous = check_redacted_chain(
            previous, arrived, match_id=commit.match_id, sequence=sequence
        )
        assert previous == commit.hash == redacted_hash(arrived)


@given(STEPS, VIEWERS)
def test_a_viewer_gets_the_facts_that_the_engine_shows_it(
    steps: list[list[Fact]], viewer: Seat | None
) -> None:
    for facts, commit in zip(steps, chain(steps), strict=True):
        assert restore_facts(redact_commit(commit, viewer)) == tuple(
            redact(fact, viewer) for fact in facts
        )
        assert restore_facts(redact_commit(commit, viewer, everything=True)) == tuple(facts)


@st.composite
def twins(draw: Any) -> tuple[Fact, Fact, Seat | None]:
    """Two facts that differ only in what the viewer may not see."""
    viewer = draw(VIEWERS)
    fact = draw(FACTS)
    other = draw(structs(type(fact)))
    hidden = [
        name for name in visibility_of(type(fact)) if getattr(redact(fact, viewer), name) == HIDDEN
    ]
    return fact, msgspec.structs.replace(fact, **{n: getattr(other, n) for n in hidden}), viewer


@given(twins(), twins())
def test_what_is_hidden_shows_only_in_the_hashes(
    one: tuple[Fact, Fact, Seat | None], two: tuple[Fact, Fact, Seat | None]
) -> None:
    """In salted leaf hashes and the commit's hash over them: all else is the same bytes."""
    viewer = one[2]
    facts = (one[0], one[0] if two[2] != viewer else two[0])
    others = (one[1], one[1] if two[2] != viewer else two[1])
    first, second = (
        _without_hashes(redact_commit(make_commit(**fields(facts=each, cause=cause)), viewer))
        for each, cause in (
            (facts, msgspec.structs.replace(CAUSE, seat=0)),
            (others, msgspec.structs.replace(CAUSE, seat=0, answer=b"another", request_id="x")),
        )
    )
    assert first == second


def _without_hashes(seen: commit_pb2.RedactedCommit) -> bytes:
    """The bytes of a redacted commit without what is random: hashes over salts, and salts."""
    seen.ClearField("hash")
    assert len(seen.cause_leaf) == 32
    seen.ClearField("cause_leaf")
    for fact in seen.facts:
        assert bool(fact.salt) != bool(fact.leaf_hash)
        fact.ClearField("salt")
        fact.ClearField("leaf_hash")
    return seen.SerializeToString(deterministic=True)


def commit_of(*facts: Fact, **changed: Any) -> ParsedCommit:
    return make_commit(**fields(facts=facts, **changed))


@pytest.mark.parametrize(("viewer", "shown"), [(2, True), (1, False), (None, False), (0, False)])
def test_the_cause_is_for_its_seat(viewer: int | None, shown: bool) -> None:
    seat = None if viewer is None else Seat(viewer)
    seen = redact_commit(commit_of(OPEN), seat)
    assert seen.HasField("cause") is shown
    assert bool(seen.cause_leaf) is not shown


def test_a_cause_without_seat_is_for_nobody_before_the_end() -> None:
    commit = commit_of(OPEN, cause=msgspec.structs.replace(CAUSE, seat=0))
    for viewer in (None, Seat(0), Seat(1)):
        assert not redact_commit(commit, viewer).HasField("cause")
    assert redact_commit(commit, None, everything=True).HasField("cause")


def test_a_hidden_fact_comes_without_its_salt() -> None:
    """With the salt, a viewer could try all values of the hidden field against the leaf hash."""
    commit = commit_of(SECRET, OPEN)
    hidden, shown = redact_commit(commit, Seat(2)).facts
    assert (hidden.salt, hidden.leaf_hash) == (b"", commit.leaves[0])
    assert list(hidden.hidden_fields) == ["answer"]
    assert (shown.salt, shown.leaf_hash) == (commit.salts[1], b"")
    assert b"wings" not in redact_commit(commit, Seat(2)).SerializeToString()
    assert b"wings" in redact_commit(commit, Seat(1)).SerializeToString()


def test_a_draw_without_audience_is_for_nobody() -> None:
    draw = ChanceDrawnInSecret("deck", 0, 9, 1, (), (7,))
    for viewer in (None, Seat(1)):
        (fact,) = restore_facts(redact_commit(commit_of(draw), viewer))
        assert isinstance(fact, ChanceDrawnInSecret)
        assert fact.values == HIDDEN


def test_a_fact_of_newer_software_is_not_passed_on() -> None:
    unknown = EncodedFact("type.googleapis.com/diceledger.facts.core.v1.FromTheFuture", b"secret")
    with pytest.raises(UnknownFact):
        redact_commit(make_commit(**fields(facts=[unknown])), None)


def _damaged(change: str) -> commit_pb2.RedactedCommit:
    seen = redact_commit(commit_of(SECRET, OPEN), Seat(3))
    hidden, shown = seen.facts
    match change:
        case "value":
            shown.fact.value += b"\x00"
        case "type":
            shown.fact.type_url += "X"
        case "salt":
            shown.salt = b"s" * 16
        case "no salt":
            shown.salt = b""
        case "leaf":
            hidden.leaf_hash = b"l" * 32
        case "salt and leaf":
            hidden.salt = b"s" * 16
        case "leaf for the whole":
            shown.leaf_hash = b"l" * 32
        case "fact gone":
            del seen.facts[1]
        case "facts swapped":
            first, second = list(seen.facts)
            del seen.facts[:]
            seen.facts.extend([second, first])
        case "cause":
            seen.cause_leaf = b"c" * 32
        case "cause gone":
            seen.ClearField("cause_leaf")
        case "kind":
            seen.kind = commit_pb2.COMMIT_KIND_CLAIM
        case "header":
            seen.header += b"\x00"
        case "hash":
            seen.hash = b"h" * 32
    return seen


@pytest.mark.parametrize(
    "change",
    [
        "value", "type", "salt", "no salt", "leaf", "salt and leaf", "leaf for the whole",
        "fact gone", "facts swapped", "cause", "cause gone", "kind", "header", "hash",
    ],
)  # fmt: skip
def test_any_change_of_a_redacted_commit_is_found(change: str) -> None:
    with pytest.raises(ChainBroken):
        check_redacted_chain(b"p" * 32, _damaged(change))


def test_a_gap_in_the_chain_is_found_and_named() -> None:
    commits = chain([[OPEN], [OPEN], [OPEN]])
    first, _, third = (redact_commit(commit, None) for commit in commits)
    previous = check_redacted_chain(b"", first, sequence=1)
    with pytest.raises(ChainBroken) as caught:
        check_redacted_chain(previous, third)
    assert caught.value.sequence == 3
    with pytest.raises(ChainBroken):
        check_redacted_chain(previous, third, sequence=2)
    with pytest.raises(ChainBroken):
        check_redacted_chain(b"", third)
    with pytest.raises(ChainBroken):
        check_redacted_chain(previous, first)
    with pytest.raises(ChainBroken):
        check_redacted_chain(b"", first, match_id="another")
