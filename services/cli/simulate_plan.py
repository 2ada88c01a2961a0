"""What is to be simulated: everything that decides how a match of a given number goes."""

import hashlib
import random
import re
import shlex
from dataclasses import dataclass
from typing import Final

from engine import AnyGame, Session, Step, find_game
from services.client.bots import BotKind, seeded

_RANGE: Final = re.compile(r"(\d+)(?:-(\d+))?")


@dataclass(frozen=True, slots=True)
class Plan:
    """One simulation. A match depends on the plan and its number, on nothing else.

    options: fixed ones; with mixed_options all others are drawn for each match, and in some matches
    seats leave standing answers. bots: the kinds at
    the table, dealt to the seats in turn and moved on by one seat from match to match.
    """

    game: str
    players_low: int
    players_high: int
    seed: str
    bots: tuple[BotKind, ...] = ("random",)
    preset: str = ""
    options: tuple[tuple[str, str], ...] = ()
    mixed_options: bool = False
    check: bool = False

    @property
    def players(self) -> str:
        """As on the command line."""
        low, high = self.players_low, self.players_high
        return str(low) if low == high else f"{low}-{high}"

    def dice(self, number: int, purpose: str) -> random.Random:
        """A generator of its own for one purpose in one match."""
        return seeded(f"{self.seed}/{number}/{purpose}")

    def seats(self, number: int) -> int:
        """How many play match `number`."""
        return self.dice(number, "seats").randint(self.players_low, self.players_high)

    def kinds(self, number: int, seats: int) -> tuple[BotKind, ...]:
        """Which bot sits where in match `number`."""
        return tuple(self.bots[(seat + number) % len(self.bots)] for seat in range(seats))

    def options_of(self, number: int, game: AnyGame) -> dict[str, str]:
        """The options of match `number`."""
        chosen: dict[str, str] = {}
        if self.mixed_options:
            dice = self.dice(number, "options")
            chosen = {spec.id: dice.choice(spec.values) for spec in game.options}
        return chosen | dict(self.options)

    def chance_seed(self, number: int) -> bytes:
        """The seed of the dice and the deck of match `number`."""
        text = f"diceledger.simulate.v1/{self.seed}/{number}"
        return hashlib.sha256(text.encode()).digest()

    def open(self, number: int) -> tuple[Session, Step]:
        """Match `number` with everybody seated, before it starts, and all facts so far."""
        game = find_game(self.game)
        seats = self.seats(number)
        session, created = Session.create(
            game,
            match_id=f"simulated-{number}",
            host="simulate",
            seats=seats,
            options=self.options_of(number, game),
            preset=self.preset,
            seed=self.chance_seed(number),
        )
        kinds = self.kinds(number, seats)
        facts = list(created.facts)
        for seat, kind in enumerate(kinds, start=1):
            facts += session.join(f"bot-{seat}", f"{kind.capitalize()} {seat}").facts
        return session, Step(tuple(facts), ())

    def command(self, number: int) -> str:
        """The command that plays match `number` again."""
        words = [
            "diceledger simulate",
            f"--game {self.game} --players {self.players} --seed {shlex.quote(self.seed)}",
            f"--bots {','.join(self.bots)}",
            f"--preset {self.preset}" if self.preset else "",
            *(f"--option {option}={value}" for option, value in self.options),
            "--mixed-options" if self.mixed_options else "",
            "--check" if self.check else "",
            f"--first {number} --matches 1",
        ]
        return " ".join(word for word in words if word)


def parse_players(text: str) -> tuple[int, int]:
    """ "4" or "2-6" as the lowest and highest number. Raises ValueError."""
    found = _RANGE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is neither a number nor a range like 2-6")
    low = int(found[1])
    high = int(found[2] or low)
    if low > high:
        raise ValueError(f"the range {text} is empty")
    return low, high


def parse_bots(text: str) -> tuple[BotKind, ...]:
    """ "random", "greedy", "mixed" or a list of them. Raises ValueError."""
    kinds: list[BotKind] = []
    for word in text.replace(" ", "").split(","):
        match word:
            case "random" | "greedy":
                kinds.append(word)
            case "mixed":
                kinds += ["greedy", "random"]
            case _:
                raise ValueError(f"{word!r} is not a kind of bot; there are random, greedy, mixed")
    return tuple(kinds)
