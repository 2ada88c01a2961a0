"""A King of Tokyo table for scenario tests: a position, scripted dice, answers by kind of question.

`turn` plays one whole turn. Questions without a scripted answer get their default; an answer or a
die that is left over fails the test.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import cast

import msgspec

from engine import Answer, Fact, Game, Holding, MatchState, Prompt, Seat, find_game
from engine.core.bench import Bench
from engine.games.kings.board import KingTable
from engine.games.kings.faces import FACES, Face
from engine.games.kings.proposals import Ware
from engine.games.kings.rules import market
from engine.games.kings.state import KingsState, Monster, Slot
from engine.games.kings.tokyo.facts import TokyoState
from engine.games.kings.tokyo.turn import play_turn

Scripted = str | int | Sequence[str] | Sequence[int]
"""One answer: an option, a number, several options, amounts."""

SHORT = {"1": "one", "2": "two", "3": "three", "h": "heart", "e": "energy", "s": "smash"}


def faces(text: str) -> list[str]:
    """ "112hes" as faces."""
    return [SHORT[letter] for letter in text.replace(" ", "")]


class Kit:
    """See the module. Seats are A=1, B=2, …"""

    def __init__(
        self,
        seats: int = 4,
        *,
        preset: str = "online",
        game: Game[KingsState] | None = None,
        expansions: tuple[str, ...] = (),
        revision: int = 0,
        **options: str,
    ) -> None:
        self.game = game or cast("Game[KingsState]", find_game("king_of_tokyo"))
        self.expansions = expansions
        self.revision = revision or self.game.revision
        self.options = self.game.resolve_options(preset, options)
        monsters = tuple(Monster(seat=Seat(seat), place="outside") for seat in range(1, seats + 1))
        self._start = TokyoState(
            monsters=monsters,
            market=(Slot(), Slot(), Slot()),
            turn=1,
            round_seat=Seat(seats),
            first=Seat(1),
        )
        self._next_holding = 1
        self._dice: list[str] = []
        self._draws: list[str] = []
        self._answers: dict[str, list[Scripted]] = {}
        self._bench: Bench[KingsState] | None = None
        self.asked: list[Prompt] = []

    # -- the position ------------------------------------------------------------------------------

    def monster(self, seat: int, *, holds: Sequence[str] = (), **changes: object) -> Kit:
        """Set a monster up; `holds` gives it keep cards, in order of acquisition."""
        monsters = list(self._start.monsters)
        monsters[seat - 1] = msgspec.structs.replace(monsters[seat - 1], **changes)
        holdings = list(self._start.holdings)
        for card in holds:
            holdings.append(
                Holding(
                    id=self._next_holding,
                    seat=Seat(seat),
                    card=card,
                    counter=self.game.cards[card].tokens,
                )
            )
            self._next_holding += 1
        self._start = msgspec.structs.replace(
            self._start,
            monsters=tuple(monsters),
            holdings=tuple(holdings),
            next_holding=self._next_holding,
        )
        return self

    def copies(self, seat: int, model: str) -> Kit:
        """Give the seat a Mimic that copies the first such card on the table."""
        self.monster(seat, holds=["mimic"])
        holdings = list(self._start.holdings)
        original = next(each for each in holdings if each.card == model)
        holdings[-1] = msgspec.structs.replace(
            holdings[-1], copies=original.id, counter=self.game.cards[model].tokens
        )
        self._start = msgspec.structs.replace(self._start, holdings=tuple(holdings))
        return self

    def dead(self, seat: int) -> Kit:
        """This monster is out of the game already."""
        return self.monster(seat, alive=False, hearts=0)

    def market(self, *cards: str) -> Kit:
        """The face-up cards."""
        slots = [Slot(card, number + 1) for number, card in enumerate(cards)]
        slots += [Slot()] * (3 - len(slots))
        self._start = msgspec.structs.replace(self._start, market=tuple(slots), reveals=len(cards))
        return self

    def deck(self, *cards: str) -> Kit:
        """The face-down cards; they will be drawn in this order."""
        self._start = msgspec.structs.replace(self._start, deck=tuple(sorted(cards)))
        self._draws = list(cards)
        return self

    def state_is(self, **changes: object) -> Kit:
        """Set any other field of the state."""
        self._start = msgspec.structs.replace(self._start, **changes)
        return self

    # -- playing -----------------------------------------------------------------------------------

    def turn(self, seat: int = 1, roll: str = "", **answers: Scripted | Sequence[Scripted]) -> Kit:
        """Play a whole turn of the seat. roll: the dice of all throws of the turn, one after the
        other.

        answers: by kind of question, with "." written as "__"; a list is used up one by one. A
        yield question to one seat can be told apart by a suffix: yield_tokyo_2.
        """
        self._dice = faces(roll)
        self._answers = _by_kind(answers)
        before = Seat((seat - 2) % len(self._start.monsters) + 1)
        self._begin(before)
        self._run()
        return self

    def another_turn(self, roll: str = "", **answers: Scripted | Sequence[Scripted]) -> Kit:
        """Play the next turn, of whoever it is."""
        assert self._bench is not None
        self._dice = faces(roll)
        self._answers = _by_kind(answers)
        self._run()
        return self

    def buy(self, seat: int, card: str, **answers: Scripted | Sequence[Scripted]) -> Kit:
        """The seat gets the card as if it had bought it for nothing in its own turn. answers: as in
        `turn`.
        """
        self._answers = _by_kind(answers)
        self._start = msgspec.structs.replace(
            self._start, active=Seat(seat), deck=(*self._start.deck, card)
        )
        self._begin(Seat(seat))
        ware = Ware(id="x", card=card, price=0, position=0)
        self._run(lambda table: market.purchase(table, Seat(seat), ware))
        return self

    def play(self, rule: Callable[[KingTable], Coroutine[object, object, None]]) -> Kit:
        """Run any rule on the table."""
        self._begin(Seat(1))
        self._run(rule)
        return self

    def _begin(self, before: Seat) -> None:
        start = msgspec.structs.replace(self._start, round_seat=before)
        match = MatchState(
            game=self.game.id,
            revision=self.revision,
            expansions=self.expansions,
            options=self.options,
            seats=len(start.monsters),
            status="running",
            table=start,
        )
        self._bench = Bench(self.game, match, self._chance)

    def _run(
        self, rule: Callable[[KingTable], Coroutine[object, object, None]] = play_turn
    ) -> None:
        bench = self.bench
        bench.run(rule)
        while bench.waiting:
            prompt = bench.waiting[0]
            self.asked.append(prompt)
            bench.answer(prompt, self._answer(prompt))
        assert not bench.is_running, "the rule has not come to its end"
        assert not self._dice, f"dice left over: {self._dice}"
        left = {kind: answers for kind, answers in self._answers.items() if answers}
        assert not left, f"answers left over: {left}; asked: {self.kinds}"

    def _answer(self, prompt: Prompt) -> Answer:
        for key in (f"{prompt.kind}_{prompt.seat}", prompt.kind):
            if self._answers.get(key):
                return _as_answer(prompt, self._answers[key].pop(0))
        return prompt.default

    def _chance(self, domain: str, bound: int, count: int) -> tuple[int, ...]:
        if domain == "die":
            assert len(self._dice) >= count, f"{count} dice wanted, script has {self._dice}"
            thrown, self._dice = self._dice[:count], self._dice[count:]
            return tuple(FACES.index(cast("Face", face)) for face in thrown)
        assert domain == "power deck", domain
        state = self.state
        unseen = list(state.deck)
        for top in state.tops:
            unseen.remove(cast("str", top.card))
        card = next((each for each in self._draws if each in unseen), unseen[0])
        if card in self._draws:
            self._draws.remove(card)
        assert len(unseen) == bound
        return (unseen.index(card),)

    # -- what came of it ---------------------------------------------------------------------------

    @property
    def bench(self) -> Bench[KingsState]:
        assert self._bench is not None, "nothing was played yet"
        return self._bench

    @property
    def table(self) -> KingTable:
        return self.bench.table

    @property
    def state(self) -> KingsState:
        return self.bench.table.state

    @property
    def facts(self) -> list[Fact]:
        return self.bench.facts

    @property
    def kinds(self) -> list[str]:
        """Kinds of all questions asked so far."""
        return [prompt.kind for prompt in self.asked]

    @property
    def winners(self) -> tuple[int, ...] | None:
        """None while the match goes on."""
        return None if self.bench.over is None else tuple(self.bench.over.winners)

    def at(self, seat: int) -> Monster:
        """A monster as it is now."""
        return self.state.monster(Seat(seat))

    def cards(self, seat: int) -> list[str]:
        """The cards in front of a seat."""
        return [each.card for each in self.state.held_by(Seat(seat))]

    def prompts(self, kind: str) -> list[Prompt]:
        """The questions of a kind that were asked."""
        return [prompt for prompt in self.asked if prompt.kind == kind]

    def offered(self, kind: str) -> list[str]:
        """Subjects of the options of the first question of a kind."""
        return [option.subject for option in self.prompts(kind)[0].options]


def first_edition(seats: int = 4) -> Kit:
    """A table at which cards do what they did in the first edition."""
    return Kit(seats, card_text_edition="first")


def _by_kind(answers: Mapping[str, Scripted | Sequence[Scripted]]) -> dict[str, list[Scripted]]:
    return {
        kind.replace("__", "."): list(each) if isinstance(each, list) else [cast("Scripted", each)]
        for kind, each in answers.items()
    }


def _as_answer(prompt: Prompt, scripted: Scripted) -> Answer:
    if isinstance(scripted, int):
        return Answer(number=scripted)
    if isinstance(scripted, str):
        return Answer(picks=(_option(prompt, scripted),) if scripted else ())
    if all(isinstance(each, int) for each in scripted):
        return Answer(amounts=tuple(cast("Sequence[int]", scripted)))
    return Answer(picks=tuple(_option(prompt, str(each)) for each in scripted))


def _option(prompt: Prompt, wanted: str) -> str:
    """An option by its id, or by a part of its subject ("wings" for "use:wings")."""
    for option in prompt.options:
        if option.id == wanted or wanted in option.subject.split(":"):
            return option.id
    message = f"{wanted!r} is not offered by {prompt}"
    raise AssertionError(message)
