"""What rules and cards may touch while a match runs: the table, and `me` for a card's owner.

Everything else about the game is an immutable value. `async` means "may stop to ask a player": the
only awaitable is a question.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar, cast

import msgspec

from engine.core.cards import Card, Gained, Hook, HookIndex, Listener, Lost, Stat
from engine.core.facts import (
    ChanceDrawn,
    ChanceDrawnInSecret,
    Prompted,
    PromptedInSecret,
    PromptsWithdrawn,
)
from engine.core.prompts import PASS, Answer, Form, Option, Prompt, PromptId, SeatActions
from engine.core.state import (
    CORE_EVOLVERS,
    TABLE_EVOLVERS,
    GameState,
    Holding,
    MatchState,
)
from engine.core.visibility import NOBODY, Fact, Seat

if TYPE_CHECKING:
    from engine.core.game import Game

S = TypeVar("S", bound=GameState)
P = TypeVar("P")

DEPTH_MAX: Final = 32
PROMPTS_PER_TURN_MAX: Final = 500


class Ask:
    """The only awaitable in the engine: one or several questions that are open at the same time."""

    __slots__ = ("prompts",)

    def __init__(self, prompts: tuple[Prompt, ...]) -> None:
        self.prompts = prompts

    def __await__(self) -> Generator[tuple[Prompt, ...], tuple[Answer, ...], tuple[Answer, ...]]:
        answers = yield self.prompts
        return answers


class Recorder(Protocol):
    """Where facts and chance come from and go to: the log, live or read again."""

    def accept(self, fact: Fact) -> None:
        """Live: append; rebuilding: must equal the logged fact."""

    def chance(self, domain: str, number: int, bound: int, count: int) -> tuple[int, ...]:
        """Values of the draw: live from the seed, rebuilding from the log."""

    def turn_begins(self, match: MatchState, table: GameState) -> None:
        """The next fact is the first of a turn; match and table are the state before it."""

    def moment(self) -> None:
        """Here an action may fall; what lies before is not looked at again because of it."""


class Table(Generic[S]):
    """The table of one match, for rules. Only `record` changes what it holds."""

    def __init__(self, game: Game[S], match: MatchState, recorder: Recorder) -> None:
        self.game = game
        self.match = match
        """The match without its table (see `state`); its fact_count is not kept up here."""
        self.state: S = cast("S", match.table)
        # A match begun before an option existed plays with the option's default.
        self.options: Mapping[str, str] = {
            **{spec.id: spec.default for spec in game.options},
            **{each.id: each.value for each in match.options},
        }
        self.seats = match.seats
        self._recorder = recorder
        self._accept = recorder.accept
        self._indexed: tuple[Holding, ...] | None = None
        self._index: HookIndex[Me[S]] = HookIndex()
        self._hooks: dict[str, list[Hook[Me[S]]]] = {}
        self._costs: dict[str, int] = {}
        self._causes: list[str] = []
        self._prompts_this_turn = 0
        self.reopened: tuple[Prompt, ...] = ()
        """Questions that were open before an action, and that the rules have not put anew yet."""

    # -- facts and chance --------------------------------------------------------------------------

    def record(self, fact: Fact) -> None:
        """Make it a fact: the state changes and the log has it."""
        if self.reopened:
            self.withdraw()
        kind = type(fact)
        apply = TABLE_EVOLVERS.get(kind)
        if apply is None:
            self.match = CORE_EVOLVERS[kind](self.match, fact)
        else:
            self.state = apply(self.state, fact)  # type: ignore[assignment]  # the game's own state
        self._accept(fact)

    def chance(
        self, domain: str, bound: int, count: int = 1, *, audience: tuple[Seat, ...] | None = None
    ) -> tuple[int, ...]:
        """`count` fair values from 0 to bound-1. The domain names what is drawn ("die", "power
        deck").

        audience: only these seats see the values before the end of the match; None: everybody does.
        """
        if self.reopened:
            self.withdraw()
        number = self.match.draws
        values = self._recorder.chance(domain, number, bound, count)
        if audience is None:
            self.record(ChanceDrawn(domain, number, bound, count, values))
        else:
            self.record(ChanceDrawnInSecret(domain, number, bound, count, audience, values))
        return values

    def turn_begins(self) -> None:
        """Start counting prompts anew. Called by the session before each turn."""
        if self.reopened:
            self.withdraw()
        self._prompts_this_turn = 0
        self._recorder.turn_begins(self.match, self.state)

    # -- questions ---------------------------------------------------------------------------------

    async def ask(
        self,
        seat: Seat,
        kind: str,
        *,
        form: Form = "select",
        low: int = 0,
        high: int = 1,
        options: tuple[Option, ...] = (),
        limits: tuple[int, ...] = (),
        default: Answer = PASS,
        cause: str = "",
        secret: bool = False,
    ) -> Answer:
        """Stop until the seat has answered. secret: the others do not see the options."""
        prompt = Prompt(
            self._next_prompt_id(), seat, kind, form, low, high, options, limits, default, cause
        )
        still = self._still_open((prompt,), secret=secret).get(0) if self.reopened else None
        return (await Ask((still or self._put(prompt, secret=secret),)))[0]

    async def ask_all(
        self, questions: Sequence[Prompt], *, secret: bool = False
    ) -> tuple[Answer, ...]:
        """Ask several seats at the same time; nobody sees an answer before all have answered.

        The questions have an empty id; the answers come back in the order of the questions. No
        questions, no answers: then nothing stops.
        """
        if not questions:
            return ()
        still = self._still_open(questions, secret=secret)
        prompts: list[Prompt] = []
        for index, question in enumerate(questions):
            prompt = still.get(index)
            if prompt is None:
                prompt = msgspec.structs.replace(question, id=self._next_prompt_id())
                self._put(prompt, secret=secret)
            prompts.append(prompt)
        return await Ask(tuple(prompts))

    async def pick(
        self,
        seat: Seat,
        kind: str,
        options: tuple[Option, ...],
        *,
        optional: bool = False,
        default: str = "",
        cause: str = "",
        secret: bool = False,
    ) -> str | None:
        """One option's id, or None where picking is optional. Does not ask when there is nothing to
        choose.
        """
        if not options:
            return None
        if len(options) == 1 and not optional:
            return options[0].id
        if not optional and not default:
            default = options[0].id
        answer = await self.ask(
            seat,
            kind,
            low=0 if optional else 1,
            options=options,
            default=Answer(picks=(default,)) if default else PASS,
            cause=cause,
            secret=secret,
        )
        return answer.picks[0] if answer.picks else None

    def _next_prompt_id(self) -> PromptId:
        return PromptId(f"p{self.match.prompt_count + 1}")

    def _still_open(self, questions: Sequence[Prompt], *, secret: bool) -> dict[int, Prompt]:
        """Those of the questions, by their index, that were open before an action, just so.

        A secret question is always put anew: whether it has changed may be part of the secret.
        """
        still: dict[int, Prompt] = {}
        if secret or not self.reopened:
            return still
        for index, question in enumerate(questions):
            for before in self.reopened:
                if msgspec.structs.replace(question, id=before.id) == before:
                    still[index] = before
                    self.reopened = tuple([each for each in self.reopened if each is not before])
                    break
        return still

    def _put(self, prompt: Prompt, *, secret: bool) -> Prompt:
        self._prompts_this_turn += 1
        assert self._prompts_this_turn <= PROMPTS_PER_TURN_MAX, self._causes
        if secret:
            fact: Fact = PromptedInSecret(
                prompt.seat, prompt.id, prompt.kind, prompt.form, prompt.cause, prompt
            )
        else:
            fact = Prompted(prompt.seat, prompt)
        self.record(fact)
        return prompt

    # -- actions at any time -----------------------------------------------------------------------

    def actions(self) -> tuple[SeatActions, ...]:
        """What each seat may do now, whoever is asked; only seats that may do something."""
        found: dict[int, tuple[Option, ...]] = {}
        for each in self._acting():
            if self._may_act(each):
                option = Option(f"use:{each.holding}", f"use:{each.card}")
                found[each.seat] = (*found.get(each.seat, ()), option)
        return tuple([SeatActions(Seat(seat), found[seat]) for seat in sorted(found)])

    def moment(self) -> None:
        """An action that is taken at the next question falls here at the earliest: what has been
        decided by now, also that something did not happen, is not decided again.

        Called between the reactions to a happening or proposal; rules call it between steps.
        """
        if self._acting():
            self._recorder.moment()

    def has_actions(self) -> bool:
        """Does any card in play let its owner act at any time?"""
        return bool(self._acting())

    def _acting(self) -> list[Listener[Me[S]]]:
        index = self._index if self.state.holdings is self._indexed else self._reindex()
        return index.anytime

    def _may_act(self, listener: Listener[Me[S]]) -> bool:
        hook, me = listener.hook, listener.me
        return me.may_act() and me.can_pay(hook.price) and (hook.when is None or hook.when(me))

    def act(self, seat: Seat, action: str) -> None:
        """Do what `actions` offers a seat."""
        chosen = next(
            each
            for each in self._acting()
            if (each.seat, f"use:{each.holding}") == (seat, action) and self._may_act(each)
        )
        chosen.me.pay(chosen.hook.price)
        chosen.hook.act(chosen.me)

    def reopen(self, prompts: tuple[Prompt, ...]) -> None:
        """The rules are about to put these questions anew: what is public and has not changed stays
        open (or answered).
        """
        self.reopened = prompts

    def withdraw(self) -> None:
        """Close those of the reopened questions that the rules did not put anew."""
        gone, self.reopened = self.reopened, ()
        still = [prompt.id for prompt in self.match.prompts]
        ids = tuple([prompt.id for prompt in gone if prompt.id in still])
        if ids:
            self.record(PromptsWithdrawn(ids))

    # -- cards -------------------------------------------------------------------------------------

    def stat(self, stat: Stat, seat: Seat) -> int:
        """The number as the cards in play make it for this seat."""
        index = self._index if self.state.holdings is self._indexed else self._reindex()
        return index.total(stat, seat)

    def has_replacements(self, proposal: type) -> bool:
        """Might any card in play change such a proposal?"""
        index = self._index if self.state.holdings is self._indexed else self._reindex()
        return proposal in index.replaces

    def adjust(self, proposal: P, *, first: Seat = NOBODY) -> P | None:
        """The proposal after all automatic replacements; None when one cancelled it."""
        index = self._index if self.state.holdings is self._indexed else self._reindex()
        listeners = index.replaces.get(type(proposal))
        if not listeners:
            return proposal
        changed: P | None = proposal
        for each in self._in_order(listeners, first):
            if changed is None:
                break
            when = each.hook.when
            if when is None or when(each.me, changed):
                changed = cast("P | None", each.hook.act(each.me, changed))
        return changed

    async def propose(self, proposal: P, kind: str, *, first: Seat = NOBODY) -> P | None:
        """Replacements, then optional reactions; None when something cancelled it. kind: of the
        question.
        """
        changed = self.adjust(proposal, first=first)
        if changed is None:
            return None
        return await self.offer(changed, kind, first=first)

    async def offer(self, proposal: P, kind: str, *, first: Seat = NOBODY) -> P | None:
        """Only the optional reactions: all that one seat has at a time are one question, until it
        passes.
        """
        index = self._index if self.state.holdings is self._indexed else self._reindex()
        listeners = index.offers.get(type(proposal))
        if not listeners:
            return proposal
        seats = list(dict.fromkeys(each.seat for each in self._in_order(listeners, first)))
        changed: P | None = proposal
        self._deeper(kind)
        for seat in seats:
            used: dict[tuple[int, int], int] = {}
            while changed is not None:
                self.moment()
                chosen = await self._choose_offer(changed, kind, Seat(seat), used)
                if chosen is None:
                    break
                chosen.me.pay(chosen.hook.price)
                act = cast("Callable[[Me[S], P], _Coroutine[P | None]]", chosen.hook.act)
                changed = await act(chosen.me, changed)
        self.moment()
        self._causes.pop()
        return changed

    async def _choose_offer(
        self, proposal: P, kind: str, seat: Seat, used: dict[tuple[int, int], int]
    ) -> Listener[Me[S]] | None:
        open_offers: dict[str, Listener[Me[S]]] = {}
        index = self._index if self.state.holdings is self._indexed else self._reindex()
        for each in index.offers.get(type(proposal), ()):
            hook = each.hook
            if each.seat != seat or (
                hook.uses and used.get((each.holding, hook.order), 0) >= hook.uses
            ):
                continue
            if each.me.can_pay(hook.price) and (hook.when is None or hook.when(each.me, proposal)):
                open_offers[f"use:{each.holding}"] = each
        if not open_offers:
            return None
        options = tuple(Option(id, f"use:{each.card}") for id, each in open_offers.items())  # noqa: A001
        answer = await self.ask(seat, kind, options=options)
        if not answer.picks:
            return None
        chosen = open_offers[answer.picks[0]]
        key = (chosen.holding, chosen.hook.order)
        used[key] = used.get(key, 0) + 1
        return chosen

    async def announce(self, happening: object, *, first: Seat = NOBODY) -> None:
        """Something happened: let the cards in play react, the active seat's (or `first`'s)
        first.
        """
        index = self._index if self.state.holdings is self._indexed else self._reindex()
        listeners = index.after.get(type(happening))
        if not listeners:
            return
        holdings = self.state.holdings
        self._deeper(type(happening).__name__)
        for each in self._in_order(listeners, first):
            self.moment()
            if self.state.holdings is not holdings and not self._still_there(each):
                continue
            when = each.hook.when
            if when is None or when(each.me, happening):
                result = each.hook.act(each.me, happening)
                if each.hook.is_async:
                    await cast("_Coroutine[object]", result)
        self.moment()
        self._causes.pop()

    async def comes_into_play(self, me: Me[S], card: str, *, intrinsic: bool = True) -> None:
        """Run what the card does when it is gained: also the whole effect of a discard card."""
        hooks = self.hooks_of(card)
        if intrinsic:
            hooks = self._live(self.game.cards[card].intrinsic) + hooks
        await self._run(hooks, Gained, me)

    async def leaves_play(self, me: Me[S], card: str) -> None:
        """Run what the card does when its owner loses it."""
        await self._run(self.hooks_of(card), Lost, me)

    async def _run(self, hooks: list[Hook[Me[S]]], subject: type, me: Me[S]) -> None:
        self._deeper(subject.__name__)
        for hook in hooks:
            if hook.subject is subject:
                self.moment()
                result = hook.act(me)
                if hook.is_async:
                    await cast("_Coroutine[object]", result)
        self.moment()
        self._causes.pop()

    def cost(self, card_id: str) -> int:
        """The printed cost of a card under this match's options."""
        cost = self._costs.get(card_id)
        if cost is None:
            cost = self._costs[card_id] = self.game.cards[card_id].cost_in(self.options)
        return cost

    def card(self, card_id: str) -> Card[Me[S]]:
        """The card with this id."""
        return self.game.cards[card_id]

    def acts_as(self, holding: Holding) -> str:
        """The card that a holding counts as: its own, or that of the holding it copies while that
        is in play.
        """
        if not holding.copies:
            return holding.card
        for each in self.state.holdings:
            if each.id == holding.copies:
                return each.card
        return holding.card

    def hooks_of(self, card_id: str) -> list[Hook[Me[S]]]:
        """The hooks of a card that exist under this match's options."""
        hooks = self._hooks.get(card_id)
        if hooks is None:
            hooks = self._hooks[card_id] = self._live(self.game.cards[card_id].hooks)
        return hooks

    def _live(self, hooks: Sequence[Hook[Me[S]]]) -> list[Hook[Me[S]]]:
        return [hook for hook in hooks if hook.is_live(self.options, self.match.revision)]

    def _reindex(self) -> HookIndex[Me[S]]:
        self._indexed = self.state.holdings
        self._index = self._build_index()
        return self._index

    def _build_index(self) -> HookIndex[Me[S]]:
        index: HookIndex[Me[S]] = HookIndex()
        for holding in self.state.holdings:
            acts_as = self.acts_as(holding)
            me = self.game.me(self, holding.seat, holding)
            hooks = self.hooks_of(acts_as)
            intrinsic = self.game.cards[holding.card].intrinsic
            for hook in (*hooks, *self._live(intrinsic)) if intrinsic else hooks:
                index.put(Listener(hook, me, seat=holding.seat, holding=holding.id, card=acts_as))
            for stat, addend, under in self.game.cards[acts_as].adds:
                if under is None or self.options[under[0]] == under[1]:
                    index.put_addend(stat, holding.seat, addend, me)
        return index

    def _in_order(
        self, listeners: Sequence[Listener[Me[S]]], first: Seat
    ) -> Sequence[Listener[Me[S]]]:
        if len(listeners) == 1:
            return listeners
        start = first or self.state.active
        seats = self.seats
        return sorted(listeners, key=lambda each: ((each.seat - start) % seats, each.hook.order))

    def _still_there(self, listener: Listener[Me[S]]) -> bool:
        for holding in self.state.holdings:
            if holding.id == listener.holding:
                return holding.seat == listener.seat and self.acts_as(holding) == listener.card
        return False

    def _deeper(self, cause: str) -> None:
        self._causes.append(cause)
        assert len(self._causes) <= DEPTH_MAX, self._causes


_R = TypeVar("_R", covariant=True)
_Coroutine = Coroutine[tuple[Prompt, ...], tuple[Answer, ...], _R]


class Me(Generic[S]):
    """The table as the owner of one card sees it. Games inherit and add their own verbs."""

    __slots__ = ("_holding", "seat", "table")

    def __init__(self, table: Table[S], seat: Seat, holding: Holding) -> None:
        self.table = table
        self.seat = seat
        self._holding = holding

    @property
    def holding(self) -> Holding:
        """The copy this is about, as it lies there now (or lay there last)."""
        for each in self.table.state.holdings:
            if each.id == self._holding.id:
                return each
        return self._holding

    def may_act(self) -> bool:
        """May the owner do anything at any time, as far as the game is concerned?"""
        return True

    def can_pay(self, price: int) -> bool:
        """Can the owner pay the price of an offer?"""
        return price == 0

    def pay(self, price: int) -> None:
        """Pay the price of an offer."""
        assert price == 0, price
