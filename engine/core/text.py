"""Words for people: questions, options and facts in English and Chinese.

A game's phrases are looked up by these keys, each with an English and a Chinese template:

* ``prompt.<kind>``   the question; {seat} is who is asked, {cause} what asks
* ``option.<id>``     an option without a subject, or whose subject is the key itself
* ``label.<head>``    an option whose subject is "head:a:b": {0}, {1} as words, {s0}, {s1} as seats
* ``fact.<tag>``      one line for a fact: the names of its fields; a missing key means: not worth a
  line. ``fact.<tag>.<cause>`` and ``fact.<tag>.*`` go before it for facts with that (any) cause.
  {amount:point|points} gives "1 point" or "3 points".
* ``word.<value>``    any string value inside a fact or a subject (faces, places, causes)

Card ids need no key: they are looked up in the game's decks, and so are the questions of a card
("wings.die" is the question "die" of the card wings).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from string import Formatter
from typing import Final, Literal, cast, get_args, get_type_hints

import msgspec

from engine.core.catalogue import find_game
from engine.core.game import AnyGame
from engine.core.prompts import Prompt
from engine.core.state import MatchState
from engine.core.visibility import Fact, Hidden, Seat

_CORE_PHRASES: Final[Mapping[str, tuple[str, str]]] = {
    "fact.match_created": ("A lobby for {seats} opens.", "为 {seats} 人开设了房间。"),
    "fact.seat_taken": ("{name} takes seat {seat_number}.", "{name} 坐到 {seat_number} 号位。"),
    "fact.entropy_revealed": (
        "{seat} reveals its share in the dice.",
        "{seat} 公布自己的随机数。",
    ),
    "fact.match_started": ("The match begins.", "对局开始。"),
    "fact.seed_revealed": ("The secret seed is revealed.", "公开随机种子。"),
    "fact.match_ended": ("The match is over. Winners: {winners}.", "对局结束。胜者：{winners}。"),
    "word.abandoned": ("abandoned", "无人继续"),
    "word.nobody": ("nobody", "无人"),
    "word.hidden": ("something hidden", "隐藏内容"),
    "label.seat": ("{s0}", "{s0}"),
    "label.card": ("{0}", "{0}"),
    "label.use": ("use {0}", "使用{0}"),
    "option.pass": ("pass", "不使用"),
    "option.yes": ("yes", "是"),
    "option.no": ("no", "否"),
}


class PromptText(msgspec.Struct, frozen=True):
    """A question for people: its title and one label per option, in the prompt's order."""

    title: str
    option_labels: tuple[str, ...]


class Words:
    """Look-up of one match's words in one language."""

    def __init__(self, game: AnyGame, match: MatchState | None, locale: str) -> None:
        self._game = game
        self._match = match
        self._column = 1 if locale.startswith("zh") else 0

    def phrase(self, key: str) -> str | None:
        """The template for a key, or None."""
        pair = self._game.phrases.get(key) or _CORE_PHRASES.get(key)
        return None if pair is None else pair[self._column]

    def question(self, kind: str) -> str | None:
        """The template for a kind of prompt: a card's own, or the game's."""
        card_id, _, name = kind.partition(".")
        card = self._game.cards.get(card_id)
        if card is not None and name in card.asks:
            return card.asks[name][self._column]
        return self.phrase(f"prompt.{kind}")

    def line(self, tag: str, cause: str) -> str | None:
        """The template for a fact: the most special one there is."""
        if cause:
            special = self.phrase(f"fact.{tag}.{cause}") or self.phrase(f"fact.{tag}.*")
            if special is not None:
                return special
        return self.phrase(f"fact.{tag}")

    def word(self, value: str) -> str:
        """A card's name, a word of the game, or the value itself."""
        card = self._game.cards.get(value)
        if card is not None:
            return card.name_zh if self._column else card.name
        found = self.phrase(f"word.{value}")
        return value.replace("_", " ") if found is None else found

    def seat(self, seat: int) -> str:
        """The name of who sits there."""
        if not seat:
            return self.word("nobody")
        return f"#{seat}" if self._match is None else self._match.name_of(Seat(seat))

    def join(self, parts: list[str]) -> str:
        """Several words as a list."""
        if not parts:
            return self.word("nothing")
        return ("、" if self._column else ", ").join(parts)

    def label(self, option_id: str, subject: str) -> str:
        """What an option means."""
        whole = self.phrase(f"option.{subject or option_id}")
        if whole is not None:
            return whole
        head, *parts = (subject or option_id).split(":")
        template = self.phrase(f"label.{head}")
        if template is None:
            return self.word(subject or option_id)
        seats = {
            f"s{index}": self.seat(int(part))
            for index, part in enumerate(parts)
            if part.isdecimal()
        }
        return template.format(*(self.word(part) for part in parts), **seats)


def describe_prompt(where: MatchState | AnyGame, prompt: Prompt, locale: str = "en") -> PromptText:
    """The question in words. `where`: the match (then seats have names) or only the game."""
    match = where if isinstance(where, MatchState) else None
    game = find_game(where.game) if isinstance(where, MatchState) else where
    words = Words(game, match, locale)
    template = words.question(prompt.kind)
    cause = words.word(prompt.cause) if prompt.cause else ""
    if template is None:
        title = words.word(prompt.kind)
    else:
        title = template.format(
            seat=words.seat(prompt.seat), cause=cause, low=prompt.low, high=prompt.high
        )
    labels = tuple(words.label(option.id, option.subject) for option in prompt.options)
    return PromptText(title, labels)


def describe_fact(
    match: MatchState, fact: Fact, locale: str = "en", *, game: AnyGame | None = None
) -> str:
    """One line about a fact, redacted or not; "" for facts that people need not read."""
    words = Words(game or find_game(match.game), match, locale)
    tag = str(type(fact).__struct_config__.tag)
    template = words.line(tag, getattr(fact, "cause", ""))
    if template is None:
        return ""
    fields: dict[str, str] = {}
    kinds = _kinds(type(fact))
    for name in _names(template):
        if name == "seat_number":
            fields[name] = str(getattr(fact, "seat", ""))
        else:
            fields[name] = _shown(words, kinds[name], getattr(fact, name))
    return template.format(**fields)


_Kind = Literal["seat", "seats", "text", "texts", "other"]


@cache
def _names(template: str) -> tuple[str, ...]:
    return tuple(name for _, name, _, _ in Formatter().parse(template) if name)


@cache
def _kinds(fact_type: type[Fact]) -> dict[str, _Kind]:
    return {name: _kind(hint) for name, hint in get_type_hints(fact_type).items()}


def _kind(hint: object) -> _Kind:
    parts = get_args(hint)
    known = {"Seat": "seat", "str": "text"}
    name = getattr(hint, "__name__", "")
    if hint is Seat or hint is str:
        return cast("_Kind", known[name])
    if parts and all(isinstance(part, str) for part in parts):
        return "text"
    for part in parts:
        inner = "other" if part is Ellipsis else _kind(part)
        if inner in ("seat", "text"):
            tupled = getattr(hint, "__origin__", None) is tuple
            return cast("_Kind", inner + "s" if tupled else inner)
        if inner in ("seats", "texts"):
            return inner
    return "other"


def _shown(words: Words, kind: _Kind, value: object) -> str:
    if isinstance(value, Hidden):
        return words.word("hidden")
    if kind == "seat":
        return words.seat(cast("int", value))
    if kind == "seats":
        seats = cast("tuple[int, ...]", value)
        return words.join([words.seat(each) for each in seats]) if seats else words.word("nobody")
    if kind == "text":
        return words.word(cast("str", value))
    if kind == "texts":
        return words.join([words.word(each) for each in cast("tuple[str, ...]", value)])
    if isinstance(value, tuple):
        return words.join([str(each) for each in value])
    return _Count(value) if isinstance(value, int) else str(value)


class _Count(str):
    """A number that knows singular and plural: format spec "point|points"."""

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        one, separator, many = spec.partition("|")
        return f"{self} {one if self == '1' else many}" if separator else str(self)
