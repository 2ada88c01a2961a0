"""Standing answers at the terminal: which may be left, which were, and which have answered.

A standing answer is what a seat said about all its questions of a kind; the match keeps it, also
from one sitting to the next.
"""

from collections.abc import Iterable

import msgspec
from rich.console import Console
from rich.text import Text

from diceledger.log.v1 import commit_pb2
from engine import (
    Answered,
    Fact,
    Hidden,
    MatchState,
    Prompt,
    Prompted,
    PromptedInSecret,
    PromptId,
    Seat,
    StandingAnswer,
    describe_prompt,
)
from services.cli.main_options import Locale
from services.cli.render import answer_words
from services.cli.render_words import say
from services.client import MatchUpdate


def answered_unasked(update: MatchUpdate, seat: Seat) -> frozenset[PromptId]:
    """The questions to the seat that its standing answers answered in this commit.

    Whatever is not what the commit's command was about; that of others is hidden, as is who sent
    it, and does not matter here.
    """
    cause = commit_pb2.Cause.FromString(update.commit.cause.body)
    return frozenset(
        fact.prompt_id
        for fact in update.facts
        if isinstance(fact, Answered)
        if fact.seat == seat and fact.prompt_id != cause.prompt_id
    )


class StandingAnswers:
    """The standing answers of one seat, in words."""

    def __init__(self, out: Console, locale: Locale) -> None:
        self._out = out
        self._locale: Locale = locale
        # The newest question of each kind, with the options of the earlier ones.
        self._asked: dict[str, Prompt] = {}
        # Those that were listed last: a number that is typed means one of them.
        self._listed: tuple[StandingAnswer, ...] = ()

    def note(self, facts: Iterable[Fact], seat: Seat) -> None:
        """Remember what the seat is asked: a standing answer itself knows no more than ids."""
        for fact in facts:
            if not isinstance(fact, Prompted | PromptedInSecret) or fact.seat != seat:
                continue
            prompt = fact.prompt
            if isinstance(prompt, Hidden):
                continue
            known = self._asked.get(prompt.kind)
            if known is not None:
                own = {option.id for option in prompt.options}
                earlier = [option for option in known.options if option.id not in own]
                prompt = msgspec.structs.replace(prompt, options=(*prompt.options, *earlier))
            self._asked[prompt.kind] = prompt

    def listed(self, number: int) -> StandingAnswer | None:
        """The one of this number, from 1, in the list that was shown last."""
        return self._listed[number - 1] if 1 <= number <= len(self._listed) else None

    def show(self, match: MatchState, seat: Seat) -> None:
        """Print what was left, and what to type to take it back."""
        self._listed = tuple(each for each in match.standing if each.seat == seat)
        if not self._listed:
            self.say("standing.none")
            return
        self._out.print(Text(f"  {say(self._locale, 'standing.list')}", style="dim"))
        for number, each in enumerate(self._listed, 1):
            self._out.print(
                Text.assemble(
                    "  ", (f"[d{number}]", "bold magenta"), f" {self._words(match, each)}"
                )
            )

    def show_left(self, match: MatchState, standing: StandingAnswer) -> None:
        """Print what is answered from now on."""
        words = say(self._locale, "standing.left", self._words(match, standing))
        self._out.print(Text(f"  {words}", style="dim"))

    def show_dropped(self, match: MatchState, standing: StandingAnswer) -> None:
        """Print what is asked again."""
        title = describe_prompt(match, self._prompt(standing), self._locale).title
        self._out.print(Text(f"  {say(self._locale, 'standing.dropped', title)}", style="dim"))

    def say(self, key: str) -> None:
        """Print why something is not done."""
        self._out.print(Text(f"  {say(self._locale, key)}", style="yellow"))

    def _prompt(self, standing: StandingAnswer) -> Prompt:
        known = self._asked.get(standing.kind)
        return known or Prompt(PromptId(""), standing.seat, standing.kind)

    def _words(self, match: MatchState, standing: StandingAnswer) -> str:
        prompt = self._prompt(standing)
        title = describe_prompt(match, prompt, self._locale).title
        answer = answer_words(match, prompt, standing.answer, self._locale)
        below = say(self._locale, "standing.below", standing.below) if standing.below else ""
        return f"{title} – {answer}{below}"
