"""What a bot is, and the one that needs no rules: any legal answer, read off the prompt."""

import random
from typing import Protocol

from engine import Answer, MatchState, Option, Prompt, Seat

# A random bot does what it may do at any time at one look of so many.
_ACTION_ONE_IN = 4


class Bot(Protocol):
    """Answers the prompts of one seat. `state` is the match as that seat may see it."""

    def answer(self, prompt: Prompt, state: MatchState) -> Answer:
        """A legal answer to an open prompt of the bot's seat."""
        ...

    def act(self, seat: Seat, actions: tuple[Option, ...], state: MatchState) -> str | None:
        """Which of the seat's actions to take now, whoever is asked; None: none."""
        ...


class Advice(Protocol):
    """What makes a greedy bot good at one game."""

    def advise(self, prompt: Prompt, state: MatchState) -> Answer | None:
        """The answer to give; None where this advice knows nothing better than chance."""
        ...

    def act(self, seat: Seat, actions: tuple[Option, ...], state: MatchState) -> str | None:
        """The action to take now; None: none."""
        ...


def random_answer(prompt: Prompt, dice: random.Random) -> Answer:
    """Any legal answer, drawn from what the prompt itself says."""
    match prompt.form:
        case "select":
            count = dice.randint(prompt.low, min(prompt.high, len(prompt.options)))
            return Answer(picks=tuple(o.id for o in dice.sample(prompt.options, count)))
        case "number":
            return Answer(number=dice.randint(prompt.low, prompt.high))
        case "allocate":
            return Answer(amounts=_random_amounts(prompt, dice))


def _random_amounts(prompt: Prompt, dice: random.Random) -> tuple[int, ...]:
    """Unit by unit to an option that still takes one."""
    amounts = [0] * len(prompt.limits)
    for _ in range(dice.randint(prompt.low, min(prompt.high, sum(prompt.limits)))):
        open_options = [i for i, limit in enumerate(prompt.limits) if amounts[i] < limit]
        amounts[dice.choice(open_options)] += 1
    return tuple(amounts)


class RandomBot:
    """Any legal answer, from the prompt alone; the same seed gives the same choices."""

    def __init__(self, seed: str) -> None:
        self._dice = seeded(seed)

    def answer(self, prompt: Prompt, state: MatchState) -> Answer:
        """A uniformly drawn number of options, number or distribution."""
        return random_answer(prompt, self._dice)

    def act(self, seat: Seat, actions: tuple[Option, ...], state: MatchState) -> str | None:
        """Now and then any of them."""
        return None if self._dice.randrange(_ACTION_ONE_IN) else self._dice.choice(actions).id


class GreedyBot:
    """Follows the advice for its game; where that says nothing, the prompt's default or chance."""

    def __init__(self, advice: Advice, seed: str) -> None:
        self._advice = advice
        self._dice = seeded(seed)

    def answer(self, prompt: Prompt, state: MatchState) -> Answer:
        """The advised answer, or any legal one."""
        advised = self._advice.advise(prompt, state)
        return random_answer(prompt, self._dice) if advised is None else advised

    def act(self, seat: Seat, actions: tuple[Option, ...], state: MatchState) -> str | None:
        """What is advised."""
        return self._advice.act(seat, actions, state)


def seeded(seed: str) -> random.Random:
    """A generator whose draws depend on the text alone, on every machine and hash seed."""
    # Choices of a bot need no secrecy, they need repeatability.
    return random.Random(seed)  # noqa: S311
