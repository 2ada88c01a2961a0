"""What can happen in a King game. Cards reuse these; a new one is rare and says something new.

`cause` is the card or rule that made it happen; `by` the seat that did it (0: nobody).
"""

from __future__ import annotations

from engine.core.visibility import Fact, Public, Seat, Secret
from engine.games.kings.faces import Face
from engine.games.kings.state import ExtraTurn


class FirstPlayerRolled(Fact, frozen=True, tag="first_player_rolled"):
    """A seat rolled for who begins."""

    seat: Public[Seat]
    faces: Public[tuple[Face, ...]]


class FirstPlayerChosen(Fact, frozen=True, tag="first_player_chosen"):
    """This seat begins."""

    seat: Public[Seat]


class TurnBegan(Fact, frozen=True, tag="turn_began"):
    """A turn began: everything that only lasts for a turn is over. It carries what follows it."""

    seat: Public[Seat]
    turn: Public[int]
    cause: Public[str]
    fewer_dice: Public[int]
    round_seat: Public[Seat]
    extra_turns: Public[tuple[ExtraTurn, ...]]


class DiceRolled(Fact, frozen=True, tag="dice_rolled"):
    """The first roll of a turn."""

    seat: Public[Seat]
    faces: Public[tuple[Face, ...]]


class DiceRerolled(Fact, frozen=True, tag="dice_rerolled"):
    """Some of the dice were rolled again; dice are counted from 1."""

    seat: Public[Seat]
    dice: Public[tuple[int, ...]]
    faces: Public[tuple[Face, ...]]
    by: Public[Seat]
    cause: Public[str]


class DieSet(Fact, frozen=True, tag="die_set"):
    """A die was turned to a face."""

    seat: Public[Seat]
    die: Public[int]
    face: Public[Face]
    cause: Public[str]


class DiceThrown(Fact, frozen=True, tag="dice_thrown"):
    """Dice were thrown for a card, apart from the turn's own."""

    seat: Public[Seat]
    faces: Public[tuple[Face, ...]]
    cause: Public[str]


class SmashesAdded(Fact, frozen=True, tag="smashes_added"):
    """Cards add smashes to the result of this turn."""

    seat: Public[Seat]
    amount: Public[int]


class PointsGained(Fact, frozen=True, tag="points_gained"):
    seat: Public[Seat]
    amount: Public[int]
    cause: Public[str]


class PointsLost(Fact, frozen=True, tag="points_lost"):
    seat: Public[Seat]
    amount: Public[int]
    cause: Public[str]


class EnergyGained(Fact, frozen=True, tag="energy_gained"):
    seat: Public[Seat]
    amount: Public[int]
    cause: Public[str]


class EnergyLost(Fact, frozen=True, tag="energy_lost"):
    """Spent or taken away."""

    seat: Public[Seat]
    amount: Public[int]
    cause: Public[str]


class EnergyGiven(Fact, frozen=True, tag="energy_given"):
    """Energy went from one seat to another."""

    seat: Public[Seat]
    receiver: Public[Seat]
    amount: Public[int]
    cause: Public[str]


class HeartsGained(Fact, frozen=True, tag="hearts_gained"):
    seat: Public[Seat]
    amount: Public[int]
    cause: Public[str]


class HeartsLost(Fact, frozen=True, tag="hearts_lost"):
    seat: Public[Seat]
    amount: Public[int]
    by: Public[Seat]
    cause: Public[str]


class HeartsTrimmed(Fact, frozen=True, tag="hearts_trimmed"):
    """The maximum became smaller; hearts above it are gone. Not a loss in the sense of the
    rules.
    """

    seat: Public[Seat]
    amount: Public[int]


class TokensPut(Fact, frozen=True, tag="tokens_put"):
    """token: poison or shrink."""

    seat: Public[Seat]
    token: Public[str]
    amount: Public[int]
    cause: Public[str]


class TokensRemoved(Fact, frozen=True, tag="tokens_removed"):
    seat: Public[Seat]
    token: Public[str]
    amount: Public[int]
    cause: Public[str]


class MonsterGuarded(Fact, frozen=True, tag="monster_guarded"):
    """It loses no hearts for the rest of this turn."""

    seat: Public[Seat]
    cause: Public[str]


class PlaceEntered(Fact, frozen=True, tag="place_entered"):
    seat: Public[Seat]
    place: Public[str]


class PlaceYielded(Fact, frozen=True, tag="place_yielded"):
    """The monster chose to leave after having been wounded."""

    seat: Public[Seat]
    place: Public[str]


class PlaceHeld(Fact, frozen=True, tag="place_held"):
    """The monster chose to stay."""

    seat: Public[Seat]
    place: Public[str]


class MonsterMoved(Fact, frozen=True, tag="monster_moved"):
    """A rule or card moved the monster; nobody chose."""

    seat: Public[Seat]
    place: Public[str]
    cause: Public[str]


class MonsterReborn(Fact, frozen=True, tag="monster_reborn"):
    """It would have been eliminated, but goes on from here, outside and without points or
    tokens.
    """

    seat: Public[Seat]
    hearts: Public[int]
    place: Public[str]
    cause: Public[str]


class MonsterEliminated(Fact, frozen=True, tag="monster_eliminated"):
    seat: Public[Seat]
    by: Public[Seat]
    place: Public[str]


class CardRevealed(Fact, frozen=True, tag="card_revealed"):
    """The top card of the deck lies face up for sale now. number: counts revealed cards."""

    slot: Public[int]
    card: Public[str]
    number: Public[int]


class CardsSwept(Fact, frozen=True, tag="cards_swept"):
    """The cards for sale were discarded."""

    seat: Public[Seat]
    cards: Public[tuple[str, ...]]


class DeckPeeked(Fact, frozen=True, tag="deck_peeked"):
    """The seat looked at a card on top of the deck (position 0: the next one)."""

    seat: Public[Seat]
    position: Public[int]
    card: Secret[str]


class DeckReshuffled(Fact, frozen=True, tag="deck_reshuffled"):
    """The deck was empty; the discard pile is the new deck."""

    cards: Public[tuple[str, ...]]


class CardBought(Fact, frozen=True, tag="card_bought"):
    """A card for sale became the seat's: from a market slot, or from the top of the deck (slot -1,
    position).

    kept: it lies in front of the seat as `holding` with `counter` tokens; else it goes to the
    discard pile.
    """

    seat: Public[Seat]
    card: Public[str]
    price: Public[int]
    slot: Public[int]
    position: Public[int]
    kept: Public[bool]
    holding: Public[int]
    counter: Public[int]


class CardTakenOver(Fact, frozen=True, tag="card_taken_over"):
    """A card in front of another monster was bought from it; its tokens come along."""

    seat: Public[Seat]
    seller: Public[Seat]
    card: Public[str]
    price: Public[int]
    holding: Public[int]


class CardDiscarded(Fact, frozen=True, tag="card_discarded"):
    seat: Public[Seat]
    card: Public[str]
    holding: Public[int]
    cause: Public[str]


class CardUsed(Fact, frozen=True, tag="card_used"):
    """The card was used once more in this turn."""

    seat: Public[Seat]
    card: Public[str]
    holding: Public[int]


class CounterSet(Fact, frozen=True, tag="counter_set"):
    """So many tokens lie on the card now."""

    seat: Public[Seat]
    card: Public[str]
    holding: Public[int]
    counter: Public[int]


class CardCopied(Fact, frozen=True, tag="card_copied"):
    """The holding acts as another one from now on, with fresh tokens."""

    seat: Public[Seat]
    holding: Public[int]
    model: Public[int]
    card: Public[str]
    counter: Public[int]


class ExtraTurnGranted(Fact, frozen=True, tag="extra_turn_granted"):
    seat: Public[Seat]
    cause: Public[str]
    fewer_dice: Public[int]
    rank: Public[int]


class TurnCutShort(Fact, frozen=True, tag="turn_cut_short"):
    """The rest of this turn is not played."""

    seat: Public[Seat]
    cause: Public[str]


KINGS_FACTS: tuple[type[Fact], ...] = (
    CardBought,
    CardCopied,
    CardDiscarded,
    CardRevealed,
    CardTakenOver,
    CardUsed,
    CardsSwept,
    CounterSet,
    DeckPeeked,
    DeckReshuffled,
    DiceRerolled,
    DiceRolled,
    DiceThrown,
    DieSet,
    EnergyGained,
    EnergyGiven,
    EnergyLost,
    ExtraTurnGranted,
    FirstPlayerChosen,
    FirstPlayerRolled,
    HeartsGained,
    HeartsLost,
    HeartsTrimmed,
    MonsterEliminated,
    MonsterGuarded,
    MonsterMoved,
    MonsterReborn,
    PlaceEntered,
    PlaceHeld,
    PlaceYielded,
    PointsGained,
    PointsLost,
    SmashesAdded,
    TokensPut,
    TokensRemoved,
    TurnBegan,
    TurnCutShort,
)
