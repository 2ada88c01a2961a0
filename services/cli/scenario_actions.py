"""Actions at any time in the words of a scenario: which card does a seat use, who may use which?

A card is called by its short name; a copy by the name of the card it copies, or as "mimic".
"""

from collections.abc import Sequence
from typing import Final

from engine import MatchState, Option, Seat
from engine.core.position import letter_of
from services.cli.scenario_model import Action, MayUse
from services.cli.scenario_text import ScenarioError, Text

_USE: Final = "use:"


def action_of(match: MatchState, step: Action, situation: str) -> str:
    """The id of the action that is meant. Raises ScenarioError when it is not offered."""
    found = _find(match, match.actions_of(step.seat), step.card)
    if found is not None:
        return found.id
    who = letter_of(step.seat)
    message = f"{who} cannot use {step.card.text} here: {_offers(match)}; {situation}"
    raise ScenarioError(step.card.line, message)


def refused_action(match: MatchState, step: Action) -> str:
    """The id under which an action would be offered, also to somebody who does not own the card."""
    assert match.table is not None
    holdings = match.table.holdings
    cards = {each.id: each.card for each in holdings}
    own_first = sorted(holdings, key=lambda each: each.seat != step.seat)
    for holding in own_first:
        if step.card.text in (holding.card, cards.get(holding.copies)):
            return f"{_USE}{holding.id}"
    return f"{_USE}0"


def check_may_use(match: MatchState, step: MayUse) -> None:
    """Exactly these cards may be used now. Raises ScenarioError."""
    left = {each.seat: list(each.actions) for each in match.actions}
    for seat, card in step.cards:
        found = _find(match, left.get(seat, ()), card)
        if found is None:
            message = f"{letter_of(seat)} may not use {card.text}: {_offers(match)}"
            raise ScenarioError(card.line, message)
        left[seat].remove(found)
    more = [_words(match, seat, actions) for seat, actions in left.items() if actions]
    if more:
        raise ScenarioError(step.line, f"{', '.join(more)} too")


def _find(match: MatchState, offered: Sequence[Option], card: Text) -> Option | None:
    """What a word means: rather the card itself than a copy of it."""
    fitting = [each for each in offered if card.text in _names(match, each)]
    itself = (each for each in fitting if _names(match, each)[0] == card.text)
    return next(itself, fitting[0] if fitting else None)


def _names(match: MatchState, action: Option) -> tuple[str, ...]:
    """The card that lies there, and what it counts as."""
    number = action.id.removeprefix(_USE)
    holdings = () if match.table is None else match.table.holdings
    here = next((each.card for each in holdings if str(each.id) == number), "")
    return (here, action.subject.removeprefix(_USE))


def _offers(match: MatchState) -> str:
    """What everybody may use, for messages."""
    words = [_words(match, each.seat, each.actions) for each in match.actions]
    return ", ".join(words) if words else "nobody may use anything"


def _words(match: MatchState, seat: Seat, actions: Sequence[Option]) -> str:
    cards: list[str] = []
    for action in actions:
        here, counts_as = _names(match, action)
        cards.append(here if here == counts_as else f"{here} (as {counts_as})")
    return f"{letter_of(seat)} may use {' and '.join(cards)}"
