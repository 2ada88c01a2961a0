"""Random play for tests: answers any prompt with no knowledge of rules, and runs whole matches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from engine import (
    Answer,
    AnyGame,
    Fact,
    Prompt,
    Session,
    commitment,
    derive_seed,
    find_game,
)

Policy = Callable[[Prompt, Random], Answer]

_ACTS = 0.3


def random_answer(prompt: Prompt, random: Random) -> Answer:
    """A uniformly chosen number of picks, then uniformly chosen picks; legal by construction."""
    if prompt.form == "number":
        return Answer(number=random.randint(prompt.low, prompt.high))
    if prompt.form == "allocate":
        total = random.randint(prompt.low, prompt.high)
        amounts = [0] * len(prompt.options)
        while total:
            index = random.randrange(len(amounts))
            if amounts[index] < prompt.limits[index]:
                amounts[index] += 1
                total -= 1
        return Answer(amounts=tuple(amounts))
    count = random.randint(prompt.low, prompt.high)
    return Answer(picks=tuple(option.id for option in random.sample(prompt.options, count)))


def eager_answer(prompt: Prompt, random: Random) -> Answer:
    """Like random_answer, but never passes where something may be picked: many cards get
    into play.
    """
    if prompt.options and prompt.kind in ("buy", "opportunist.buy"):
        wares = [option.id for option in prompt.options if option.id != "sweep"]
        return Answer(picks=(random.choice(wares or ["sweep"]),))
    if prompt.kind == "reroll":
        dice = [option.id for option in prompt.options if not option.subject.endswith("energy")]
        return Answer(picks=tuple(dice))
    return random_answer(prompt, random)


class Match:
    """A match in play together with all of its facts."""

    def __init__(
        self,
        *,
        seats: int,
        seed: int = 1,
        options: Mapping[str, str] | None = None,
        preset: str = "",
        game: AnyGame | None = None,
    ) -> None:
        self.game = game or find_game("king_of_tokyo")
        self.seed = derive_seed(b"tests", "k", f"match{seed}")
        self.random = Random(seed)
        self.session, step = Session.create(
            self.game,
            match_id=f"match{seed}",
            host="host",
            seats=seats,
            options=options,
            preset=preset,
            seed=self.seed,
        )
        self.facts: list[Fact] = list(step.facts)
        for seat in range(1, seats + 1):
            self.facts += self.session.join(f"p{seat}", f"Kaiju {seat}", b"entropy" * 3).facts
        assert commitment(self.seed) == self.session.state.commitment
        self.facts += self.session.start().facts

    def answer_one(self, policy: Policy) -> None:
        """Answer one of the open prompts, whichever; or do what somebody may do at any time."""
        if self.session.actions and self.random.random() < _ACTS:
            chosen = self.random.choice(self.session.actions)
            action = self.random.choice(chosen.actions).id
            self.facts += self.session.take_action(chosen.seat, action).facts
            return
        prompt = self.random.choice(self.session.waiting)
        answer = policy(prompt, self.random)
        self.facts += self.session.answer(prompt.id, prompt.seat, answer).facts

    def play(self, policy: Policy = random_answer, *, prompts_max: int = 20_000) -> None:
        """Play to the end."""
        for _ in range(prompts_max):
            if not self.session.waiting:
                return
            self.answer_one(policy)
        message = f"no end after {prompts_max} prompts"
        raise AssertionError(message)


def option_sets(game: AnyGame, random: Random) -> dict[str, str]:
    """A random value for every option."""
    return {spec.id: random.choice(spec.values) for spec in game.options}
