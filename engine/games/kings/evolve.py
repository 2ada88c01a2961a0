"""How each fact changes the table: arithmetic only. Rules, options and chance never appear here."""

from __future__ import annotations

from msgspec.structs import replace

from engine.core.state import Holding, evolves
from engine.core.visibility import Hidden
from engine.games.kings import facts as f
from engine.games.kings.state import ExtraTurn, KingsState, Monster, Slot, TopCard


def _with(state: KingsState, monster: Monster) -> KingsState:
    monsters = state.monsters
    seat = monster.seat
    return replace(state, monsters=(*monsters[: seat - 1], monster, *monsters[seat:]))


def _without(cards: tuple[str, ...], card: str) -> tuple[str, ...]:
    index = cards.index(card)
    return cards[:index] + cards[index + 1 :]


def _with_holding(state: KingsState, holding: Holding) -> tuple[Holding, ...]:
    return tuple([holding if each.id == holding.id else each for each in state.holdings])


def _holding(state: KingsState, holding: int) -> Holding:
    return next(each for each in state.holdings if each.id == holding)


@evolves(f.FirstPlayerRolled)
def evolve_first_player_rolled(state: KingsState, _: f.FirstPlayerRolled) -> KingsState:
    return state


@evolves(f.FirstPlayerChosen)
def evolve_first_player_chosen(state: KingsState, fact: f.FirstPlayerChosen) -> KingsState:
    return replace(state, first=fact.seat)


@evolves(f.TurnBegan)
def evolve_turn_began(state: KingsState, fact: f.TurnBegan) -> KingsState:
    monsters = state.monsters
    for monster in monsters:
        if monster.harm or monster.guarded:
            monsters = tuple([replace(each, harm=0, guarded=False) for each in monsters])
            break
    holdings = state.holdings
    for holding in holdings:
        if holding.used:
            holdings = tuple([replace(each, used=0) for each in holdings])
            break
    return replace(
        state,
        turn=fact.turn,
        active=fact.seat,
        monsters=monsters,
        holdings=holdings,
        dice=(),
        added_smashes=0,
        fewer_dice=fact.fewer_dice,
        round_seat=fact.round_seat,
        extra_turns=fact.extra_turns,
        cut_short=False,
    )


@evolves(f.DiceRolled)
def evolve_dice_rolled(state: KingsState, fact: f.DiceRolled) -> KingsState:
    return replace(state, dice=fact.faces)


@evolves(f.DiceRerolled)
def evolve_dice_rerolled(state: KingsState, fact: f.DiceRerolled) -> KingsState:
    dice = list(state.dice)
    for die, face in zip(fact.dice, fact.faces, strict=True):
        dice[die - 1] = face
    return replace(state, dice=tuple(dice))


@evolves(f.DieSet)
def evolve_die_set(state: KingsState, fact: f.DieSet) -> KingsState:
    dice = state.dice
    return replace(state, dice=(*dice[: fact.die - 1], fact.face, *dice[fact.die :]))


@evolves(f.DiceThrown)
def evolve_dice_thrown(state: KingsState, _: f.DiceThrown) -> KingsState:
    return state


@evolves(f.SmashesAdded)
def evolve_smashes_added(state: KingsState, fact: f.SmashesAdded) -> KingsState:
    return replace(state, added_smashes=state.added_smashes + fact.amount)


@evolves(f.PointsGained)
def evolve_points_gained(state: KingsState, fact: f.PointsGained) -> KingsState:
    monster = state.monsters[fact.seat - 1]
    return _with(state, replace(monster, points=monster.points + fact.amount))


@evolves(f.PointsLost)
def evolve_points_lost(state: KingsState, fact: f.PointsLost) -> KingsState:
    monster = state.monsters[fact.seat - 1]
    return _with(state, replace(monster, points=monster.points - fact.amount))


@evolves(f.EnergyGained)
def evolve_energy_gained(state: KingsState, fact: f.EnergyGained) -> KingsState:
    monster = state.monsters[fact.seat - 1]
    return _with(state, replace(monster, energy=monster.energy + fact.amount))


@evolves(f.EnergyLost)
def evolve_energy_lost(state: KingsState, fact: f.EnergyLost) -> KingsState:
    monster = state.monsters[fact.seat - 1]
    return _with(state, replace(monster, energy=monster.energy - fact.amount))


@evolves(f.EnergyGiven)
def evolve_energy_given(state: KingsState, fact: f.EnergyGiven) -> KingsState:
    giver = state.monsters[fact.seat - 1]
    state = _with(state, replace(giver, energy=giver.energy - fact.amount))
    receiver = state.monsters[fact.receiver - 1]
    return _with(state, replace(receiver, energy=receiver.energy + fact.amount))


@evolves(f.HeartsGained)
def evolve_hearts_gained(state: KingsState, fact: f.HeartsGained) -> KingsState:
    monster = state.monsters[fact.seat - 1]
    return _with(state, replace(monster, hearts=monster.hearts + fact.amount))


@evolves(f.HeartsLost)
def evolve_hearts_lost(state: KingsState, fact: f.HeartsLost) -> KingsState:
    monster = state.monsters[fact.seat - 1]
    state = _with(state, replace(monster, hearts=monster.hearts - fact.amount))
    if not fact.by:
        return state
    dealer = state.monsters[fact.by - 1]
    return _with(state, replace(dealer, harm=dealer.harm + fact.amount))


@evolves(f.HeartsTrimmed)
def evolve_hearts_trimmed(state: KingsState, fact: f.HeartsTrimmed) -> KingsState:
    monster = state.monsters[fact.seat - 1]
    return _with(state, replace(monster, hearts=monster.hearts - fact.amount))


def _with_tokens(state: KingsState, fact: f.TokensPut | f.TokensRemoved, sign: int) -> KingsState:
    monster = state.monsters[fact.seat - 1]
    count = getattr(monster, fact.token) + sign * fact.amount
    return _with(state, replace(monster, **{fact.token: count}))


@evolves(f.TokensPut)
def evolve_tokens_put(state: KingsState, fact: f.TokensPut) -> KingsState:
    return _with_tokens(state, fact, 1)


@evolves(f.TokensRemoved)
def evolve_tokens_removed(state: KingsState, fact: f.TokensRemoved) -> KingsState:
    return _with_tokens(state, fact, -1)


@evolves(f.MonsterGuarded)
def evolve_monster_guarded(state: KingsState, fact: f.MonsterGuarded) -> KingsState:
    return _with(state, replace(state.monsters[fact.seat - 1], guarded=True))


def _placed(state: KingsState, fact: f.PlaceEntered | f.MonsterMoved, place: str) -> KingsState:
    return _with(state, replace(state.monsters[fact.seat - 1], place=place))


@evolves(f.PlaceEntered)
def evolve_place_entered(state: KingsState, fact: f.PlaceEntered) -> KingsState:
    return _placed(state, fact, fact.place)


@evolves(f.MonsterMoved)
def evolve_monster_moved(state: KingsState, fact: f.MonsterMoved) -> KingsState:
    return _placed(state, fact, fact.place)


@evolves(f.PlaceYielded)
def evolve_place_yielded(state: KingsState, fact: f.PlaceYielded) -> KingsState:
    return _with(state, replace(state.monsters[fact.seat - 1], place="outside"))


@evolves(f.PlaceHeld)
def evolve_place_held(state: KingsState, _: f.PlaceHeld) -> KingsState:
    return state


@evolves(f.MonsterReborn)
def evolve_monster_reborn(state: KingsState, fact: f.MonsterReborn) -> KingsState:
    monster = state.monsters[fact.seat - 1]
    reborn = replace(monster, hearts=fact.hearts, points=0, poison=0, shrink=0, place=fact.place)
    return _with(state, reborn)


@evolves(f.MonsterEliminated)
def evolve_monster_eliminated(state: KingsState, fact: f.MonsterEliminated) -> KingsState:
    monster = state.monsters[fact.seat - 1]
    gone = Monster(seat=fact.seat, hearts=0, alive=False, place=fact.place, harm=monster.harm)
    return _with(state, gone)


@evolves(f.CardRevealed)
def evolve_card_revealed(state: KingsState, fact: f.CardRevealed) -> KingsState:
    market = list(state.market)
    market[fact.slot] = Slot(card=fact.card, number=fact.number)
    return replace(
        state,
        market=tuple(market),
        reveals=fact.number,
        deck=_without(state.deck, fact.card),
        tops=state.tops[1:],
    )


@evolves(f.CardsSwept)
def evolve_cards_swept(state: KingsState, fact: f.CardsSwept) -> KingsState:
    market = tuple([Slot() for _ in state.market])
    return replace(state, market=market, discard=state.discard + fact.cards)


@evolves(f.DeckPeeked)
def evolve_deck_peeked(state: KingsState, fact: f.DeckPeeked) -> KingsState:
    tops = state.tops
    if fact.position < len(tops):
        seen = tops[fact.position].card if isinstance(fact.card, Hidden) else fact.card
    else:
        seen = fact.card
    tops = (*tops[: fact.position], TopCard(seen), *tops[fact.position + 1 :])
    return replace(state, tops=tops)


@evolves(f.DeckReshuffled)
def evolve_deck_reshuffled(state: KingsState, fact: f.DeckReshuffled) -> KingsState:
    return replace(state, deck=fact.cards, discard=())


@evolves(f.CardBought)
def evolve_card_bought(state: KingsState, fact: f.CardBought) -> KingsState:
    monster = state.monsters[fact.seat - 1]
    state = _with(state, replace(monster, energy=monster.energy - fact.price))
    if fact.slot >= 0:
        market = list(state.market)
        market[fact.slot] = Slot()
        state = replace(state, market=tuple(market))
    else:
        tops = state.tops[: fact.position] + state.tops[fact.position + 1 :]
        state = replace(state, deck=_without(state.deck, fact.card), tops=tops)
    if not fact.kept:
        return replace(state, discard=(*state.discard, fact.card))
    holding = Holding(
        id=fact.holding, seat=fact.seat, card=fact.card, counter=fact.counter, paid=fact.price
    )
    return replace(state, holdings=(*state.holdings, holding), next_holding=state.next_holding + 1)


@evolves(f.CardTakenOver)
def evolve_card_taken_over(state: KingsState, fact: f.CardTakenOver) -> KingsState:
    buyer = state.monsters[fact.seat - 1]
    state = _with(state, replace(buyer, energy=buyer.energy - fact.price))
    seller = state.monsters[fact.seller - 1]
    state = _with(state, replace(seller, energy=seller.energy + fact.price))
    moved = replace(_holding(state, fact.holding), seat=fact.seat, paid=fact.price)
    rest = tuple([each for each in state.holdings if each.id != fact.holding])
    return replace(state, holdings=(*rest, moved))


@evolves(f.CardDiscarded)
def evolve_card_discarded(state: KingsState, fact: f.CardDiscarded) -> KingsState:
    rest = tuple([each for each in state.holdings if each.id != fact.holding])
    return replace(state, holdings=rest, discard=(*state.discard, fact.card))


@evolves(f.CardUsed)
def evolve_card_used(state: KingsState, fact: f.CardUsed) -> KingsState:
    holding = _holding(state, fact.holding)
    used = replace(holding, used=holding.used + 1)
    return replace(state, holdings=_with_holding(state, used))


@evolves(f.CounterSet)
def evolve_counter_set(state: KingsState, fact: f.CounterSet) -> KingsState:
    holding = replace(_holding(state, fact.holding), counter=fact.counter)
    return replace(state, holdings=_with_holding(state, holding))


@evolves(f.CardCopied)
def evolve_card_copied(state: KingsState, fact: f.CardCopied) -> KingsState:
    holding = _holding(state, fact.holding)
    copy = replace(holding, copies=fact.model, counter=fact.counter, used=0)
    return replace(state, holdings=_with_holding(state, copy))


@evolves(f.ExtraTurnGranted)
def evolve_extra_turn_granted(state: KingsState, fact: f.ExtraTurnGranted) -> KingsState:
    extra = ExtraTurn(seat=fact.seat, cause=fact.cause, fewer_dice=fact.fewer_dice, rank=fact.rank)
    return replace(state, extra_turns=(*state.extra_turns, extra))


@evolves(f.TurnCutShort)
def evolve_turn_cut_short(state: KingsState, _: f.TurnCutShort) -> KingsState:
    return replace(state, cut_short=True)
