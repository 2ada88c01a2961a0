"""The read models in Redis: key layout, the one write that is ever made, and the reading side.

A partition of the log has its own set of keys, which share a hash tag (so they lie on one Redis
shard and one script may touch them all)::

    dl:{<log8>:<p>}:watermark          hash  log_id, offset, version, target
    dl:{<log8>:<p>}:match:<id>         hash  version, offset, sequence, hash, status, summary,
                                             parked, spectator, seat:1 … (encoded engine states)
    dl:{<log8>:<p>}:matches            zset  match id by time of creation (ms)
    dl:{<log8>:<p>}:status:<status>    zset  the same, of one status
    dl:{<log8>:<p>}:player:<subject>   zset  the same, of one player
    dl:{<log8>:<p>}:parked             set   matches that could not be folded

What a view holds is a function of the log up to the watermark and of VIEW_VERSION, of nothing else:
whoever writes it writes the same bytes. Views and watermark change in one script call, and only
when the stored watermark is the one that the writer expected.
Who computes the views is `services.projector`; this module knows no game and decodes no state.
"""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, cast

import msgspec
from redis.asyncio import Redis
from redis.exceptions import NoScriptError, RedisError, ResponseError

from services.common.log.port import Position, partition_of
from services.common.viewpages import Merge, parse_token

# Raise it whenever the same log would give other bytes in a view: the views are then rebuilt.
VIEW_VERSION: Final = 1
# The version of a stored watermark that cannot be read; nothing that we wrote.
_DAMAGED: Final = -1
# The version while a partition's views are being removed, to be built anew.
_CLEARING: Final = 0
# The `seat` of a view that is nobody's.
SPECTATOR: Final = 0
# Matches removed from Redis by one script call while a partition is being reset.
_DROP_PAGE: Final = 200
_POLL_FIRST_S: Final = 0.002
_POLL_MAX_S: Final = 0.05
_DAMAGED_TOLD_MAX: Final = 1_000

_logger = logging.getLogger(__name__)

Status = Literal["lobby", "running", "finished"]
STATUSES: Final[tuple[Status, ...]] = ("lobby", "running", "finished")


class ViewsError(Exception):
    """The read models cannot answer; the message is one sentence for people."""


class ViewsUnavailable(ViewsError):
    """Redis cannot be reached, or does not do what it is asked."""


class ViewsDamaged(ViewsUnavailable):
    """A key holds something that is not ours: the partition's views must be built anew."""


class ViewsBehind(ViewsError):
    """The read models did not get as far as was asked in the time given."""


class ViewsRebuilding(ViewsError):
    """The read models of a partition are being built; what is missing may well exist."""


class Conflict(Exception):
    """The stored watermark is not the expected one: nothing was written."""

    def __init__(self, stored: "Watermark | None") -> None:
        super().__init__(f"the stored watermark is {stored}")
        self.stored = stored


@dataclass(frozen=True, slots=True)
class Watermark:
    """How far the views of one partition are: every commit up to `offset` is in them."""

    log_id: str
    # Offset of the last record applied; -1: none.
    offset: int
    version: int = VIEW_VERSION
    # Until `offset` gets here the views show a past that readers have already left behind.
    target: int = -1

    @property
    def rebuilding(self) -> bool:
        """The views may not be shown as current yet."""
        return self.offset < self.target or self.version != VIEW_VERSION


class SeatSummary(msgspec.Struct, frozen=True):
    """One seat of a match in lists. `player` is a token subject, empty while the seat is free."""

    seat: int
    player: str = ""
    name: str = ""
    asked: bool = False


class Summary(msgspec.Struct, frozen=True, omit_defaults=True):
    """What everybody may know of a match without decoding a state. Times: ms since 1970."""

    match_id: str
    game: str
    status: Status
    sequence: int
    seats: tuple[SeatSummary, ...] = ()
    host: str = ""
    winners: tuple[int, ...] = ()
    created_ms: int = 0
    # When the open prompts are answered by their defaults; 0: never.
    deadline_ms: int = 0

    def seat_of(self, player: str) -> int:
        """The seat that `player` has; SPECTATOR when none."""
        return next((s.seat for s in self.seats if player and s.player == player), SPECTATOR)


@dataclass(frozen=True, slots=True)
class MatchRow:
    """One match as it is stored: what all viewers share, and each viewer's encoded state."""

    match_id: str
    # Sequence, hash and log offset of the last commit that is in the views.
    sequence: int
    hash: bytes
    offset: int
    status: Status
    summary: Summary
    # engine.encode_state of each viewer's fold, by seat; SPECTATOR for everybody else.
    states: Mapping[int, bytes]
    # Why later commits are not in the view: they could not be folded. Empty: nothing is wrong.
    parked: str = ""
    # How far the partition's views are.
    watermark: Watermark | None = None

    def state(self, seat: int | None) -> bytes:
        """The encoded MatchState that `seat` may see; None and SPECTATOR: a spectator's."""
        return self.states.get(seat or SPECTATOR) or self.states[SPECTATOR]


@dataclass(frozen=True, slots=True)
class Page:
    """Some matches, newest first; `next_token` is empty on the last page."""

    matches: tuple[Summary, ...]
    next_token: str


class Keys:
    """Names of the Redis keys of one partition."""

    def __init__(self, log_id: str, partition: int) -> None:
        self.prefix = f"dl:{{{log_id[:8]}:{partition}}}:"
        self.watermark = self.prefix + "watermark"
        self.matches = self.prefix + "matches"
        self.parked = self.prefix + "parked"

    def match(self, match_id: str) -> str:
        """The hash of one match."""
        return f"{self.prefix}match:{match_id}"

    def status(self, status: str) -> str:
        """The index of the matches of one status."""
        return f"{self.prefix}status:{status}"

    def player(self, subject: str) -> str:
        """The index of one player's matches."""
        return f"{self.prefix}player:{subject}"


# KEYS[1] is the watermark. ARGV: expected log_id, offset, version ("" each: none stored); new
# log_id, offset, version, target; then the writes, each as: how many words follow, the command, the
# index of its key in KEYS, its arguments. UNLESS_NEWER offset n passes over the n words that follow
# when the row is of a later offset. The watermark is set last: should a write fail, the same
# batch is simply written again.
_APPLY: Final = """
local stored = redis.call('HMGET', KEYS[1], 'log_id', 'offset', 'version', 'target')
for i = 1, 3 do
  if (stored[i] or '') ~= ARGV[i] then
    return {stored[1] or '', stored[2] or '', stored[3] or '', stored[4] or ''}
  end
end
local at, last = 8, #ARGV
while at <= last do
  local words, key = tonumber(ARGV[at]), KEYS[tonumber(ARGV[at + 2])]
  if ARGV[at + 1] == 'UNLESS_NEWER' then
    if tonumber(redis.call('HGET', key, 'offset') or '-1') > tonumber(ARGV[at + 3]) then
      at = at + tonumber(ARGV[at + 4])
    end
  else
    redis.call(ARGV[at + 1], key, unpack(ARGV, at + 3, at + words))
  end
  at = at + words + 1
end
redis.call('HSET', KEYS[1], 'log_id', ARGV[4], 'offset', ARGV[5], 'version', ARGV[6],
           'target', ARGV[7])
return 1
"""
_APPLY_SHA: Final = hashlib.sha1(_APPLY.encode(), usedforsecurity=False).hexdigest()

_Word = str | bytes | int


class Batch:
    """Writes to the keys of one partition that happen all together or not at all."""

    def __init__(self, keys: Keys) -> None:
        self._names = keys
        self._index: dict[str, int] = {keys.watermark: 1}
        self._words: list[_Word] = []

    def _add(self, command: str, key: str, *arguments: _Word) -> None:
        index = self._index.setdefault(key, len(self._index) + 1)
        self._words += (len(arguments) + 2, command, index, *arguments)

    def put(self, row: MatchRow, *, keep_newer: bool = False) -> None:
        """Write one match: its row and its places in the indexes.

        With `keep_newer` not if the stored row is of a later offset.
        """
        names, match_id, summary = self._names, row.match_id, row.summary
        begin = len(self._words)
        key = names.match(match_id)
        self._add("DEL", key)
        self._add("HSET", key, *_row_fields(row))
        self._add("ZADD", names.matches, summary.created_ms, match_id)
        for status in STATUSES:
            if status == row.status:
                self._add("ZADD", names.status(status), summary.created_ms, match_id)
            else:
                self._add("ZREM", names.status(status), match_id)
        for seat in summary.seats:
            if seat.player:
                self._add("ZADD", names.player(seat.player), summary.created_ms, match_id)
        self._add("SADD" if row.parked else "SREM", names.parked, match_id)
        if keep_newer:
            rest = len(self._words) - begin
            self._words[begin:begin] = (4, "UNLESS_NEWER", self._index[key], row.offset, rest)

    def drop(self, match_id: str, players: Iterable[str]) -> None:
        """Remove one match and its places in the indexes."""
        names = self._names
        self._add("DEL", names.match(match_id))
        self._add("SREM", names.parked, match_id)
        indexes = [names.matches, *(names.status(status) for status in STATUSES)]
        for index in (*indexes, *(names.player(player) for player in players)):
            self._add("ZREM", index, match_id)

    def call(self, expected: Watermark | None, new: Watermark) -> tuple[list[str], list[_Word]]:
        """Keys and arguments of the script call."""
        old = (expected.log_id, expected.offset, expected.version) if expected else ("", "", "")
        head = (*old, new.log_id, new.offset, new.version, new.target)
        return list(self._index), [*head, *self._words]


def _row_fields(row: MatchRow) -> list[_Word]:
    """The row as field, value, field, value …; a state equal to the spectator's is left out."""
    fields: list[_Word] = [
        *("version", VIEW_VERSION, "offset", row.offset, "sequence", row.sequence),
        *("hash", row.hash, "status", row.status, "summary", msgspec.json.encode(row.summary)),
    ]
    if row.parked:
        fields += ("parked", row.parked)
    spectator = row.states.get(SPECTATOR, b"")
    for seat, state in row.states.items():
        if seat == SPECTATOR:
            fields += ("spectator", state)
        elif state != spectator:
            fields += (f"seat:{seat}", state)
    return fields


def _row(match_id: str, stored: Mapping[bytes, bytes], mark: Watermark | None) -> MatchRow:
    """The stored row. Raises ViewsUnavailable when it is damaged."""
    try:
        summary = msgspec.json.decode(stored[b"summary"], type=Summary)
        states = {SPECTATOR: stored.get(b"spectator", b"")}
        for name, value in stored.items():
            if name.startswith(b"seat:"):
                states[int(name[5:])] = value
        return MatchRow(
            match_id=match_id,
            sequence=int(stored[b"sequence"]),
            hash=stored[b"hash"],
            offset=int(stored[b"offset"]),
            status=summary.status,
            summary=summary,
            states=states,
            parked=stored.get(b"parked", b"").decode(),
            watermark=mark,
        )
    except (KeyError, ValueError, msgspec.DecodeError) as error:
        raise ViewsUnavailable(f"the read model of match {match_id} is damaged") from error


def _watermark(fields: Sequence[bytes | None]) -> Watermark | None:
    """The watermark from log_id, offset, version, target as stored; None when there is none."""
    if not fields[0]:
        return None
    log_id = fields[0].decode(errors="replace")
    offset, version, target = (field or b"" for field in fields[1:])
    try:
        return Watermark(log_id, int(offset), int(version), int(target or -1))
    except ValueError:
        return Watermark(log_id, -1, _DAMAGED)


def _unavailable(error: Exception, what: str) -> ViewsUnavailable:
    kind = ViewsDamaged if "WRONGTYPE" in str(error) else ViewsUnavailable
    return kind(f"{what}: {error}")


class Views:
    """The read models of one log. All methods raise ViewsUnavailable when Redis does not answer."""

    def __init__(
        self,
        redis: "Redis",
        log_id: str,
        partitions: int,
        on_damaged: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_damaged` is called for every row that a list leaves out (for a metric)."""
        self._redis = redis
        self._on_damaged = on_damaged
        # What was logged, so that each list does not do it again.
        self._damaged: set[str] = set()
        self.log_id = log_id
        self.partitions = partitions
        self._keys = tuple(Keys(log_id, partition) for partition in range(partitions))
        self._reads: dict[int, asyncio.Task[Watermark | None]] = {}

    def keys(self, partition: int) -> Keys:
        """Names of the keys of `partition`."""
        return self._keys[partition]

    def partition_of(self, match_id: str) -> int:
        """The partition that holds `match_id`."""
        return partition_of(match_id, self.partitions)

    async def _ask(self, answer: "Awaitable[Any]") -> Any:
        try:
            return await answer
        except (RedisError, OSError, TimeoutError) as error:
            raise _unavailable(error, "Redis does not answer") from error

    # -- writing: for the projector ---------------------------------------------------------------

    async def apply(
        self, partition: int, expected: Watermark | None, new: Watermark, batch: Batch
    ) -> None:
        """Write `batch` and set the watermark to `new`, if the stored one equals `expected`.

        Raises Conflict when it does not; then nothing was written. After ViewsUnavailable it is
        unknown whether anything was: call again, and take a Conflict with `new` for success.
        """
        keys, words = batch.call(expected, new)
        try:
            answer = await self._redis.evalsha(
                _APPLY_SHA, len(keys), *keys, *cast("list[str]", words)
            )
        except NoScriptError:
            answer = await self._ask(
                self._redis.eval(_APPLY, len(keys), *keys, *cast("list[str]", words))
            )
        except (RedisError, OSError, TimeoutError) as error:
            raise _unavailable(error, "Redis did not take the views") from error
        if isinstance(answer, list):
            raise Conflict(_watermark(answer))

    async def reset(self, partition: int, stored: Watermark | None, target: int) -> Watermark:
        """Start the views of `partition` afresh: nothing applied, every match removed.

        Readers are told "rebuilding" until the watermark has reached `target`. Raises Conflict
        when another projector changes the watermark meanwhile.
        """
        if stored is not None and stored.version == _DAMAGED:
            # The script could never find in Redis what was read from there.
            await self._ask(self._redis.delete(self._keys[partition].watermark))
            stored = None
        # Of a version of its own, so that a reset that was broken off is begun again, and nothing
        # is removed any more once views are being written.
        clearing = Watermark(self.log_id, -1, _CLEARING, target)
        await self.apply(partition, stored, clearing, Batch(self._keys[partition]))
        while ids := await self._some_matches(partition):
            batch = Batch(self._keys[partition])
            for match_id, players in ids:
                batch.drop(match_id, players)
            await self.apply(partition, clearing, clearing, batch)
        fresh = replace(clearing, version=VIEW_VERSION)
        await self.apply(partition, clearing, fresh, Batch(self._keys[partition]))
        return fresh

    async def wipe(self, partition: int) -> None:
        """Remove every key of `partition`, of whatever type: for views that were damaged."""
        names = self._keys[partition]
        # First, so that nobody takes what is left for the whole.
        await self._ask(self._redis.delete(names.watermark))
        cursor = -1
        while cursor:
            scan = self._redis.scan(max(0, cursor), f"{names.prefix}*", _DROP_PAGE)
            cursor, found = await self._ask(scan)
            if found:
                await self._ask(self._redis.delete(*found))

    async def _some_matches(self, partition: int) -> list[tuple[str, list[str]]]:
        """Up to a page of the stored matches with their players, as far as they can be read."""
        names = self._keys[partition]
        ids = await self._ask(self._redis.zrange(names.matches, 0, _DROP_PAGE - 1))
        texts = [_id(match_id) for match_id in ids]
        pipe = self._redis.pipeline(transaction=False)
        for match_id in texts:
            pipe.hget(names.match(match_id), "summary")
        found = []
        for match_id, summary in zip(texts, await self._ask(pipe.execute()), strict=True):
            try:
                seats = msgspec.json.decode(summary or b"", type=Summary).seats
            except msgspec.DecodeError:
                # A left-over place in a player's index is harmless: readers look at the row.
                seats = ()
            found.append((match_id, [seat.player for seat in seats if seat.player]))
        return found

    async def parked(self, partition: int) -> frozenset[str]:
        """Matches of `partition` whose view stopped because a commit could not be folded."""
        members = await self._ask(cast("Any", self._redis.smembers(self._keys[partition].parked)))
        return frozenset(_id(member) for member in members)

    # -- reading ----------------------------------------------------------------------------------

    async def watermark(self, partition: int) -> Watermark | None:
        """How far the views of `partition` are; None when they do not exist (yet, or any more)."""
        names = self._keys[partition]
        fields = self._redis.hmget(names.watermark, ["log_id", "offset", "version", "target"])
        return _watermark(await self._ask(cast("Any", fields)))

    async def watermarks(self, partitions: Iterable[int]) -> dict[int, Watermark | None]:
        """The watermarks of several partitions in one round trip."""
        wanted = list(partitions)
        pipe = self._redis.pipeline(transaction=False)
        for partition in wanted:
            self._ask_watermark(pipe, partition)
        answers = await self._ask(pipe.execute(raise_on_error=False))
        marks: dict[int, Watermark | None] = {}
        for partition, answer in zip(wanted, answers, strict=True):
            if not isinstance(answer, Exception):
                marks[partition] = _watermark(answer)
                continue
            error = _unavailable(answer, "Redis does not answer")
            if not isinstance(error, ViewsDamaged):
                raise error
            # What one partition has does not keep the others from being looked at.
            marks[partition] = Watermark("", -1, _DAMAGED)
        return marks

    def _ask_watermark(self, pipe: Any, partition: int) -> None:
        pipe.hmget(self._keys[partition].watermark, ["log_id", "offset", "version", "target"])

    async def wait_for(self, position: Position, timeout: float) -> Watermark:
        """Wait until the views hold the commit at `position`; at most `timeout` seconds.

        Raises ViewsBehind when they do not by then; ViewsUnavailable when Redis did not answer to
        the last; ValueError for a partition that this log does not have.
        """
        if not 0 <= position.partition < self.partitions:
            raise ValueError(f"the log has no partition {position.partition}")
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        delay = _POLL_FIRST_S
        while True:
            unavailable: ViewsUnavailable | None = None
            try:
                mark = await self._shared_watermark(position.partition)
                if mark and mark.version == VIEW_VERSION and mark.offset >= position.offset:
                    return mark
            except ViewsUnavailable as error:
                unavailable = error
            if loop.time() >= deadline:
                raise unavailable or ViewsBehind(
                    f"the read model has not got to {position} within {timeout:g} s"
                )
            await asyncio.sleep(min(delay, max(0.0, deadline - loop.time())))
            delay = min(delay * 1.6, _POLL_MAX_S)

    async def _shared_watermark(self, partition: int) -> Watermark | None:
        """As `watermark`, but callers that ask at the same time share one round trip."""
        read = self._reads.get(partition)
        if read is None or read.done():
            read = asyncio.create_task(self.watermark(partition))
            # Retrieved here, so that nobody complains when all the callers were cancelled.
            read.add_done_callback(lambda task: task.cancelled() or task.exception())
            self._reads[partition] = read
        return await asyncio.shield(read)

    async def read_match(self, match_id: str) -> MatchRow | None:
        """The stored row of one match, as of one moment; None when there is no such match.

        Raises ViewsRebuilding while the partition's views are being built, whether the match is
        there already or not: what is there may be older than what was shown before.
        """
        partition = self.partition_of(match_id)
        pipe = self._redis.pipeline(transaction=True)
        self._ask_watermark(pipe, partition)
        pipe.hgetall(self._keys[partition].match(match_id))
        fields, stored = await self._ask(pipe.execute())
        mark = _watermark(fields)
        self._refuse_rebuilding(partition, mark)
        return _row(match_id, stored, mark) if stored else None

    def _refuse_rebuilding(self, partition: int, mark: Watermark | None) -> None:
        if mark is None or mark.rebuilding:
            raise ViewsRebuilding(f"the read model of partition {partition} is being rebuilt")

    async def list_matches(
        self,
        *,
        status: Status | None = None,
        player: str = "",
        page_size: int = 50,
        page_token: str = "",
    ) -> Page:
        """Matches by time of creation, newest first; of one status and of one player if given.

        Raises viewpages.BadPageToken, and ViewsRebuilding while any partition is being rebuilt: a
        list with holes would be taken for the whole.
        """
        assert page_size > 0, "a page holds something"
        for partition, mark in (await self.watermarks(range(self.partitions))).items():
            self._refuse_rebuilding(partition, mark)
        indexes = [_index(keys, status, player) for keys in self._keys]
        merge = Merge(indexes, parse_token(page_token), page_size)
        matches: list[Summary] = []
        while len(matches) < page_size and merge.more:
            await self._feed(merge)
            places = merge.take(page_size - len(matches))
            for summary in await self._summaries([place.match_id for place in places]):
                if status in (None, summary.status) and (not player or summary.seat_of(player)):
                    matches.append(summary)
        return Page(tuple(matches), merge.token)

    async def _feed(self, merge: Merge) -> None:
        hungry = merge.hungry()
        pipe = self._redis.pipeline(transaction=False)
        for cursor in hungry:
            cursor.ask(pipe)
        for cursor, entries in zip(hungry, await self._ask(pipe.execute()), strict=True):
            cursor.told(entries)

    async def _summaries(self, match_ids: Sequence[str]) -> list[Summary]:
        """The summaries of those of the matches that are still there, in the same order."""
        pipe = self._redis.pipeline(transaction=False)
        for match_id in match_ids:
            keys = self._keys[self.partition_of(match_id)]
            pipe.hmget(keys.match(match_id), ["version", "summary"])
        answers = await self._ask(pipe.execute(raise_on_error=False))
        listed = map(self._listed, match_ids, answers)
        return [summary for summary in listed if summary is not None]

    def _listed(self, match_id: str, answer: Any) -> Summary | None:
        """The summary that Redis answered with; one damaged row does not cost the whole list."""
        try:
            if isinstance(answer, Exception):
                raise answer
            version, summary = answer
            if not summary or version != str(VIEW_VERSION).encode():
                return None
            return msgspec.json.decode(summary, type=Summary)
        except (ResponseError, msgspec.DecodeError) as error:
            self._on_damaged()
            if match_id not in self._damaged and len(self._damaged) < _DAMAGED_TOLD_MAX:
                self._damaged.add(match_id)
                _logger.warning("lists leave match %s out: %s", match_id, error)
            return None
        except RedisError as error:
            raise _unavailable(error, "Redis does not answer") from error


def _id(stored: bytes) -> str:
    """A match id in an index. Raises ViewsDamaged for what cannot be one."""
    if not stored.isascii():
        raise ViewsDamaged(f"{stored!r} is no match id")
    return stored.decode()


def _index(keys: Keys, status: Status | None, player: str) -> str:
    """The narrowest index that holds what is asked for."""
    if player:
        return keys.player(player)
    return keys.status(status) if status else keys.matches
