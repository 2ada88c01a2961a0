"""A recorded match as one file (``.dlmatch``): writing it, and reading it with every fault located.

The format is that of ``proto/diceledger/log/v1/bundle.proto``: zstd frames (RFC 8878) one after
the other, each holding one BundleRecord behind its length as a varint: header, commits, trailer.
``zstd -dc FILE`` gives the length-delimited records. Beyond the RFC, every frame states its content
size and carries a checksum; the trailer's frame is not compressed and has one possible form, so
that no bit of the file can change unseen: the trailer covers the bytes of all frames before it.

The reader needs memory for one record at a time and refuses records over 8 MiB before unpacking
them. What a match's commits must be among themselves is checked as well (one chain, nothing
missing); whether their facts obey the rules is for ``verify``.
"""

import io
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import msgspec
import zstandard
from google.protobuf.message import DecodeError

from diceledger import __version__
from diceledger.log.v1 import bundle_pb2
from services.common.commits import BadCommit, Kind, ParsedCommit, parse_commit

MAGIC: Final = "dlmatch"
VERSION: Final = 1
SUFFIX: Final = ".dlmatch"
RECORD_BYTES_MAX: Final = 8 << 20

_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_ZSTD_LEVEL: Final = 9
_BLOCK_BYTES_MAX: Final = 128 << 10
_CHECKSUM_BYTES: Final = 4
# Kinds of blocks, beside those that are copied as they are.
_RUN: Final = 1
_COMPRESSED: Final = 2
_RESERVED: Final = 3
# What zstd may need for a record that does not get smaller at all.
_FRAME_BYTES_MAX: Final = RECORD_BYTES_MAX + RECORD_BYTES_MAX // 128


class BundleDamaged(Exception):
    """A file that is not what was exported, and where.

    `record` counts from 1 (the header), `offset` is the byte at which that record begins in the
    file, `detail` says what is wrong there.
    """

    def __init__(self, record: int, offset: int, detail: str) -> None:
        super().__init__(f"record {record} at byte {offset}: {detail}")
        self.record = record
        self.offset = offset
        self.detail = detail


class BundleHeader(msgspec.Struct, frozen=True):
    """Which match the file holds, and where it was played."""

    match_id: str
    log_id: str
    partition: int
    game: str
    build: str
    exported_at_ms: int


class BundledCommit(msgspec.Struct, frozen=True, eq=False):
    """One commit, with its offset in its partition of the log."""

    offset: int
    commit: ParsedCommit


class BundleTrailer(msgspec.Struct, frozen=True):
    """How much the file holds, the last commit's hash, and the state hash of the fold of all."""

    commits: int
    facts: int
    hash: bytes
    state_hash: bytes


class Bundle(NamedTuple):
    """A whole file."""

    header: BundleHeader
    commits: tuple[BundledCommit, ...]
    trailer: BundleTrailer


# -- writing ---------------------------------------------------------------------------------------


def bundle_chunks(
    commits: Iterable[tuple[int, bytes]],
    *,
    state_hash: bytes,
    exported_at_ms: int = 0,
    build: str = __version__,
) -> Iterator[bytes]:
    """The bytes of a bundle, a frame at a time; `commits` are offset and record, in order.

    Raises ValueError, after what is already given, for commits that are not one match from its
    start, and for a record over the limit.
    """
    chain = _Chain()
    compressor = zstandard.ZstdCompressor(level=_ZSTD_LEVEL, write_checksum=True)
    frame_hashes: list[bytes] = []
    for offset, value in commits:
        try:
            commit = parse_commit(value)
            chain.add(offset, commit)
        except (BadCommit, _Fault) as fault:
            raise ValueError(f"commit {chain.commits + 1} of the match: {fault}") from fault
        if not frame_hashes:
            head = bundle_pb2.BundleHeader(
                magic=MAGIC,
                version=VERSION,
                match_id=commit.match_id,
                log_id=commit.log_id,
                partition=commit.partition,
                game=commit.ruleset.game,
                build=build,
                exported_at_ms=exported_at_ms,
            )
            frame = compressor.compress(_delimited(bundle_pb2.BundleRecord(header=head)))
            frame_hashes.append(sha256(frame).digest())
            yield frame
        one = bundle_pb2.BundleCommit(offset=offset, commit=value)
        frame = compressor.compress(_delimited(bundle_pb2.BundleRecord(commit=one)))
        frame_hashes.append(sha256(frame).digest())
        yield frame
    if chain.last is None:
        raise ValueError("a match without commits")
    trailer = bundle_pb2.BundleTrailer(
        commits=chain.commits,
        facts=chain.facts,
        hash=chain.last.hash,
        state_hash=state_hash,
        frame_hashes=frame_hashes,
    )
    yield _plain_frame(_delimited(bundle_pb2.BundleRecord(trailer=trailer)))


def write_bundle(
    target: Path | BinaryIO,
    commits: Iterable[tuple[int, bytes]],
    *,
    state_hash: bytes,
    exported_at_ms: int = 0,
    build: str = __version__,
) -> None:
    """Write a bundle; a file appears at once and whole, or not at all.

    Raises as `bundle_chunks` does, and OSError.
    """
    chunks = bundle_chunks(
        commits, state_hash=state_hash, exported_at_ms=exported_at_ms, build=build
    )
    if not isinstance(target, Path):
        target.writelines(chunks)
        return
    with replacing(target) as file:
        file.writelines(chunks)


@contextmanager
def replacing(target: Path) -> Iterator[BinaryIO]:
    """A new file that takes the place of `target` when the block ends well, else goes away."""
    scratch = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
    try:
        with scratch.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(target)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def _delimited(record: bundle_pb2.BundleRecord) -> bytes:
    body = record.SerializeToString(deterministic=True)
    content = _varint(len(body)) + body
    if len(content) > RECORD_BYTES_MAX:
        raise ValueError(f"a record of {len(content)} bytes, {RECORD_BYTES_MAX} are possible")
    return content


def _varint(number: int) -> bytes:
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)


def _plain_frame(content: bytes) -> bytes:
    """The one form of the trailer's frame: uncompressed blocks, 8 bytes of content size."""
    parts = [_ZSTD_MAGIC, b"\xe4", len(content).to_bytes(8, "little")]
    for start in range(0, len(content), _BLOCK_BYTES_MAX):
        block = content[start : start + _BLOCK_BYTES_MAX]
        is_last = start + _BLOCK_BYTES_MAX >= len(content)
        parts += ((len(block) << 3 | is_last).to_bytes(3, "little"), block)
    # The checksum of the content is the same however it is packed.
    packed = zstandard.ZstdCompressor(level=1, write_checksum=True).compress(content)
    return b"".join((*parts, packed[-_CHECKSUM_BYTES:]))


# -- reading ---------------------------------------------------------------------------------------


def read_bundle(source: Path | BinaryIO) -> Iterator[BundleHeader | BundledCommit | BundleTrailer]:
    """The header, the commits in order, the trailer.

    Raises BundleDamaged at the first fault. Some faults show only when the trailer is compared with
    what came before: nothing is certain until the iterator has ended. Raises OSError.
    """
    if isinstance(source, Path):
        with source.open("rb") as file:
            yield from _Reader(file).items()
    else:
        yield from _Reader(source).items()


def load_bundle(source: Path | BinaryIO | bytes) -> Bundle:
    """A whole bundle, sound to the last bit. Raises BundleDamaged, OSError."""
    header: BundleHeader | None = None
    commits: list[BundledCommit] = []
    for item in read_bundle(io.BytesIO(source) if isinstance(source, bytes) else source):
        match item:
            case BundleHeader():
                header = item
            case BundledCommit():
                commits.append(item)
            case BundleTrailer() as trailer:
                pass
    assert header is not None, "the reader gives a header first, or raises"
    return Bundle(header, tuple(commits), trailer)


class _Fault(Exception):
    """Something is wrong with the record at hand."""


class _Chain:
    """The commits of one match as they come: each must follow the one before it."""

    def __init__(self) -> None:
        self.last: ParsedCommit | None = None
        self.commits = 0
        self.facts = 0
        self._offset = -1

    def add(self, offset: int, commit: ParsedCommit) -> None:
        """Take the next commit. Raises _Fault where it cannot be the next one."""
        due = self.commits + 1
        last = self.last
        if commit.kind is not Kind.FACTS:
            raise _Fault("it is no commit of a match")
        if last is not None:
            for name in ("match_id", "log_id", "partition"):
                if getattr(commit, name) != getattr(last, name):
                    raise _Fault(f"{name} is {getattr(commit, name)}, not {getattr(last, name)}")
            if last.final:
                raise _Fault(f"commit {commit.sequence} follows the last one of the match")
        if commit.sequence != due:
            raise _Fault(f"commit {commit.sequence} is where commit {due} should be")
        if commit.previous_hash != (last.hash if last else b""):
            raise _Fault(f"commit {due} does not follow commit {due - 1}: other previous hash")
        if commit.first_fact != self.facts:
            raise _Fault(f"its first fact is {commit.first_fact}, not {self.facts}")
        if offset <= self._offset:
            raise _Fault(f"its offset {offset} does not come after {self._offset}")
        self.last, self._offset = commit, offset
        self.commits += 1
        self.facts += commit.fact_count


class _Reader:
    """Reads the frames of one file, one after the other."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decompressor = zstandard.ZstdDecompressor()
        self._position = 0
        # Of the frames read so far: where each begins, and the hash of its bytes.
        self._starts: list[int] = []
        self._hashes: list[bytes] = []
        self._chain = _Chain()
        self._header: BundleHeader | None = None

    def items(self) -> Iterator[BundleHeader | BundledCommit | BundleTrailer]:
        ended = False
        while not ended:
            self._starts.append(self._position)
            try:
                frame = self._frame()
                item = self._item(frame, self._content(frame))
                self._hashes.append(sha256(frame).digest())
                ended = isinstance(item, BundleTrailer)
            except _Fault as fault:
                raise BundleDamaged(len(self._starts), self._starts[-1], str(fault)) from None
            if ended and self._file.read(1):
                detail = "something follows the trailer"
                raise BundleDamaged(len(self._starts) + 1, self._position, detail)
            yield item

    def _take(self, size: int) -> bytes:
        parts = []
        missing = size
        while missing:
            part = self._file.read(missing)
            if not part:
                raise _Fault(f"the file ends within it, at byte {self._position}")
            parts.append(part)
            missing -= len(part)
            self._position += len(part)
        return b"".join(parts)

    def _frame(self) -> bytes:
        """The bytes of the next zstd frame, by its own account of its size."""
        header, content_left = self._frame_header()
        parts = [header]
        frame_left = _FRAME_BYTES_MAX
        is_last = False
        while not is_last:
            block_header = self._take(3)
            word = int.from_bytes(block_header, "little")
            is_last, kind, size = bool(word & 1), word >> 1 & 3, word >> 3
            if kind == _RESERVED or not 0 < size <= _BLOCK_BYTES_MAX:
                raise _Fault("a block that is no zstd block")
            body = self._take(1 if kind == _RUN else size)
            parts += (block_header, body)
            # How much a compressed block holds is not known yet; it is something.
            content_left -= 1 if kind == _COMPRESSED else size
            frame_left -= len(block_header) + len(body)
            if content_left < 0 or frame_left < 0:
                raise _Fault("more blocks than its content can need")
        parts.append(self._take(_CHECKSUM_BYTES))
        return b"".join(parts)

    def _frame_header(self) -> tuple[bytes, int]:
        """The bytes before the first block, and the size of the content that they state."""
        magic = self._file.read(len(_ZSTD_MAGIC))
        if not magic:
            raise _Fault("the file ends here, the trailer is missing")
        self._position += len(magic)
        if magic != _ZSTD_MAGIC:
            raise _Fault("no zstd frame begins here")
        descriptor = self._take(1)
        flags = descriptor[0]
        # No dictionary, reserved bits zero, a checksum: nothing else is written.
        if flags & 0b0001_1111 != 0b0000_0100:
            raise _Fault(f"a frame header {flags:#04x} that is never written")
        is_single = flags >> 5 & 1
        size_bytes = (is_single, 2, 4, 8)[flags >> 6]
        if not size_bytes:
            raise _Fault("a frame without its content size")
        sizes = self._take((1 - is_single) + size_bytes)
        content_size = int.from_bytes(sizes[-size_bytes:], "little") + 256 * (size_bytes == 2)
        if not 0 < content_size <= RECORD_BYTES_MAX:
            raise _Fault(f"a record of {content_size} bytes, {RECORD_BYTES_MAX} are possible")
        return magic + descriptor + sizes, content_size

    def _content(self, frame: bytes) -> bundle_pb2.BundleRecord:
        try:
            content = self._decompressor.decompress(frame, max_output_size=RECORD_BYTES_MAX)
        except zstandard.ZstdError as error:
            raise _Fault(f"its content does not unpack ({error})") from None
        size = shift = used = 0
        for byte in content[:5]:
            size |= (byte & 0x7F) << shift
            shift += 7
            used += 1
            if byte < 0x80:
                break
        if size != len(content) - used or content[:used] != _varint(size):
            raise _Fault("it does not hold exactly one record")
        record = bundle_pb2.BundleRecord()
        try:
            record.ParseFromString(content[used:])
        except DecodeError:
            raise _Fault("its content is no record") from None
        return record

    def _item(
        self, frame: bytes, record: bundle_pb2.BundleRecord
    ) -> BundleHeader | BundledCommit | BundleTrailer:
        kind = record.WhichOneof("record")
        if self._header is None:
            if kind != "header" or record.header.magic != MAGIC:
                raise _Fault("this is no exported match: the header is missing")
            if record.header.version != VERSION:
                version = record.header.version
                raise _Fault(f"version {version} of the format; this software reads {VERSION}")
            self._header = _header_of(record.header)
            return self._header
        match kind:
            case "commit":
                return self._commit(self._header, record.commit)
            case "trailer":
                if frame != _plain_frame(_delimited(record)):
                    raise _Fault("the trailer's frame is not written like this")
                return self._trailer(record.trailer)
            case _:
                raise _Fault("a second header, or a record of newer software")

    def _commit(self, header: BundleHeader, stored: bundle_pb2.BundleCommit) -> BundledCommit:
        try:
            commit = parse_commit(stored.commit)
        except BadCommit as bad:
            raise _Fault(f"commit {self._chain.commits + 1}: {bad}") from None
        self._chain.add(stored.offset, commit)
        for name in ("match_id", "log_id", "partition"):
            if getattr(commit, name) != getattr(header, name):
                raise _Fault(f"{name} is not the one that the header names")
        return BundledCommit(stored.offset, commit)

    def _trailer(self, stored: bundle_pb2.BundleTrailer) -> BundleTrailer:
        for index, (written, found) in enumerate(
            zip(stored.frame_hashes, self._hashes, strict=False)
        ):
            if written != found:
                detail = "its bytes are not those that were written"
                raise BundleDamaged(index + 1, self._starts[index], detail)
        last = self._chain.last
        facts = self._chain.facts
        if len(stored.frame_hashes) != len(self._hashes) or stored.commits != self._chain.commits:
            raise _Fault(f"{stored.commits} commits were written, {self._chain.commits} are here")
        if last is None or stored.hash != last.hash or stored.facts != facts:
            raise _Fault("the trailer's hash or number of facts is not that of the commits")
        return BundleTrailer(stored.commits, stored.facts, stored.hash, stored.state_hash)


def _header_of(stored: bundle_pb2.BundleHeader) -> BundleHeader:
    return BundleHeader(
        match_id=stored.match_id,
        log_id=stored.log_id,
        partition=stored.partition,
        game=stored.game,
        build=stored.build,
        exported_at_ms=stored.exported_at_ms,
    )
