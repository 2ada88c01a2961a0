"""Admission: what counts, what is void and why, and when a reader must stop."""

import msgspec
import pytest

from diceledger.log.v1 import commit_pb2
from services.common import admission as admission_module
from services.common.admission import (
    Admission,
    Admitted,
    Head,
    UnreadableRecord,
    Void,
    VoidReason,
)
from services.common.commits import ParsedCommit
from services.common.log import partition_of
from tests.services.log.makers import LOG_ID, claim, facts, release

M = "match-a"


class Reader:
    """An automaton that is offered commits one after the other."""

    def __init__(self, partition: int = 0, partitions: int = 1) -> None:
        self.admission = Admission(LOG_ID, partition, partitions)
        self.offset = 0

    def offer(self, commit: ParsedCommit) -> str:
        """ "" when admitted, else the reason."""
        verdict = self.admission.offer(self.offset, commit)
        self.offset += 1
        return verdict.reason if isinstance(verdict, Void) else ""


@pytest.fixture
def reader() -> Reader:
    """A reader of a partition that was claimed once: epoch 1."""
    reader = Reader()
    assert reader.offer(claim(0)) == ""
    return reader


def test_the_epoch_of_a_claim_is_its_offset_plus_one() -> None:
    reader = Reader()
    assert reader.admission.epoch == 0
    assert reader.admission.offer(0, claim(0)) == Admitted(epoch=1)
    assert reader.admission.offer(41, claim(1)) == Admitted(epoch=42)
    assert reader.admission.epoch == 42


def test_a_claim_that_names_another_previous_epoch_is_void(reader: Reader) -> None:
    assert reader.offer(claim(0)) == VoidReason.WRONG_PREVIOUS_EPOCH
    assert reader.offer(claim(7)) == VoidReason.WRONG_PREVIOUS_EPOCH
    assert reader.admission.epoch == 1


def test_of_two_racing_claims_the_first_in_the_log_wins(reader: Reader) -> None:
    assert reader.offer(claim(1, writer="one")) == ""
    assert reader.offer(claim(1, writer="two")) == VoidReason.WRONG_PREVIOUS_EPOCH
    assert reader.admission.owner == "one:1"


def test_the_same_claim_twice_counts_once(reader: Reader) -> None:
    again = claim(1)
    assert reader.offer(again) == ""
    assert reader.offer(again) == VoidReason.WRONG_PREVIOUS_EPOCH


def test_facts_before_any_claim_are_void() -> None:
    assert Reader().offer(facts(M, epoch=1)) == VoidReason.STALE_EPOCH


def test_facts_of_the_owner_are_admitted_and_move_the_head(reader: Reader) -> None:
    first = facts(M, epoch=1)
    second = facts(M, epoch=1, after=first, fact_count=3)
    assert reader.offer(first) == ""
    assert reader.admission.head(M) == Head(1, first.hash, 2, False, 1, 1)
    assert reader.offer(second) == ""
    assert reader.admission.head(M) == Head(2, second.hash, 5, False, 1, 2)


def test_facts_of_a_former_owner_are_void(reader: Reader) -> None:
    first = facts(M, epoch=1)
    assert reader.offer(first) == ""
    assert reader.offer(claim(1)) == ""
    assert reader.offer(facts(M, epoch=1, after=first)) == VoidReason.STALE_EPOCH
    assert reader.offer(facts(M, epoch=3, after=first)) == ""


def test_facts_of_a_future_epoch_are_void(reader: Reader) -> None:
    assert reader.offer(facts(M, epoch=2)) == VoidReason.STALE_EPOCH


def test_after_a_release_only_a_claim_counts(reader: Reader) -> None:
    assert reader.offer(release(1)) == ""
    assert reader.admission.released
    assert reader.admission.owner == ""
    assert reader.offer(facts(M, epoch=1)) == VoidReason.STALE_EPOCH
    assert reader.offer(release(1)) == VoidReason.STALE_EPOCH
    assert reader.admission.epoch == 1
    assert reader.offer(claim(1)) == ""
    assert not reader.admission.released


def test_a_release_of_a_former_owner_is_void(reader: Reader) -> None:
    assert reader.offer(claim(1)) == ""
    assert reader.offer(release(1)) == VoidReason.STALE_EPOCH
    assert not reader.admission.released


def test_a_release_before_any_claim_is_void() -> None:
    assert Reader().offer(release(1)) == VoidReason.STALE_EPOCH


def test_the_sequence_must_be_the_next_one(reader: Reader) -> None:
    first = facts(M, epoch=1)
    second = facts(M, epoch=1, after=first)
    third = facts(M, epoch=1, after=second)
    assert reader.offer(second) == VoidReason.WRONG_SEQUENCE
    assert reader.offer(first) == ""
    assert reader.offer(third) == VoidReason.WRONG_SEQUENCE
    assert reader.offer(first) == VoidReason.WRONG_SEQUENCE
    assert reader.offer(second) == ""
    assert reader.offer(third) == ""


def test_the_previous_hash_must_fit(reader: Reader) -> None:
    first = facts(M, epoch=1)
    other = facts(M, epoch=1, request_id="other")
    assert reader.offer(first) == ""
    assert reader.offer(facts(M, epoch=1, after=other)) == VoidReason.WRONG_PREVIOUS_HASH


def test_the_first_fact_must_be_the_next_one(reader: Reader) -> None:
    first = facts(M, epoch=1)
    assert reader.offer(first) == ""
    wrong = facts(M, epoch=1, after=first, first_fact=3)
    assert reader.offer(wrong) == VoidReason.WRONG_FIRST_FACT


def test_a_commit_that_was_written_to_another_log_is_void(reader: Reader) -> None:
    assert reader.offer(facts(M, epoch=1, log_id="copy")) == VoidReason.WRONG_LOG
    assert reader.offer(claim(1, log_id="copy")) == VoidReason.WRONG_LOG
    assert reader.offer(release(1, log_id="copy")) == VoidReason.WRONG_LOG


def test_a_commit_that_was_written_for_another_partition_is_void(reader: Reader) -> None:
    assert reader.offer(facts(M, epoch=1, partition=3)) == VoidReason.WRONG_PARTITION
    assert reader.offer(claim(1, partition=3)) == VoidReason.WRONG_PARTITION


def test_a_match_in_a_partition_that_is_not_its_own_is_void() -> None:
    home = partition_of(M, 4)
    for partition in range(4):
        reader = Reader(partition, 4)
        assert reader.offer(claim(0, partition=partition)) == ""
        expected = "" if partition == home else VoidReason.WRONG_PARTITION
        assert reader.offer(facts(M, epoch=1, partition=partition)) == expected


def test_a_request_counts_once_per_match(reader: Reader) -> None:
    first = facts(M, epoch=1, request_id="x")
    assert reader.offer(first) == ""
    again = facts(M, epoch=1, after=first, request_id="x")
    assert reader.offer(again) == VoidReason.REPEATED_REQUEST
    assert reader.offer(facts(M, epoch=1, after=first, request_id="x", actor="bob")) == ""
    assert reader.offer(facts("match-b", epoch=1, request_id="x")) == ""


def test_a_request_stays_known_under_the_next_owner(reader: Reader) -> None:
    first = facts(M, epoch=1, request_id="x", digest=b"1" * 32)
    assert reader.offer(first) == ""
    assert reader.offer(claim(1)) == ""
    again = facts(M, epoch=3, after=first, request_id="x")
    assert reader.offer(again) == VoidReason.REPEATED_REQUEST
    seen = reader.admission.seen(M, "ann", "x")
    assert seen is not None
    assert (seen.sequence, seen.offset, seen.digest) == (1, 1, b"1" * 32)


def test_a_void_commit_leaves_its_request_free(reader: Reader) -> None:
    assert reader.offer(facts(M, epoch=9, request_id="x")) == VoidReason.STALE_EPOCH
    assert reader.admission.seen(M, "ann", "x") is None
    assert reader.offer(facts(M, epoch=1, request_id="x")) == ""


def test_commits_without_a_request_id_are_not_compared(reader: Reader) -> None:
    first = facts(M, epoch=1, request_id="")
    assert reader.offer(first) == ""
    assert reader.offer(facts(M, epoch=1, after=first, request_id="")) == ""
    assert reader.admission.seen(M, "ann", "") is None


def test_nothing_is_admitted_after_the_final_commit(reader: Reader) -> None:
    last = facts(M, epoch=1, final=True)
    assert reader.offer(last) == ""
    assert list(reader.admission.live()) == []
    assert list(reader.admission.matches()) == [M]
    assert reader.offer(facts(M, epoch=1, after=last)) == VoidReason.MATCH_FINISHED
    assert reader.offer(facts(M, epoch=1)) == VoidReason.MATCH_FINISHED
    head = reader.admission.head(M)
    assert head is not None and head.finished


def test_late_retries_of_finished_matches_are_answered_for_a_while(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission_module, "FINISHED_KEPT", 3)
    for number in range(5):
        assert reader.offer(facts(f"m{number}", epoch=1, final=True)) == ""
    answered = [reader.admission.seen(f"m{number}", "ann", "r1") is not None for number in range(5)]
    assert answered == [False, False, True, True, True]
    # What is forgotten for retries is still known to be finished.
    assert reader.offer(facts("m0", epoch=1)) == VoidReason.MATCH_FINISHED


def test_a_match_is_live_from_its_first_to_its_final_commit(reader: Reader) -> None:
    first = facts(M, epoch=1)
    assert reader.offer(first) == ""
    assert reader.offer(facts("match-b", epoch=1)) == ""
    assert list(reader.admission.live()) == [M, "match-b"]
    assert reader.offer(facts(M, epoch=1, after=first, final=True)) == ""
    assert list(reader.admission.live()) == ["match-b"]


def test_a_record_is_offered_once(reader: Reader) -> None:
    with pytest.raises(AssertionError):
        reader.admission.offer(0, claim(1))


@pytest.mark.parametrize("value", [b"", b"\xff\xff", b"not a commit"])
def test_bytes_that_are_no_commit_are_void(reader: Reader, value: bytes) -> None:
    commit, verdict = reader.admission.offer_value(1, value)
    assert commit is None
    assert verdict == Void(VoidReason.MALFORMED)
    assert reader.admission.next_offset == 2


def test_content_that_does_not_fit_its_hash_is_void(reader: Reader) -> None:
    message = commit_pb2.Commit.FromString(facts(M, epoch=1).value)
    message.facts[0].salt = b"0" * 16
    commit, verdict = reader.admission.offer_value(1, message.SerializeToString())
    assert commit is None
    assert verdict == Void(VoidReason.BAD_HASH)


@pytest.mark.parametrize("change", [{"format": 2}, {"kind": 9}])
def test_what_newer_software_wrote_stops_the_reader(reader: Reader, change: dict[str, int]) -> None:
    message = commit_pb2.Commit.FromString(facts(M, epoch=1).value)
    for name, number in change.items():
        setattr(message, name, number)
    with pytest.raises(UnreadableRecord, match="offset 1 of partition 0"):
        reader.admission.offer_value(1, message.SerializeToString())
    assert reader.admission.next_offset == 1


def test_a_value_is_decided_like_its_commit(reader: Reader) -> None:
    first = facts(M, epoch=1)
    commit, verdict = reader.admission.offer_value(1, first.value)
    assert commit is not None
    assert msgspec.structs.asdict(commit) == msgspec.structs.asdict(first)
    assert verdict == Admitted(epoch=1)
