"""Plays matches with random legal answers and writes them into a log as their owner would."""

import base64
import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from engine import (
    Answer,
    Fact,
    Prompt,
    Seat,
    Session,
    Step,
    commitment,
    derive_seed,
    entropy_commitment,
    find_game,
)
from services.common.commits import (
    Cause,
    How,
    ParsedCommit,
    Ruleset,
    build_claim,
    build_release,
    make_commit,
)
from services.common.log.port import Log, partition_of
from services.common.prompts_wire import answer_to_wire

MASTER_KEY = b"m" * 32
START_MS = 1_750_000_000_000
# An action that may be taken at any time is taken so often.
_ACTS = 0.2


def match_id_of(name: str) -> str:
    """A match id as the service would make one, from any name."""
    return base64.b32encode(hashlib.sha256(name.encode()).digest()).decode().lower()[:26]


def random_answer(prompt: Prompt, dice: random.Random) -> Answer:
    """Some legal answer."""
    if prompt.form == "number":
        return Answer(number=dice.randint(prompt.low, prompt.high))
    if prompt.form == "select":
        ids = [option.id for option in prompt.options]
        count = dice.randint(prompt.low, min(prompt.high, len(ids)))
        return Answer(picks=tuple(dice.sample(ids, count)))
    amounts = [0] * len(prompt.options)
    for _ in range(dice.randint(prompt.low, prompt.high)):
        free = [i for i, limit in enumerate(prompt.limits) if amounts[i] < limit]
        amounts[dice.choice(free)] += 1
    return Answer(amounts=tuple(amounts))


@dataclass
class Recording:
    """One match that is being played: its session, and the commits made so far."""

    match_id: str
    log_id: str
    partition: int
    epoch: int
    session: Session
    commits: list[ParsedCommit] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)

    def make(self, step: Step, cause: Cause) -> ParsedCommit:
        """The next commit; not written yet."""
        last = self.commits[-1] if self.commits else None
        state = self.session.state
        return make_commit(
            log_id=self.log_id,
            partition=self.partition,
            writer="tester",
            epoch=self.epoch,
            match_id=self.match_id,
            sequence=last.sequence + 1 if last else 1,
            first_fact=len(self.facts),
            facts=step.facts,
            cause=cause,
            previous_hash=last.hash if last else b"",
            ruleset=Ruleset(state.game, state.expansions, state.revision),
            recorded_at_ms=START_MS + 1000 * len(self.commits) + int(self.match_id[0], 36),
            final=state.status == "finished",
        )

    def took(self, commit: ParsedCommit, offset: int) -> None:
        """The commit is in the log at `offset`."""
        self.commits.append(commit)
        self.offsets.append(offset)
        self.facts += commit.facts()


class Recorder:
    """Writes matches into a log as the owner of all of its partitions."""

    def __init__(self, log: Log, seed: int = 1) -> None:
        self.log = log
        self.dice = random.Random(seed)
        self.epochs: dict[int, int] = {}
        self.matches: dict[str, Recording] = {}

    async def claim(self, partition: int, writer: str = "tester") -> int:
        """Take the partition over; return the new epoch."""
        value = build_claim(
            log_id=self.log.log_id,
            partition=partition,
            writer=writer,
            address=f"{writer}:1",
            previous_epoch=self.epochs.get(partition, 0),
        )
        epoch = await self.log.append(partition, b"", value) + 1
        self.epochs[partition] = epoch
        return epoch

    async def release(self, partition: int) -> None:
        """Give the partition up."""
        epoch = self.epochs[partition]
        value = build_release(
            log_id=self.log.log_id, partition=partition, writer="tester", epoch=epoch
        )
        await self.log.append(partition, b"", value)

    async def append(self, recording: Recording, step: Step, cause: Cause) -> ParsedCommit:
        """Write the next commit of a match."""
        if recording.partition not in self.epochs:
            await self.claim(recording.partition)
        recording.epoch = self.epochs[recording.partition]
        commit = recording.make(step, cause)
        key = recording.match_id.encode()
        recording.took(commit, await self.log.append(recording.partition, key, commit.value))
        return commit

    async def create(
        self, name: str, game: str, seats: int, *, committed: bool = False
    ) -> Recording:
        """Open a lobby and seat everybody; the match is not started.

        committed: the seats commit to their entropy, and reveal it in the end.
        """
        match_id = match_id_of(name)
        seed = derive_seed(MASTER_KEY, "k1", match_id)
        session, step = Session.create(
            find_game(game), match_id=match_id, host="host", seats=seats, seed=seed, key_id="k1"
        )
        assert session.state.commitment == commitment(seed)
        partition = partition_of(match_id, self.log.partitions)
        recording = Recording(match_id, self.log.log_id, partition, 0, session)
        self.matches[match_id] = recording
        await self.append(recording, step, _cause("create", 0, "host"))
        entropies = [self.dice.randbytes(16) for _ in range(seats)] if committed else [b""] * seats
        for seat, entropy in enumerate(entropies, 1):
            await self.join(recording, seat, committed_to=entropy)
        for seat, entropy in enumerate(entropies, 1):
            if entropy:
                await self.reveal(recording, seat, entropy)
        return recording

    async def reveal(self, recording: Recording, seat: int, entropy: bytes) -> ParsedCommit:
        """A seat reveals its entropy."""
        step = recording.session.reveal(Seat(seat), entropy)
        return await self.append(recording, step, _cause("reveal", seat, f"player-{seat}"))

    async def join(
        self, recording: Recording, seat: int, *, committed_to: bytes = b""
    ) -> ParsedCommit:
        """The next player sits down."""
        session, name = recording.session, f"Player {seat}"
        if committed_to:
            promise = entropy_commitment(committed_to)
            step = session.join(f"player-{seat}", name, entropy_commitment=promise)
        else:
            step = session.join(f"player-{seat}", name, self.dice.randbytes(16))
        return await self.append(recording, step, _cause("join", seat, f"player-{seat}"))

    async def start(self, recording: Recording) -> ParsedCommit:
        """Start the match."""
        return await self.append(recording, recording.session.start(), _cause("start", 0, "host"))

    async def answer(self, recording: Recording) -> ParsedCommit | None:
        """One random answer to a random open prompt, or now and then an action; None when the match
        is over.
        """
        waiting = recording.session.waiting
        if not waiting:
            return None
        if recording.session.actions and self.dice.random() < _ACTS:
            return await self.act(recording)
        prompt = self.dice.choice(waiting)
        answer = random_answer(prompt, self.dice)
        step = recording.session.answer(prompt.id, prompt.seat, answer)
        number = len(recording.commits)
        cause = Cause(
            request_id=f"r{number}",
            actor=f"player-{prompt.seat}",
            seat=prompt.seat,
            prompt_id=prompt.id,
            answer=answer_to_wire(answer, prompt.form).SerializeToString(),
            how=How.ANSWER,
            digest=b"d" * 32,
            command="answer",
        )
        return await self.append(recording, step, cause)

    async def act(self, recording: Recording) -> ParsedCommit:
        """One random action of those that may be taken at any time."""
        offered = self.dice.choice(recording.session.actions)
        action = self.dice.choice(offered.actions).id
        step = recording.session.take_action(offered.seat, action)
        cause = Cause(
            request_id=f"r{len(recording.commits)}",
            actor=f"player-{offered.seat}",
            seat=offered.seat,
            answer=answer_to_wire(Answer(picks=(action,))).SerializeToString(),
            how=How.ANSWER,
            digest=b"d" * 32,
            command="action",
        )
        return await self.append(recording, step, cause)

    async def play(self, recording: Recording, answers: int = 100_000) -> Recording:
        """Start the match if need be, and answer up to `answers` prompts."""
        if recording.session.state.status == "lobby":
            await self.start(recording)
        for _ in range(answers):
            if await self.answer(recording) is None:
                break
        return recording

    async def whole(self, name: str, game: str, seats: int) -> Recording:
        """A match from its lobby to its end."""
        return await self.play(await self.create(name, game, seats))


def _cause(command: str, seat: int, actor: str) -> Cause:
    return Cause(
        request_id=f"{command}-{seat}",
        actor=actor,
        seat=seat,
        how=How.HOST,
        digest=b"d" * 32,
        command=command,
    )


def prefixes(recording: Recording) -> Iterator[tuple[int, list[Fact]]]:
    """Each sequence with all facts up to it."""
    facts: list[Fact] = []
    for commit in recording.commits:
        facts += commit.facts()
        yield commit.sequence, list(facts)
