"""What came of many matches: added up, in any order, to the same result."""

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from engine import find_game
from services.cli.simulate_plan import Plan
from services.cli.simulate_play import Failure, Outcome

_DIGEST_BYTES = 32


@dataclass(slots=True)
class Tally:
    """Sums over matches. Counters by seat and by kind of bot count seats taken and wins; a match
    with several winners, or none, counts as one win for each of them."""

    turns: int = 0
    prompts: int = 0
    facts: int = 0
    # How many matches took so many turns, and were played by so many.
    lengths: Counter[int] = field(default_factory=Counter)
    players: Counter[int] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    seats: Counter[int] = field(default_factory=Counter)
    seat_wins: Counter[int] = field(default_factory=Counter)
    bots: Counter[str] = field(default_factory=Counter)
    bot_wins: Counter[str] = field(default_factory=Counter)
    bought: Counter[str] = field(default_factory=Counter)
    held: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    # Of all final states with their numbers; independent of the order of the matches.
    digest: int = 0

    @property
    def matches(self) -> int:
        """How many matches ended as they should."""
        return self.lengths.total()

    def add(self, result: Outcome | Failure) -> None:
        """Count one match."""
        if isinstance(result, Failure):
            self.failures.append(result)
            return
        self.turns += result.turns
        self.prompts += result.prompts
        self.facts += result.facts
        self.lengths[result.turns] += 1
        self.players[len(result.kinds)] += 1
        self.reasons[result.reason] += 1
        for seat, kind in enumerate(result.kinds, start=1):
            self.seats[seat] += 1
            self.bots[kind] += 1
            if seat in result.winners:
                self.seat_wins[seat] += 1
                self.bot_wins[kind] += 1
        self.bought.update(result.bought)
        self.held.update(result.held)
        line = result.number.to_bytes(8, "big") + result.state_hash
        self.digest ^= int.from_bytes(hashlib.sha256(line).digest(), "big")

    def merge(self, other: "Tally") -> None:
        """Count everything that the other has counted."""
        self.turns += other.turns
        self.prompts += other.prompts
        self.facts += other.facts
        for name in ("lengths", "players", "reasons", "seats", "seat_wins", "bots", "bot_wins"):
            getattr(self, name).update(getattr(other, name))
        self.bought.update(other.bought)
        self.held.update(other.held)
        self.failures = sorted([*self.failures, *other.failures], key=lambda each: each.number)
        self.digest ^= other.digest

    def length_at(self, share: float) -> int:
        """The turns that this share of the matches did not exceed; 0 without matches."""
        wanted = share * self.matches
        passed = 0
        for turns in sorted(self.lengths):
            passed += self.lengths[turns]
            if passed >= wanted:
                return turns
        return 0


@dataclass(frozen=True, slots=True)
class CardUse:
    """How popular one card was. held: matches whose winner had it in front of it at the end."""

    card: str
    name: str
    name_zh: str
    bought: int
    held_by_winner: int


def card_uses(game: str, tally: Tally) -> list[CardUse]:
    """All cards of the game, the most bought ones first."""
    cards = find_game(game).cards.values()
    uses = [
        CardUse(each.id, each.name, each.name_zh, tally.bought[each.id], tally.held[each.id])
        for each in cards
    ]
    return sorted(uses, key=lambda each: (-each.bought, each.card))


def share(part: int, whole: int) -> float:
    """A share for people and programs, to four decimals; 0 of nothing."""
    return round(part / whole, 4) if whole else 0.0


def rate(count: int, seconds: float) -> float:
    """How many a second; 0 when no time has passed."""
    return round(count / seconds, 1) if seconds > 0 else 0.0


def as_json(plan: Plan, asked: int, tally: Tally, seconds: float, jobs: int) -> dict[str, Any]:
    """The summary as one object."""
    return {
        "game": plan.game,
        "players": plan.players,
        "bots": list(plan.bots),
        "preset": plan.preset or find_game(plan.game).default_preset,
        "options": dict(plan.options),
        "mixed_options": plan.mixed_options,
        "seed": plan.seed,
        "checked": plan.check,
        "jobs": jobs,
        "matches_asked": asked,
        "matches": tally.matches,
        "complete": tally.matches == asked,
        "turns": tally.turns,
        "prompts": tally.prompts,
        "facts": tally.facts,
        "seconds": round(seconds, 3),
        "turns_per_second": rate(tally.turns, seconds),
        "matches_per_second": rate(tally.matches, seconds),
        "turns_per_match": _lengths_json(tally),
        "matches_by_players": {str(n): tally.players[n] for n in sorted(tally.players)},
        "win_share_by_seat": {
            str(seat): share(tally.seat_wins[seat], tally.seats[seat])
            for seat in sorted(tally.seats)
        },
        "win_share_by_bot": {
            kind: share(tally.bot_wins[kind], tally.matches) for kind in sorted(tally.bots)
        },
        "seat_share_by_bot": {
            kind: share(tally.bots[kind], tally.bots.total()) for kind in sorted(tally.bots)
        },
        "no_winner": tally.matches - tally.seat_wins.total(),
        "end_reasons": dict(sorted(tally.reasons.items())),
        "cards": [
            {
                "card": each.card,
                "name": each.name,
                "bought": each.bought,
                "held_by_winner": each.held_by_winner,
            }
            for each in card_uses(plan.game, tally)
        ],
        "failures": [
            {"match": each.number, "error": each.error, "command": plan.command(each.number)}
            for each in tally.failures
        ],
        "digest": tally.digest.to_bytes(_DIGEST_BYTES, "big").hex(),
    }


def _lengths_json(tally: Tally) -> dict[str, float]:
    return {
        "mean": round(tally.turns / tally.matches, 2) if tally.matches else 0.0,
        "low": min(tally.lengths, default=0),
        "median": tally.length_at(0.5),
        "p90": tally.length_at(0.9),
        "high": max(tally.lengths, default=0),
    }
