"""One commit as a watcher gets it: checked against the hash chain, decoded, folded on request."""

from collections.abc import Sequence
from dataclasses import dataclass

from diceledger.log.v1 import commit_pb2
from diceledger.match.v1 import match_pb2
from engine import Fact, MatchState, empty_state, evolve
from services.client.chain import Chain, ChainBroken
from services.client.questions import Action, Question, action_from_wire, question_from_wire
from services.common.redaction import restore_facts

__all__ = ["ChainBroken", "Fold", "MatchUpdate", "UpdateReader"]


@dataclass(frozen=True, slots=True)
class MatchUpdate:
    """A commit of one match, as this viewer may see it."""

    match_id: str
    sequence: int
    facts: tuple[Fact, ...]
    # Hash of the commit; the same for every viewer.
    hash: bytes
    # Open questions of the caller's seat as of the newest commit; empty while catching up.
    questions: tuple[Question, ...]
    # What the caller's seat may do whoever is asked, as of the newest commit; else empty as well.
    actions: tuple[Action, ...]
    status: int
    # From the newest commit on: what follows is live.
    live: bool
    # Nothing follows this commit.
    final: bool
    # The match after this commit, as the viewer may see it; None where nobody asked for it.
    state: MatchState | None
    commit: commit_pb2.RedactedCommit

    @property
    def header(self) -> commit_pb2.CommitHeader:
        """The commit's header, parsed anew from the bytes that were hashed."""
        return commit_pb2.CommitHeader.FromString(self.commit.header)


class Fold:
    """The state of one match, kept up to date by the facts that its viewer may see."""

    def __init__(self) -> None:
        self.state = empty_state()

    def apply(self, facts: Sequence[Fact]) -> MatchState:
        """Add the facts of the next commit."""
        state = self.state
        for fact in facts:
            state = evolve(state, fact)
        self.state = state
        return state


class UpdateReader:
    """Turns the updates of one match into `MatchUpdate`s, in order and each once.

    `next_sequence` is where to resume. With `fold`, which needs the match from its start, each
    update carries the state after it. Raises ChainBroken when the server's commits do not fit
    onto each other.
    """

    def __init__(self, match_id: str, from_sequence: int, *, fold: bool) -> None:
        assert not fold or from_sequence <= 1, "a fold needs the match from its start"
        self.match_id = match_id
        self._chain = Chain(match_id, max(1, from_sequence))
        self._fold = Fold() if fold else None
        self.is_finished = False

    @property
    def next_sequence(self) -> int:
        """Sequence of the next commit wanted."""
        return self._chain.next_sequence

    def read(self, update: match_pb2.Update) -> MatchUpdate | None:
        """Check and decode; None for a commit that was delivered before."""
        if update.sequence < self.next_sequence:
            return None
        header = self._chain.check(update.commit)
        facts = restore_facts(update.commit)
        state = None if self._fold is None else self._fold.apply(facts)
        self.is_finished = header.final
        return MatchUpdate(
            match_id=self.match_id,
            sequence=header.sequence,
            facts=facts,
            hash=update.commit.hash,
            questions=tuple(question_from_wire(p) for p in update.prompts),
            actions=tuple(action_from_wire(each) for each in update.actions),
            status=update.status,
            live=update.live,
            final=header.final,
            state=state,
            commit=update.commit,
        )
