"""Admission under zombies, duplicates, delayed claims and swapped records, against a trivial model.

The model keeps the whole history and looks through all of it for every question; the automaton
must decide each record like the model. Independently of both, the laws of reliability.md (A2, A3,
A8) are checked on what was admitted: no fork, no request twice, one epoch at a time.
"""

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from services.common.admission import Admission, Admitted
from services.common.commits import Kind, ParsedCommit
from tests.services.log.makers import LOG_ID, claim, facts, release

MATCHES = ("m1", "m2", "m3")


@dataclass
class Model:
    """Decides by searching the list of what it admitted before."""

    admitted: list[tuple[int, ParsedCommit]] = field(default_factory=list)

    def epoch(self) -> int:
        claims = [offset for offset, commit in self.admitted if commit.kind is Kind.CLAIM]
        return claims[-1] + 1 if claims else 0

    def released(self) -> bool:
        bare = [commit.kind for _, commit in self.admitted if commit.kind is not Kind.FACTS]
        return bool(bare) and bare[-1] is Kind.RELEASE

    def of_match(self, match_id: str) -> list[ParsedCommit]:
        return [
            commit
            for _, commit in self.admitted
            if commit.kind is Kind.FACTS and commit.match_id == match_id
        ]

    def admits(self, commit: ParsedCommit) -> bool:
        if commit.kind is Kind.CLAIM:
            return commit.previous_epoch == self.epoch()
        if self.epoch() == 0 or self.released() or commit.epoch != self.epoch():
            return False
        if commit.kind is Kind.RELEASE:
            return True
        before = self.of_match(commit.match_id)
        requests = [(c.cause.actor, c.cause.request_id) for c in before if c.cause]
        assert commit.cause is not None
        return (
            not any(c.final for c in before)
            and commit.sequence == len(before) + 1
            and commit.previous_hash == (before[-1].hash if before else b"")
            and commit.first_fact == sum(c.fact_count for c in before)
            and (commit.cause.actor, commit.cause.request_id) not in requests
        )


@dataclass
class Process:
    """A match process that may be far behind: it knows the log up to `read`."""

    name: str
    model: Model = field(default_factory=Model)
    read: int = 0
    # Commits that it wrote on top of what it knows, without having read them back.
    ahead: dict[str, ParsedCommit] = field(default_factory=dict)


class AdmissionMachine(RuleBasedStateMachine):
    """Processes write what they believe; records land late, twice, swapped or never."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[ParsedCommit] = []
        self.verdicts: list[bool] = []
        self.model = Model()
        self.reader = Admission(LOG_ID, 0, 1)
        self.processes = [Process(f"p{number}") for number in range(3)]
        self.on_the_way: list[ParsedCommit] = []

    def land(self, commit: ParsedCommit) -> bool:
        offset = len(self.log)
        expected = self.model.admits(commit)
        verdict = self.reader.offer(offset, commit)
        assert isinstance(verdict, Admitted) == expected, verdict
        if expected:
            self.model.admitted.append((offset, commit))
        self.log.append(commit)
        self.verdicts.append(expected)
        return expected

    def send(self, commit: ParsedCommit, delayed: bool) -> None:
        if delayed:
            self.on_the_way.append(commit)
        else:
            self.land(commit)

    @rule(process=st.integers(0, 2))
    def read_to_the_end(self, process: int) -> None:
        reader = self.processes[process]
        for offset in range(reader.read, len(self.log)):
            if self.verdicts[offset]:
                reader.model.admitted.append((offset, self.log[offset]))
        reader.read = len(self.log)
        reader.ahead.clear()

    @rule(process=st.integers(0, 2), delayed=st.booleans())
    def claim(self, process: int, delayed: bool) -> None:
        writer = self.processes[process]
        self.send(claim(writer.model.epoch(), writer=writer.name), delayed)

    @rule(process=st.integers(0, 2), delayed=st.booleans())
    @precondition(lambda self: self.model.epoch() > 0)
    def release(self, process: int, delayed: bool) -> None:
        epoch = self.processes[process].model.epoch()
        if epoch:
            self.send(release(epoch), delayed)

    @rule(
        process=st.integers(0, 2),
        match_id=st.sampled_from(MATCHES),
        request=st.integers(0, 2),
        final=st.sampled_from([False, False, False, True]),
        delayed=st.booleans(),
    )
    def write(self, process: int, match_id: str, request: int, final: bool, delayed: bool) -> None:
        writer = self.processes[process]
        epoch = writer.model.epoch()
        if not epoch:
            return
        known = writer.model.of_match(match_id)
        after = writer.ahead.get(match_id) or (known[-1] if known else None)
        commit = facts(match_id, epoch=epoch, after=after, request_id=f"r{request}", final=final)
        writer.ahead[match_id] = commit
        self.send(commit, delayed)

    @rule(process=st.integers(0, 2), match_id=st.sampled_from(MATCHES))
    def the_current_owner_gets_through(self, process: int, match_id: str) -> None:
        """Whoever has read everything, claims, and writes correctly, is admitted."""
        self.read_to_the_end(process)
        assert self.land(claim(self.processes[process].model.epoch()))
        self.read_to_the_end(process)
        model = self.processes[process].model
        known = model.of_match(match_id)
        if any(commit.final for commit in known):
            return
        new = facts(
            match_id,
            epoch=model.epoch(),
            after=known[-1] if known else None,
            request_id=f"new-{len(self.log)}",
        )
        assert self.land(new)

    @rule(data=st.data())
    @precondition(lambda self: self.on_the_way)
    def something_delayed_arrives(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.on_the_way) - 1))
        self.land(self.on_the_way.pop(index))

    @rule(data=st.data())
    @precondition(lambda self: self.log)
    def something_arrives_again(self, data: st.DataObject) -> None:
        self.land(self.log[data.draw(st.integers(0, len(self.log) - 1))])

    @rule()
    @precondition(lambda self: len(self.on_the_way) >= 2)
    def two_arrive_swapped(self) -> None:
        second, first = self.on_the_way.pop(), self.on_the_way.pop()
        self.land(second)
        self.land(first)

    @invariant()
    def no_match_forks(self) -> None:
        for match_id in MATCHES:
            chain = self.model.of_match(match_id)
            assert [c.sequence for c in chain] == list(range(1, len(chain) + 1))
            assert [c.previous_hash for c in chain[1:]] == [c.hash for c in chain[:-1]]
            requests = [c.cause.request_id for c in chain if c.cause]
            assert len(requests) == len(set(requests))
            assert not any(c.final for c in chain[:-1])
            head = self.reader.head(match_id)
            assert (head.sequence, head.hash) == (len(chain), chain[-1].hash) if head else not chain

    @invariant()
    def one_epoch_at_a_time(self) -> None:
        epoch = 0
        for offset, commit in self.model.admitted:
            if commit.kind is Kind.CLAIM:
                assert commit.previous_epoch == epoch
                epoch = offset + 1
            else:
                assert commit.epoch == epoch
        assert self.reader.epoch == epoch

    def teardown(self) -> None:
        """A reader that comes later decides alike, from the bytes alone."""
        late = Admission(LOG_ID, 0, 1)
        decided = [
            isinstance(late.offer_value(offset, commit.value)[1], Admitted)
            for offset, commit in enumerate(self.log)
        ]
        assert decided == self.verdicts


TestAdmissionMachine = AdmissionMachine.TestCase
TestAdmissionMachine.settings = settings(
    max_examples=300, stateful_step_count=50, deadline=None, derandomize=True
)
