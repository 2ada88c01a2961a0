"""The exported file: what comes back, and that no fault in it goes unseen or unplaced."""

import io
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard

from diceledger.log.v1 import bundle_pb2
from engine import ChanceDrawn, Fact, MatchEnded, Seat, SeatTaken
from services.common import bundle
from services.common.bundle import (
    BundleDamaged,
    BundledCommit,
    bundle_chunks,
    load_bundle,
    read_bundle,
    replacing,
    write_bundle,
)
from services.common.commits import ParsedCommit, build_claim, make_commit
from tests.services.codec.makers import chain, fields

STATE_HASH = bytes(range(32))
STEPS: list[list[Fact]] = [
    [SeatTaken(Seat(1), "alice", "Alice", b"e" * 16)],
    [ChanceDrawn("die", 0, 6, 2, (3, 5)), ChanceDrawn("die", 1, 6, 1, (2,))],
    [ChanceDrawn("die", 2, 6, 6, (0, 1, 2, 3, 4, 5))],
    [MatchEnded((Seat(1),), "points")],
]
COMMITS = chain(STEPS)
PLACED = [(10 + 3 * index, commit.value) for index, commit in enumerate(COMMITS)]
FRAMES = list(bundle_chunks(PLACED, state_hash=STATE_HASH, exported_at_ms=77))
FILE = b"".join(FRAMES)
# Where each frame begins; the header is record 1.
STARTS = [sum(map(len, FRAMES[:index])) for index in range(len(FRAMES))]


def damage_of(data: bytes) -> BundleDamaged:
    with pytest.raises(BundleDamaged) as caught:
        load_bundle(data)
    return caught.value


def record_at(position: int) -> int:
    return sum(start <= position for start in STARTS)


def test_what_is_written_is_read() -> None:
    whole = load_bundle(FILE)
    assert whole.header == bundle.BundleHeader(
        match_id=COMMITS[0].match_id,
        log_id="log-1",
        partition=3,
        game="king_of_tokyo",
        build=COMMITS[0].build,
        exported_at_ms=77,
    )
    assert [(each.offset, each.commit.value) for each in whole.commits] == PLACED
    assert whole.trailer == bundle.BundleTrailer(4, 5, COMMITS[-1].hash, STATE_HASH)


def test_commits_come_one_by_one_in_order() -> None:
    kinds = [type(item).__name__ for item in read_bundle(io.BytesIO(FILE))]
    assert kinds == ["BundleHeader", *["BundledCommit"] * 4, "BundleTrailer"]


@pytest.mark.parametrize("record", range(1, len(FRAMES) + 1))
def test_any_flipped_bit_is_found_and_placed(record: int) -> None:
    """Every single bit of the file, one at a time."""
    start, frame = STARTS[record - 1], FRAMES[record - 1]
    for position in range(start, start + len(frame)):
        for bit in range(8):
            damaged = bytearray(FILE)
            damaged[position] ^= 1 << bit
            found = damage_of(bytes(damaged))
            assert (found.record, found.offset) == (record, start), (position, bit, found)


def test_a_file_cut_anywhere_is_found_and_placed() -> None:
    for length in range(len(FILE)):
        found = damage_of(FILE[:length])
        assert found.record == (
            record_at(length) if length not in STARTS else STARTS.index(length) + 1
        )
        assert found.offset == STARTS[found.record - 1]


@pytest.mark.parametrize("record", range(1, len(FRAMES) + 1))
def test_a_removed_record_is_found_and_placed(record: int) -> None:
    found = damage_of(b"".join(FRAMES[: record - 1] + FRAMES[record:]))
    assert found.record == record
    assert found.offset == STARTS[record - 1]


@pytest.mark.parametrize("record", range(1, len(FRAMES)))
def test_swapped_records_are_found_and_placed(record: int) -> None:
    frames = [*FRAMES]
    frames[record - 1], frames[record] = frames[record], frames[record - 1]
    assert damage_of(b"".join(frames)).record == record


@pytest.mark.parametrize("record", range(1, len(FRAMES) + 1))
def test_a_doubled_record_is_found_and_placed(record: int) -> None:
    frames = [*FRAMES[:record], FRAMES[record - 1], *FRAMES[record:]]
    assert damage_of(b"".join(frames)).record == record + 1


@pytest.mark.parametrize("garbage", [b"\x00", b"\n", FRAMES[-1], b"x" * 5000])
def test_what_follows_the_trailer_is_found(garbage: bytes) -> None:
    found = damage_of(FILE + garbage)
    assert (found.record, found.offset) == (len(FRAMES) + 1, len(FILE))


@pytest.mark.parametrize("data", [b"", b"hello, I am a text file", b"\x00" * 100, FRAMES[1]])
def test_another_kind_of_file_is_refused_at_its_start(data: bytes) -> None:
    found = damage_of(data)
    assert (found.record, found.offset) == (1, 0)


# -- files that were changed with care -------------------------------------------------------------


def rewritten(change: Callable[[list[bundle_pb2.BundleRecord]], None]) -> bytes:
    """A file whose records were changed, with right frames and a trailer that fits the frames."""
    records = [_record(frame) for frame in FRAMES]
    change(records)
    frames = [_frame(record) for record in records[:-1]]
    del records[-1].trailer.frame_hashes[:]
    records[-1].trailer.frame_hashes.extend(sha256(frame).digest() for frame in frames)
    return b"".join((*frames, bundle._plain_frame(bundle._delimited(records[-1]))))


def _record(frame: bytes) -> bundle_pb2.BundleRecord:
    content = zstandard.ZstdDecompressor().decompress(frame)
    start = 1 if content[0] < 0x80 else 2
    return bundle_pb2.BundleRecord.FromString(content[start:])


def _frame(record: bundle_pb2.BundleRecord) -> bytes:
    compressor = zstandard.ZstdCompressor(level=3, write_checksum=True)
    return compressor.compress(bundle._delimited(record))


def test_a_rewritten_file_without_change_is_sound() -> None:
    assert load_bundle(rewritten(lambda records: None)).trailer.commits == 4


def _other_commit(sequence: int, **changed: Any) -> ParsedCommit:
    commit = COMMITS[sequence - 1]
    return make_commit(
        **{
            **fields(),
            "facts": STEPS[sequence - 1],
            "sequence": sequence,
            "first_fact": commit.first_fact,
            "previous_hash": commit.previous_hash,
            **changed,
        }
    )


def _set(index: int, path: str, value: Any) -> Callable[[list[bundle_pb2.BundleRecord]], None]:
    def change(records: list[bundle_pb2.BundleRecord]) -> None:
        *parents, name = path.split(".")
        target: Any = records[index]
        for parent in parents:
            target = getattr(target, parent)
        setattr(target, name, value)

    return change


def _delete(index: int) -> Callable[[list[bundle_pb2.BundleRecord]], None]:
    def change(records: list[bundle_pb2.BundleRecord]) -> None:
        del records[index]
        records[-1].trailer.commits -= 1

    return change


def _commit_of_another_log() -> bytes:
    return _other_commit(2, log_id="log-2").value


@pytest.mark.parametrize(
    ("change", "record", "words"),
    [
        (_delete(1), 2, "commit 2 is where commit 1 should be"),
        (_delete(2), 3, "commit 3 is where commit 2 should be"),
        (_delete(4), 5, "hash or number of facts"),
        (_set(2, "commit.commit", _other_commit(2).value), 4, "other previous hash"),
        (_set(2, "commit.commit", _commit_of_another_log()), 3, "log_id is log-2"),
        (_set(2, "commit.commit", COMMITS[1].value + b"\x00"), 3, "MALFORMED"),
        (_set(2, "commit.commit", b""), 3, "MALFORMED"),
        (_set(2, "commit.offset", 9), 3, "offset 9 does not come after 10"),
        (_set(0, "header.match_id", "another"), 2, "match_id"),
        (_set(0, "header.magic", "zip"), 1, "no exported match"),
        (_set(0, "header.version", 2), 1, "version 2"),
        (_set(5, "trailer.commits", 3), 6, "3 commits were written, 4 are here"),
        (_set(5, "trailer.facts", 3), 6, "number of facts"),
        (_set(5, "trailer.hash", b"h" * 32), 6, "hash"),
    ],
)  # fmt: skip
def test_a_change_made_with_care_is_found_and_placed(
    change: Callable[[list[bundle_pb2.BundleRecord]], None], record: int, words: str
) -> None:
    found = damage_of(rewritten(change))
    assert found.record == record
    assert words in found.detail


def test_nothing_follows_the_commit_that_ended_the_match() -> None:
    first = make_commit(**fields(sequence=1, first_fact=0, previous_hash=b"", final=True))
    second = make_commit(**fields(sequence=2, first_fact=1, previous_hash=first.hash))
    with pytest.raises(ValueError, match="follows the last one"):
        list(bundle_chunks([(1, first.value), (2, second.value)], state_hash=STATE_HASH))


def test_a_claim_is_no_commit_of_a_match() -> None:
    claim = build_claim(log_id="log-1", partition=3, writer="m", address="h:1", previous_epoch=0)
    with pytest.raises(ValueError, match="no commit of a match"):
        list(bundle_chunks([(1, claim)], state_hash=STATE_HASH))


# -- zstd ------------------------------------------------------------------------------------------


def test_any_zstd_reader_unpacks_it() -> None:
    """As ``zstd -dc`` does: frame after frame, to the length-delimited records."""
    reader = zstandard.ZstdDecompressor().stream_reader(FILE, read_across_frames=True)
    unpacked = io.BytesIO(reader.read())
    records = []
    while (first := unpacked.read(1)) != b"":
        size = first[0] if first[0] < 0x80 else (first[0] & 0x7F) | unpacked.read(1)[0] << 7
        records.append(bundle_pb2.BundleRecord.FromString(unpacked.read(size)))
    assert records == [_record(frame) for frame in FRAMES]


def _bomb(size: int) -> bytes:
    """A frame of run-length blocks: four bytes of file for 128 KiB of content."""
    whole, rest = divmod(size, 128 << 10)
    assert not rest
    block = ((128 << 10) << 3 | 0b010).to_bytes(3, "little") + b"\x00"
    last = ((128 << 10) << 3 | 0b011).to_bytes(3, "little") + b"\x00"
    header = b"\x28\xb5\x2f\xfd\xe4" + size.to_bytes(8, "little")
    return header + block * (whole - 1) + last + b"sums"


def test_a_record_over_the_limit_is_not_unpacked() -> None:
    assert "8388608 are possible" in damage_of(FRAMES[0] + _bomb(1 << 40 >> 10)).detail


def test_a_frame_that_lies_about_its_size_is_not_unpacked() -> None:
    bomb = bytearray(_bomb(64 << 20))
    bomb[5:13] = (1000).to_bytes(8, "little")
    assert "more blocks" in damage_of(FRAMES[0] + bytes(bomb)).detail


@pytest.mark.parametrize("block", [b"\x00\x00\x00", b"\x08\x00\x00x", b"\x0a\x00\x00x"])
def test_a_frame_of_blocks_without_end_is_given_up(block: bytes) -> None:
    class Endless(io.RawIOBase):
        def __init__(self) -> None:
            self.buffer = b"\x28\xb5\x2f\xfd\xe4" + (1000).to_bytes(8, "little")
            self.given = 0

        def read(self, size: int = -1) -> bytes:
            self.given += size
            while len(self.buffer) < size:
                self.buffer += block
            part, self.buffer = self.buffer[:size], self.buffer[size:]
            return part

    endless = Endless()
    with pytest.raises(BundleDamaged, match="block"):
        list(read_bundle(endless))  # type: ignore[arg-type]  # what matters of a file
    assert endless.given < 5_000


def test_a_frame_whose_content_is_longer_than_stated_does_not_unpack() -> None:
    content = b"z" * 5_000
    frame = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(content))
    frame[5:7] = (100).to_bytes(2, "little")
    assert "does not unpack" in damage_of(FRAMES[0] + bytes(frame)).detail


def test_a_large_trailer_is_written_in_several_blocks() -> None:
    content = bytes(300_000)
    frame = bundle._plain_frame(content)
    assert zstandard.ZstdDecompressor().decompress(frame) == content


# -- files -----------------------------------------------------------------------------------------


def test_a_bundle_is_written_and_read_as_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.dlmatch"
    write_bundle(path, PLACED, state_hash=STATE_HASH, exported_at_ms=77)
    assert path.read_bytes() == FILE
    items = list(read_bundle(path))
    assert isinstance(items[1], BundledCommit)
    assert load_bundle(path).trailer.commits == 4
    stream = io.BytesIO()
    write_bundle(stream, PLACED, state_hash=STATE_HASH, exported_at_ms=77)
    assert stream.getvalue() == FILE


def test_a_failed_export_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "a.dlmatch"
    path.write_bytes(b"the old file")
    with pytest.raises(ValueError, match="commit 2 of the match"):
        write_bundle(path, [PLACED[0], PLACED[2]], state_hash=STATE_HASH)
    with pytest.raises(KeyboardInterrupt), replacing(path) as file:
        file.write(b"half of the new one")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"the old file"
    assert list(tmp_path.iterdir()) == [path]


def test_a_match_without_commits_is_no_bundle() -> None:
    with pytest.raises(ValueError, match="without commits"):
        list(bundle_chunks([], state_hash=STATE_HASH))


def test_the_same_match_gives_the_same_bytes() -> None:
    assert b"".join(bundle_chunks(PLACED, state_hash=STATE_HASH, exported_at_ms=77)) == FILE


def test_commits_keep_their_bytes() -> None:
    """What the hash of a commit covers is the record itself, so nothing may touch it on its way."""
    for before, after in zip(COMMITS, load_bundle(FILE).commits, strict=True):
        assert after.commit.value == before.value
        assert msgspec.structs.astuple(after.commit)[:-1] == msgspec.structs.astuple(before)[:-1]
