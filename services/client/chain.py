"""The check that a watcher makes of what a server sends: the commits must form one chain.

Hidden facts come as leaf hashes, so the check is complete for every viewer: no commit can be
changed, left out, repeated or put in between without another hash.
"""

from diceledger.log.v1 import commit_pb2
from services.common.redaction import ChainBroken, check_redacted_chain

__all__ = ["Chain", "ChainBroken"]


class Chain:
    """The last link of a match seen so far, and the check of the next one."""

    def __init__(self, match_id: str, next_sequence: int = 1) -> None:
        self.next_sequence = next_sequence
        self._match_id = match_id
        # Unknown when watching starts in the middle: the first link is then taken as it is.
        self._last_hash: bytes | None = b"" if next_sequence == 1 else None

    def check(self, commit: commit_pb2.RedactedCommit) -> commit_pb2.CommitHeader:
        """Take the next link and return its header. Raises ChainBroken."""
        header = commit_pb2.CommitHeader.FromString(commit.header)
        previous = header.previous_hash if self._last_hash is None else self._last_hash
        self._last_hash = check_redacted_chain(
            previous, commit, match_id=self._match_id, sequence=self.next_sequence
        )
        self.next_sequence += 1
        return header
