"""One match in memory: its admitted commits, its session, and the watchers that wait for more.

Only admitted commits get in here, in order, from the partition's tail. Nothing here waits for
anything: whoever needs a match that is not in memory loads it first (partition.py).
"""

from collections.abc import Iterator
from typing import Protocol

from diceledger.match.v1 import match_pb2
from engine import MatchCreated, Option, Prompt, SeatActions, Session, commitment, derive_seed
from services.common.commits import ParsedCommit
from services.common.keys import KeyRing
from services.match.wire import encode_update

# Encoded updates kept for each match: about the last thirty commits for a full table.
_ENCODED_MAX = 256
# What a parsed commit takes in memory, as a multiple of its record.
_MEMORY_FACTOR = 3


class Frozen(Exception):
    """The match cannot be continued: what the log holds and what the rules say differ."""


class Listener(Protocol):
    """Whoever waits for the next commit of a match."""

    def wake(self) -> None:
        """There is a new commit."""

    def fail(self, error: Exception) -> None:
        """There will be no more commits here, because of `error`."""


class LiveMatch:
    """The commits of one match with everything that is derived from them."""

    __slots__ = (
        "_encoded",
        "actions",
        "commits",
        "listeners",
        "match_id",
        "offsets",
        "record_bytes",
        "seats",
        "session",
        "started_at",
        "waiting",
    )

    def __init__(self, match_id: str) -> None:
        """Begin without commits."""
        self.match_id = match_id
        self.commits: list[ParsedCommit] = []
        self.offsets: list[int] = []
        self.record_bytes = 0
        # Seat of each player, by subject.
        self.seats: dict[str, int] = {}
        # Sequence of the commit that started the match; 0 in the lobby.
        self.started_at = 0
        # None until a command or a player's watch needs it. While a command is being decided the
        # session is ahead of the commits; `waiting` and `actions` never are.
        self.session: Session | None = None
        self.waiting: tuple[Prompt, ...] = ()
        self.actions: tuple[SeatActions, ...] = ()
        self.listeners: set[Listener] = set()
        self._encoded: dict[tuple[int, int], bytes] = {}

    @property
    def sequence(self) -> int:
        """Sequence of the newest commit."""
        return len(self.commits)

    @property
    def finished(self) -> bool:
        """Whether the newest commit ended the match."""
        return self.commits[-1].final

    @property
    def memory_bytes(self) -> int:
        """About how much memory the match takes."""
        return self.record_bytes * _MEMORY_FACTOR

    def append(self, offset: int, commit: ParsedCommit) -> None:
        """Take over the next admitted commit."""
        assert commit.sequence == len(self.commits) + 1, "a match's commits come in order"
        self.commits.append(commit)
        self.offsets.append(offset)
        self.record_bytes += len(commit.value)
        cause = commit.cause
        if cause is not None and cause.command == "join":
            self.seats[cause.actor] = cause.seat
        elif cause is not None and cause.command == "start":
            self.started_at = commit.sequence
        if commit.final:
            # From now on everybody sees everything.
            self._encoded.clear()

    def wake(self) -> None:
        """Tell all listeners that there is a new commit."""
        for listener in self.listeners:
            listener.wake()

    # -- the session ------------------------------------------------------------------------------

    def settle(self, session: Session) -> None:
        """The commit that brought the session to where it is was admitted."""
        self.session = session
        self.waiting = session.waiting
        self.actions = session.actions

    def drop_session(self) -> None:
        """Throw the session away; it is rebuilt when it is needed again."""
        self.session = None
        self.waiting = ()
        self.actions = ()

    def open_session(self, keys: KeyRing) -> Session:
        """The session as of the newest commit, rebuilt from the commits when there is none.

        Raises engine.RebuildMismatch, and Frozen when the match's master key is not there.
        """
        if self.session is None:
            facts = [fact for commit in self.commits for fact in commit.facts()]
            created = facts[0]
            if not isinstance(created, MatchCreated):
                raise Frozen(f"the match begins with {type(created).__name__}")
            master_key = keys.key(created.key_id)
            if master_key is None:
                raise Frozen(f"there is no master key {created.key_id!r}")
            seed = derive_seed(master_key, created.key_id, self.match_id)
            if commitment(seed) != created.commitment:
                raise Frozen(f"master key {created.key_id!r} is not the one the match began with")
            self.settle(Session.rebuild(facts, seed=seed))
        assert self.session is not None
        return self.session

    def actions_of(self, seat: int) -> tuple[Option, ...]:
        """What a seat may do at any time, as of the newest commit."""
        return next((each.actions for each in self.actions if each.seat == seat), ())

    # -- for watchers -----------------------------------------------------------------------------

    def update(self, sequence: int, subject: str) -> bytes:
        """The commit as the subject may see it now: an encoded Update without what only it sees."""
        everything = self.finished
        commit = self.commits[sequence - 1]
        viewer = -1 if everything else self.seats.get(subject, 0)
        key = (sequence, viewer)
        encoded = self._encoded.get(key)
        if encoded is None:
            encoded = encode_update(
                commit, max(0, viewer), everything=everything, status=self.status_at(sequence)
            )
            if len(self._encoded) >= _ENCODED_MAX:
                del self._encoded[next(iter(self._encoded))]
            self._encoded[key] = encoded
        return encoded

    def status_at(self, sequence: int) -> match_pb2.MatchStatus.ValueType:
        """The status of the match after the commit `sequence`."""
        if self.commits[sequence - 1].final:
            return match_pb2.MATCH_STATUS_FINISHED
        if self.started_at and sequence >= self.started_at:
            return match_pb2.MATCH_STATUS_RUNNING
        return match_pb2.MATCH_STATUS_LOBBY

    def find_request(self, actor: str, request_id: str) -> int:
        """Sequence of the commit that this request caused; 0 when there is none."""
        for commit in self.commits:
            cause = commit.cause
            if cause is not None and (cause.actor, cause.request_id) == (actor, request_id):
                return commit.sequence
        return 0


def chain_of(
    match_id: str, last_hash: bytes, records: Iterator[tuple[int, ParsedCommit]]
) -> list[tuple[int, ParsedCommit]]:
    """The admitted commits of a match among the records of its stretch of the log, in order.

    Records that were void lie among them; but only one chain of hashes leads to the match's newest
    commit. Raises Frozen when a link of it is missing.
    """
    found: dict[bytes, tuple[int, ParsedCommit]] = {}
    for offset, commit in records:
        if commit.match_id == match_id:
            found.setdefault(commit.hash, (offset, commit))
    chain: list[tuple[int, ParsedCommit]] = []
    wanted = last_hash
    while wanted:
        link = found.get(wanted)
        if link is None:
            raise Frozen(f"the log lacks a commit of match {match_id} (hash {wanted.hex()})")
        chain.append(link)
        wanted = link[1].previous_hash
    chain.reverse()
    return chain
