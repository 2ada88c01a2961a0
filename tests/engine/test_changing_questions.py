"""Actions at any time that change only some of the open questions, or take the asking card away."""

from __future__ import annotations

from random import Random
from typing import cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import (
    Answer,
    AnyGame,
    Deck,
    Fact,
    Game,
    GameState,
    Holding,
    MatchOver,
    Me,
    Option,
    Prompt,
    PromptId,
    PromptsWithdrawn,
    Public,
    Seat,
    Session,
    Table,
    begins,
    derive_seed,
    evolves,
    fold,
    redact,
)
from tests.engine.acting import Acting, add_card
from tests.engine.playing import random_answer

SEED = derive_seed(b"master", "k1", "pledges")
ANN, BEN, CID = Seat(1), Seat(2), Seat(3)
POUCHES = {ANN: "use:1", BEN: "use:3", CID: "use:5"}
SQUIBS = {ANN: "use:2", BEN: "use:4", CID: "use:6"}
YES = Answer(picks=("yes",))
COINS = 2


class PledgesState(GameState, frozen=True, omit_defaults=True, kw_only=True, tag="test_pledges"):
    coins: tuple[int, ...] = ()


class HatsLaid(Fact, frozen=True, tag="hats_laid"):
    seats: Public[int]


class HatPassed(Fact, frozen=True, tag="hat_passed"):
    turn: Public[int]


class CoinThrown(Fact, frozen=True, tag="coin_thrown"):
    seat: Public[Seat]


class SquibBurnt(Fact, frozen=True, tag="squib_burnt"):
    holding: Public[int]


class PledgesCounted(Fact, frozen=True, tag="pledges_counted"):
    pledges: Public[tuple[int, ...]]
    votes: Public[int]


@begins(HatsLaid)
def lay_hats(fact: HatsLaid) -> PledgesState:
    cards = [(Seat(each + 1), card) for each in range(fact.seats) for card in ("pouch", "squib")]
    return PledgesState(
        coins=(COINS,) * fact.seats,
        holdings=tuple(
            Holding(id=index + 1, seat=seat, card=card) for index, (seat, card) in enumerate(cards)
        ),
    )


@evolves(HatPassed)
def pass_hat(state: PledgesState, fact: HatPassed) -> PledgesState:
    return msgspec.structs.replace(state, turn=fact.turn, active=ANN)


@evolves(CoinThrown)
def throw_coin(state: PledgesState, fact: CoinThrown) -> PledgesState:
    coins = list(state.coins)
    coins[fact.seat - 1] -= 1
    return msgspec.structs.replace(state, coins=tuple(coins))


@evolves(SquibBurnt)
def burn_squib(state: PledgesState, fact: SquibBurnt) -> PledgesState:
    left = tuple(each for each in state.holdings if each.id != fact.holding)
    return msgspec.structs.replace(state, holdings=left)


@evolves(PledgesCounted)
def count_pledges(state: PledgesState, _: PledgesCounted) -> PledgesState:
    return state


class PledgesMe(Me[PledgesState]):
    __slots__ = ()

    def can_pay(self, price: int) -> bool:
        return self.table.state.coins[self.seat - 1] >= price

    def pay(self, price: int) -> None:
        if price:
            self.table.record(CoinThrown(self.seat))


DECK: Deck[PledgesMe] = Deck("base")


pouch = add_card(DECK, "pouch", "Pouch", "口袋")
squib = add_card(DECK, "squib", "Squib", "爆竹")


class Thanks(msgspec.Struct, frozen=True, gc=False):
    """The hat has been round."""


@pouch.anytime(price=1)
def lose_coin(_: PledgesMe) -> None:
    """Only the price."""


@squib.anytime()
def burn(me: PledgesMe) -> None:
    me.table.record(SquibBurnt(me.holding.id))


@squib.after(Thanks)
async def offer_light(me: PledgesMe, _: Thanks) -> None:
    await me.table.ask(me.seat, "light", options=(Option("yes"),))


class AlmsGiven(Fact, frozen=True, tag="alms_given"):
    seat: Public[Seat]


@evolves(AlmsGiven)
def give_alms(state: PledgesState, _: AlmsGiven) -> PledgesState:
    return state


@pouch.gained()
def beg(me: PledgesMe) -> None:
    """Only who has nothing."""
    if not me.can_pay(1):
        me.table.record(AlmsGiven(me.seat))


async def set_up(table: Table[PledgesState]) -> None:
    table.record(HatsLaid(table.seats))


async def pass_round(table: Table[PledgesState]) -> None:
    """Everybody who has coins pledges some; then, with nothing between, everybody votes. In the end
    the first seat finds one more pouch, and may say so: in secret while it has all of its coins.
    """
    if table.state.turn == 2:
        raise MatchOver((), "the_end")
    table.record(HatPassed(table.state.turn + 1))
    coins = table.state.coins
    pledges = await table.ask_all(
        [
            Prompt(PromptId(""), Seat(seat), "pledge", "number", 0, high, default=Answer(number=0))
            for seat, high in enumerate(coins, start=1)
            if high
        ]
    )
    ballots = (Option("yes"), Option("no"))
    votes = await table.ask_all(
        [
            Prompt(PromptId(""), Seat(seat), "vote", low=1, options=ballots, default=YES)
            for seat in range(1, table.seats + 1)
        ]
    )
    table.record(PledgesCounted(tuple(cast("int", each.number) for each in pledges), len(votes)))
    await table.announce(Thanks())
    found = Holding(id=0, seat=ANN, card="pouch")
    await table.comes_into_play(table.game.me(table, ANN, found), "pouch")
    secret = table.state.coins[0] == COINS
    await table.ask(ANN, "tell", options=(Option("yes"),), secret=secret)


PLEDGES: Game[PledgesState] = Game(
    id="test_pledges",
    name="Pledges",
    name_zh="认捐",
    seats_low=3,
    seats_high=3,
    revision=1,
    state=PledgesState,
    facts=(AlmsGiven, CoinThrown, HatPassed, HatsLaid, PledgesCounted, SquibBurnt),
    checkpoint=HatPassed,
    setup=set_up,
    turn=pass_round,
    me=lambda table, seat, holding: PledgesMe(table, seat, holding),
    decks=(cast("Deck[Me[PledgesState]]", DECK),),
    phrases={},
)
GAME = cast("AnyGame", PLEDGES)


class Play(Acting):
    """A match of Pledges in play, checked after everything that happens in it."""

    def __init__(self) -> None:
        super().__init__(GAME, SEED, seats=3, revision=PLEDGES.revision)

    def act(self, seat: Seat, action: str) -> tuple[Fact, ...]:
        facts = super().act(seat, action)
        self.check()
        return facts

    def answer(self, seat: Seat, answer: Answer) -> tuple[Fact, ...]:
        facts = super().answer(seat, answer)
        self.check()
        return facts

    def answer_to_the_end(self) -> None:
        """All but the round's last question."""
        for answer in (Answer(number=0), YES, YES):
            for seat in (ANN, BEN, CID):
                self.answer(seat, answer)

    def counted(self) -> list[tuple[int, ...]]:
        return [each.pledges for each in self.facts if isinstance(each, PledgesCounted)]


@pytest.mark.parametrize("actor", [ANN, BEN, CID])
def test_of_several_questions_only_the_changed_one_is_put_anew(actor: Seat) -> None:
    """Whoever acts: the others' questions stay, in whatever order they were put."""
    play = Play()
    before = play.asked()
    facts = play.act(actor, POUCHES[actor])
    (withdrawn,) = [each for each in facts if isinstance(each, PromptsWithdrawn)]
    assert withdrawn.prompt_ids == (f"p{actor}",)
    kept = [each for each in before if each[1] != actor]
    assert play.asked() == [*kept, ("p4", actor, "pledge")]


def test_answers_to_questions_that_stay_are_kept_when_an_earlier_one_changes() -> None:
    play = Play()
    play.answer(BEN, Answer(number=2))
    play.act(ANN, POUCHES[ANN])
    assert play.asked() == [("p3", CID, "pledge"), ("p4", ANN, "pledge")]
    play.answer(CID, Answer(number=1))
    play.answer(ANN, Answer(number=1))
    for seat in (ANN, BEN, CID):
        play.answer(seat, YES)
    assert play.counted() == [(1, 2, 1)]


def test_what_is_answered_by_all_who_are_still_asked_stays_answered() -> None:
    """The only question left open vanishes: the rules go on with the answers that are there, and no
    later action brings those questions back.
    """
    play = Play()
    play.answer(ANN, Answer(number=2))
    play.answer(BEN, Answer(number=1))
    play.act(CID, POUCHES[CID])
    play.act(CID, POUCHES[CID])
    assert {kind for _, _, kind in play.asked()} == {"vote"}
    before = play.asked()
    play.act(BEN, POUCHES[BEN])
    play.act(ANN, POUCHES[ANN])
    assert play.asked() == before
    for seat in (ANN, BEN, CID):
        play.answer(seat, YES)
    assert play.counted() == [(2, 1)]


def test_a_card_that_leaves_by_its_own_action_asks_no_more() -> None:
    """It acts just before it would have asked; then it is not there to react any more."""
    play = Play()
    for answer in (Answer(number=0), YES):
        for seat in (ANN, BEN, CID):
            play.answer(seat, answer)
    assert play.asked() == [("p7", ANN, "light")]
    play.act(ANN, SQUIBS[ANN])
    assert play.asked() == [("p8", BEN, "light")]
    play.act(CID, SQUIBS[CID])
    assert play.asked() == [("p8", BEN, "light")]
    play.answer(BEN, YES)
    assert play.asked() == [("p9", ANN, "tell")]


def test_what_a_card_did_when_it_came_is_not_decided_again() -> None:
    """The pouch found its owner with coins; that these are thrown at the next question is too
    late.
    """
    play = Play()
    play.answer_to_the_end()
    assert [kind for _, _, kind in play.asked()] == ["tell"]
    play.act(ANN, POUCHES[ANN])
    play.act(ANN, POUCHES[ANN])
    assert [kind for _, _, kind in play.asked()] == ["tell"]
    assert not [fact for fact in play.facts if isinstance(fact, AlmsGiven)]


def test_a_secret_question_that_is_public_now_is_put_anew() -> None:
    """Though nothing else has changed: else the others would go on seeing that it is secret."""
    play = Play()
    play.answer_to_the_end()
    (before,) = play.session.waiting
    assert fold(redact(fact, BEN) for fact in play.facts).prompts[0].concealed
    facts = play.act(ANN, POUCHES[ANN])
    assert PromptsWithdrawn((before.id,)) in facts
    (prompt,) = play.session.waiting
    assert msgspec.structs.replace(prompt, id=before.id) == before
    assert fold(redact(fact, BEN) for fact in play.facts).prompts == (prompt,)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_random_play_goes_on_as_the_rebuilt_match_does(seed: int) -> None:
    """With groups of questions that shrink and cards that leave, whoever acts when."""
    dice = Random(seed)
    play = Play()
    while play.session.waiting:
        again = Session.rebuild(play.facts, seed=SEED, game=GAME)
        if play.session.actions and dice.random() < 0.4:
            chosen = dice.choice(play.session.actions)
            action = dice.choice(chosen.actions).id
            facts = play.act(chosen.seat, action)
            assert again.take_action(chosen.seat, action).facts == facts
        else:
            prompt = dice.choice(play.session.waiting)
            answer = random_answer(prompt, dice)
            facts = play.answer(prompt.seat, answer)
            assert again.answer(prompt.id, prompt.seat, answer).facts == facts
        assert again.waiting == play.session.waiting
    assert play.session.state.end_reason == "the_end"
