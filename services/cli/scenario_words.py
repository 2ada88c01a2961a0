"""Answers and offers in the words of a scenario: which option does a word mean?

An option is called by its id, its subject ("ware:wings:6"), a part of its subject ("wings",
"smash"), its English label ("yield Tokyo"), a die by its number, a card in front of a monster as
"wings of B".
"""

from collections.abc import Sequence
from dataclasses import dataclass

from engine import Answer, MatchState, Option, Prompt, Seat, describe_prompt
from engine.core.position import LETTERS, letter_of
from services.cli.scenario_model import is_nothing
from services.cli.scenario_text import (
    Entries,
    Part,
    ScenarioError,
    Sequel,
    Text,
    entries_of,
    items_of,
    near,
    number_of,
    text_of,
    words_of,
)

_ALL = "all"
_BOUNDS = ("at_least", "at_most")


@dataclass(frozen=True, slots=True)
class Offer:
    """An option with everything that it may be called."""

    option: Option
    label: str
    names: frozenset[str]


def offers_of(match: MatchState, prompt: Prompt) -> list[Offer]:
    """The options of a prompt in the order of the prompt."""
    labels = describe_prompt(match, prompt, "en").option_labels
    return [
        Offer(option, label, frozenset(_names(option, label)))
        for option, label in zip(prompt.options, labels, strict=True)
    ]


def _names(option: Option, label: str) -> list[str]:
    head, *parts = option.subject.split(":")
    names = [option.id, option.subject, label, *(part for part in parts if not part.isdecimal())]
    if option.id.startswith("die:"):
        names.append(option.id.removeprefix("die:"))
    if head == "holding":
        names.append(f"{parts[0]} of {letter_of(Seat(int(parts[1])))}")
    return [_plain(name) for name in names]


def _plain(name: str) -> str:
    """Lower case, and nothing but letters, digits and single spaces."""
    return " ".join("".join(c if c.isalnum() else " " for c in name.lower()).split())


def shown(prompt: Prompt, offers: Sequence[Offer]) -> str:
    """What a prompt offers, for messages."""
    if prompt.form == "number":
        return f"a number from {prompt.low} to {prompt.high}"
    words = [f"{_short(each)} ({each.label})" for each in offers]
    return ", ".join(words) if words else "nothing"


def _short(offer: Offer) -> str:
    parts = [part for part in offer.option.subject.split(":")[1:] if not part.isdecimal()]
    if offer.option.subject.startswith("die:"):
        return offer.option.id.removeprefix("die:")
    return parts[0] if parts else offer.option.id


# -- answers ---------------------------------------------------------------------------------------


def answer_of(match: MatchState, prompt: Prompt, part: Part, *, raw: bool = False) -> Answer:
    """The answer that a part means. raw: words that match nothing are kept, to be refused."""
    if prompt.form == "number":
        return Answer(number=number_of(part, f"the answer to {prompt.kind}"))
    offers = offers_of(match, prompt)
    if prompt.form == "allocate":
        return Answer(amounts=_amounts(prompt, offers, part, raw=raw))
    return Answer(picks=_picks(prompt, offers, part, raw=raw))


def _picks(prompt: Prompt, offers: Sequence[Offer], part: Part, *, raw: bool) -> tuple[str, ...]:
    if is_nothing(part):
        return ()
    if isinstance(part, Text) and part.text == _ALL:
        return tuple(each.option.id for each in offers)
    picked: list[str] = []
    for word in _alternatives(offers, part):
        left = [each for each in offers if each.option.id not in picked]
        found = _find(prompt, left, word, raw=raw)
        picked.append(word.text if found is None else found.option.id)
    return tuple(picked)


def _alternatives(offers: Sequence[Offer], part: Part) -> list[Text]:
    """One text may be one option ("wings of B") or several words ("1 2 4")."""
    if isinstance(part, Text):
        whole = _plain(part.text)
        if any(whole in each.names for each in offers) or " " not in part.text.strip():
            return [Text(part.line, part.text)]
    if isinstance(part, Sequel):
        items = items_of(part, "the answer")
        return [Text(item.line, text_of(item, "an option")) for item in items]
    return words_of(part, "the answer")


def _find(prompt: Prompt, offers: Sequence[Offer], word: Text, *, raw: bool) -> Offer | None:
    """The option that a word means; None if there is none and raw words are allowed."""
    wanted = _plain(word.text)
    found = [each for each in offers if wanted in each.names]
    if not found:
        if raw:
            return None
        names = tuple(dict.fromkeys(_short(each) for each in offers))
        raise ScenarioError(
            word.line, f"{prompt.kind} does not offer {word.text!r}{near(word.text, names)}"
        )
    subjects = {each.option.subject for each in found}
    if len(subjects) > 1 and not all(subject.startswith("die:") for subject in subjects):
        which = " or ".join(f"{each.option.id} ({each.label})" for each in found)
        raise ScenarioError(word.line, f"{word.text!r} may mean {which}: say which")
    return found[0]


def _amounts(prompt: Prompt, offers: Sequence[Offer], part: Part, *, raw: bool) -> tuple[int, ...]:
    amounts = [0] * len(offers)
    if is_nothing(part):
        return tuple(amounts)
    for key, value in entries_of(part, f"the answer to {prompt.kind}"):
        amount = number_of(value, key.text)
        found = _find(prompt, offers, key, raw=raw)
        if found is None:
            amounts.append(amount)
        else:
            amounts[offers.index(found)] = amount
    return tuple(amounts)


# -- what is asked ---------------------------------------------------------------------------------


def check_offered(match: MatchState, prompt: Prompt, part: Part) -> None:
    """The prompt offers exactly what is written. Raises ScenarioError."""
    offers = offers_of(match, prompt)
    if isinstance(part, Entries):
        _check_bounds(prompt, part)
        if prompt.form == "allocate":
            _check_limits(prompt, offers, part)
        elif (options := part.get("options")) is not None:
            _check_options(prompt, offers, options)
        return
    if prompt.form != "select":
        raise ScenarioError(part.line, f"{prompt.kind} asks for amounts: write a map")
    _check_options(prompt, offers, part)


def _check_bounds(prompt: Prompt, part: Entries) -> None:
    for key, actual in zip(_BOUNDS, (prompt.low, prompt.high), strict=True):
        written = part.get(key)
        if written is not None and number_of(written, key) != actual:
            raise ScenarioError(written.line, f"{prompt.kind}: {key} is {actual}")


def _check_options(prompt: Prompt, offers: Sequence[Offer], part: Part) -> None:
    left = list(offers)
    for word in [] if is_nothing(part) else _items(part):
        found = _find(prompt, left, word, raw=False)
        assert found is not None, "raw words are not allowed here"
        left.remove(found)
    if left:
        more = ", ".join(f"{_short(each)} ({each.label})" for each in left)
        raise ScenarioError(part.line, f"{prompt.kind} also offers {more}")


def _items(part: Part) -> list[Text]:
    return [Text(item.line, text_of(item, "an option")) for item in items_of(part, "the options")]


def _check_limits(prompt: Prompt, offers: Sequence[Offer], part: Entries) -> None:
    left = list(offers)
    for key, value in part.entries:
        if key.text in _BOUNDS:
            continue
        found = _find(prompt, left, key, raw=False)
        assert found is not None, "raw words are not allowed here"
        limit = prompt.limits[offers.index(found)]
        if number_of(value, key.text) != limit:
            raise ScenarioError(value.line, f"{prompt.kind}: at most {limit} for {key.text}")
        left.remove(found)
    if left:
        more = ", ".join(_short(each) for each in left)
        raise ScenarioError(part.line, f"{prompt.kind} also offers {more}")


def letters_of(seats: Sequence[Seat]) -> str:
    """Seats as letters, for messages."""
    return ", ".join(LETTERS[seat - 1] for seat in seats) if seats else "nobody"
