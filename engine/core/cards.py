"""Cards: data, wording and behaviour in one block; and the index by which the table finds the
behaviour.

No rule asks whether somebody owns a certain card. A card attaches plain functions to proposals and
happenings:

* ``adds``     a number that counts while the card lies there (or a function of its owner);
* ``replaces`` changes or cancels what is about to happen; each copy at most once per proposal;
* ``offers``   an optional reaction of its owner; all offers of one seat are put as one question;
* ``after``    does something once something has happened;
* ``anytime``  what its owner may do whenever the match waits, whoever is asked;
* ``gained`` / ``lost``  when the card comes into play or leaves it; for discard cards `gained` is
  the whole effect.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from inspect import iscoroutinefunction
from typing import Generic, Literal, TypeVar

M = TypeVar("M")
"""The game's own `Me`: what a card's function may do, seen from its owner."""

P = TypeVar("P")

Under = tuple[str, str]
"""An option and a value: the hook only exists in matches where the option has that value."""


class Stat:
    """A number that cards may change: base plus everything added, kept between low and high."""

    __slots__ = ("base", "high", "low", "name")

    def __init__(self, name: str, base: int, *, low: int = 0, high: int = 1 << 30) -> None:
        self.name = name
        self.base = base
        self.low = low
        self.high = high


Addend = int | Callable[[M], int]


class Hook(Generic[M]):
    """One function of one card, and when it counts."""

    __slots__ = (
        "act",
        "is_async",
        "kind",
        "order",
        "price",
        "since",
        "subject",
        "under",
        "uses",
        "when",
    )

    def __init__(
        self,
        kind: Literal["replaces", "offers", "after", "anytime", "gained", "lost"],
        subject: type,
        act: Callable[..., object],
        *,
        when: Callable[..., bool] | None = None,
        price: int = 0,
        uses: int = 0,
        order: int = 0,
        under: Under | None = None,
        since: int = 0,
    ) -> None:
        self.kind = kind
        self.subject = subject
        self.act = act
        self.is_async = iscoroutinefunction(act)
        self.when = when
        self.price = price
        self.uses = uses
        self.order = order
        self.under = under
        self.since = since

    def is_live(self, options: Mapping[str, str], revision: int) -> bool:
        """Does the hook exist in a match with these options that was begun under this revision?"""
        if self.under is not None and options[self.under[0]] != self.under[1]:
            return False
        return self.since <= revision


class AnyTime:
    """Key of the hooks that are what a card's owner may do at any time."""


class Gained:
    """Key of the hooks that run when a card comes into play."""


class Lost:
    """Key of the hooks that run when a card leaves play."""


class Card(Generic[M]):
    """One block of a deck module. `text` is our own wording, `sources` the short codes of the rule
    notes. asks: its questions ("die" for the prompt kind "<card>.die") in English and Chinese.
    """

    def __init__(
        self,
        *,
        id: str,  # noqa: A002  # the word that cards use
        name: str,
        name_zh: str,
        kind: str,
        cost: int,
        copies: int,
        text: str,
        text_zh: str,
        sources: tuple[str, ...],
        adds: Mapping[Stat, Addend[M]] | None = None,
        tokens: int = 0,
        cost_under: Mapping[Under, int] | None = None,
        tokens_under: Mapping[Under, int] | None = None,
        text_under: Mapping[Under, tuple[str, str]] | None = None,
        asks: Mapping[str, tuple[str, str]] | None = None,
        since: int = 0,
    ) -> None:
        self.id = id
        self.name = name
        self.name_zh = name_zh
        self.kind = kind
        self.cost = cost
        self.copies = copies
        self.text = text
        self.text_zh = text_zh
        self.sources = sources
        self.since = since
        self.tokens = tokens
        self.adds: list[tuple[Stat, Addend[M], Under | None]] = [
            (stat, addend, None) for stat, addend in (adds or {}).items()
        ]
        self.cost_under = dict(cost_under or {})
        self.tokens_under = dict(tokens_under or {})
        self.text_under = dict(text_under or {})
        self.asks = dict(asks or {})
        self.hooks: list[Hook[M]] = []
        self.intrinsic: list[Hook[M]] = []

    def cost_in(self, options: Mapping[str, str]) -> int:
        """The printed cost under the options of a match."""
        return _under(self.cost_under, options, self.cost)

    def tokens_in(self, options: Mapping[str, str]) -> int:
        """How many tokens the card comes with under the options of a match."""
        return _under(self.tokens_under, options, self.tokens)

    def adds_under(self, under: Under, stat: Stat, addend: Addend[M]) -> None:
        """A number that only counts in matches where an option has a value."""
        self.adds.append((stat, addend, under))

    def replaces(
        self,
        proposal: type[P],
        *,
        when: Callable[[M, P], bool] | None = None,
        under: Under | None = None,
        order: int = 0,
    ) -> Callable[[Callable[[M, P], P | None]], Callable[[M, P], P | None]]:
        """Change (return another) or cancel (return None) a proposal, without asking anybody."""

        def register(act: Callable[[M, P], P | None]) -> Callable[[M, P], P | None]:
            assert not iscoroutinefunction(act), f"{self.id}: what replaces is a plain def"
            self.hooks.append(Hook("replaces", proposal, act, when=when, under=under, order=order))
            return act

        return register

    def offers(
        self,
        proposal: type[P],
        *,
        when: Callable[[M, P], bool] | None = None,
        price: int = 0,
        uses: int = 0,
        under: Under | None = None,
        order: int = 0,
    ) -> Callable[[Callable[[M, P], Awaitable[P | None]]], Callable[[M, P], Awaitable[P | None]]]:
        """An optional reaction: offered while `when` holds, the price can be paid and uses (0: no
        limit) are left. One for each proposal, or for each value of one option.
        """

        def register(
            act: Callable[[M, P], Awaitable[P | None]],
        ) -> Callable[..., Awaitable[P | None]]:
            assert iscoroutinefunction(act), f"{self.id}: what is offered is an async def"
            hook: Hook[M] = Hook(
                "offers", proposal, act, when=when, price=price, uses=uses, under=under, order=order
            )
            self._add_only(hook, f"offers on one {proposal.__name__}")
            return act

        return register

    def after(
        self,
        happening: type[P],
        *,
        when: Callable[[M, P], bool] | None = None,
        under: Under | None = None,
        order: int = 0,
        intrinsic: bool = False,
    ) -> Callable[[Callable[[M, P], object]], Callable[[M, P], object]]:
        """Do something once something has happened. intrinsic: also while the card acts as another
        one.
        """

        def register(act: Callable[[M, P], object]) -> Callable[[M, P], object]:
            hook: Hook[M] = Hook("after", happening, act, when=when, under=under, order=order)
            (self.intrinsic if intrinsic else self.hooks).append(hook)
            return act

        return register

    def anytime(
        self,
        *,
        when: Callable[[M], bool] | None = None,
        price: int = 0,
        under: Under | None = None,
        since: int = 0,
    ) -> Callable[[Callable[[M], None]], Callable[[M], None]]:
        """What the owner may do whenever the match waits, while `when` holds and the price can be
        paid; the open questions are then put anew where they have changed. It asks nothing. since:
        the first revision of the rules that has it.
        """

        def register(act: Callable[[M], None]) -> Callable[[M], None]:
            assert not iscoroutinefunction(act), f"{self.id}: what is done at any time cannot ask"
            hook: Hook[M] = Hook(
                "anytime", AnyTime, act, when=when, price=price, under=under, since=since
            )
            self._add_only(hook, "actions at any time")
            return act

        return register

    def _add_only(self, hook: Hook[M], what: str) -> None:
        """Its owner could not tell two hooks of this kind apart; no match may have both."""
        for each in self.hooks:
            is_other = (each.kind, each.subject) != (hook.kind, hook.subject)
            assert is_other or _never_both(each.under, hook.under), f"{self.id}: two {what}"
        self.hooks.append(hook)

    def gained(
        self, *, under: Under | None = None, intrinsic: bool = False
    ) -> Callable[[Callable[[M], object]], Callable[[M], object]]:
        """What happens when the card comes to a seat; for a discard card this is all it does."""

        def register(act: Callable[[M], object]) -> Callable[[M], object]:
            hook: Hook[M] = Hook("gained", Gained, act, under=under)
            (self.intrinsic if intrinsic else self.hooks).append(hook)
            return act

        return register

    def lost(
        self, *, under: Under | None = None
    ) -> Callable[[Callable[[M], object]], Callable[[M], object]]:
        """What happens when a seat no longer has the card (its `me` is the former owner)."""

        def register(act: Callable[[M], object]) -> Callable[[M], object]:
            self.hooks.append(Hook("lost", Lost, act, under=under))
            return act

        return register


def _never_both(one: Under | None, other: Under | None) -> bool:
    """Two values of one option: no match has both."""
    return one is not None and other is not None and one[0] == other[0] and one[1] != other[1]


def _under(values: Mapping[Under, int], options: Mapping[str, str], otherwise: int) -> int:
    for (option, value), number in values.items():
        if options[option] == value:
            return number
    return otherwise


class Deck(Generic[M]):
    """Cards in printed order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.cards: dict[str, Card[M]] = {}

    def add(self, card: Card[M]) -> Card[M]:
        """Put a card into the deck. Two cards may not have one id."""
        assert card.id not in self.cards, card.id
        self.cards[card.id] = card
        return card

    def dealt(self, revision: int | None = None) -> tuple[Card[M], ...]:
        """The cards that were there in a revision of the rules (None: all that there are)."""
        cards = self.cards.values()
        return tuple([card for card in cards if revision is None or card.since <= revision])

    def ids(self, revision: int | None = None) -> tuple[str, ...]:
        """Every physical card of them, copies included, sorted: the face-down deck as a
        multiset.
        """
        return tuple(sorted(card.id for card in self.dealt(revision) for _ in range(card.copies)))


class Listener(Generic[M]):
    """One hook of one copy in play, ready to be called."""

    __slots__ = ("card", "holding", "hook", "me", "seat")

    def __init__(self, hook: Hook[M], me: M, *, seat: int, holding: int, card: str) -> None:
        self.hook = hook
        self.me = me
        self.seat = seat
        self.holding = holding
        self.card = card


class HookIndex(Generic[M]):
    """What the cards in play listen to. Built anew when the holdings change, never patched.

    replaces, offers, after: by what they react to, in order of acquisition. anytime: in that order.
    """

    __slots__ = ("_addends", "after", "anytime", "offers", "replaces")

    def __init__(self) -> None:
        self.replaces: dict[type, list[Listener[M]]] = {}
        self.offers: dict[type, list[Listener[M]]] = {}
        self.after: dict[type, list[Listener[M]]] = {}
        self.anytime: list[Listener[M]] = []
        self._addends: dict[tuple[Stat, int], list[tuple[Addend[M], M]]] = {}

    def put(self, listener: Listener[M]) -> None:
        """Add one hook of one copy; call in order of acquisition."""
        hook = listener.hook
        if hook.kind == "replaces":
            self.replaces.setdefault(hook.subject, []).append(listener)
        elif hook.kind == "offers":
            self.offers.setdefault(hook.subject, []).append(listener)
        elif hook.kind == "after":
            self.after.setdefault(hook.subject, []).append(listener)
        elif hook.kind == "anytime":
            self.anytime.append(listener)

    def put_addend(self, stat: Stat, seat: int, addend: Addend[M], me: M) -> None:
        """Add one number of one copy."""
        self._addends.setdefault((stat, seat), []).append((addend, me))

    def total(self, stat: Stat, seat: int) -> int:
        """Base plus everything added for a seat, kept within the stat's limits."""
        value = stat.base
        addends = self._addends.get((stat, seat))
        if addends is None:
            return value
        for addend, me in addends:
            value += addend if isinstance(addend, int) else addend(me)
        return min(max(value, stat.low), stat.high)
