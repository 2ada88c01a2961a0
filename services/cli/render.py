"""Tells a match to a person: facts in, lines out, whether live, replayed or read from a file.

What every game has is told here; how a game's table and dice look is said by its own module
(`render_kings`). Texts of facts come from the engine, in the match's language.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from engine import (
    ActionTaken,
    Answer,
    Answered,
    EntropyRevealed,
    Fact,
    Hidden,
    MatchCreated,
    MatchEnded,
    MatchState,
    Option,
    Prompt,
    PromptId,
    SeatTaken,
    SeedRevealed,
    Words,
    describe_fact,
    describe_prompt,
    empty_state,
    evolve,
    find_game,
)
from services.cli.main_options import Locale
from services.cli.render_kings import KingsLook
from services.cli.render_words import say

_INDENT = 2
# Left free at the right edge.
_MARGIN = 5


class Look(Protocol):
    """How one game looks. `before` and `after` are the match around the fact."""

    @property
    def legend(self) -> str:
        """What the symbols mean, in a line; "" where there are none."""
        ...

    def show(
        self, before: MatchState, after: MatchState, fact: Fact
    ) -> Sequence[RenderableType] | None:
        """What to print for a fact; None: the engine's line for it."""
        ...

    def mark(self, fact: Fact) -> tuple[str, str]:
        """Symbol and style in front of the engine's line for a fact."""
        ...

    def aside(self, state: MatchState, fact: Fact) -> str:
        """What to add, dimmed, behind the engine's line."""
        ...

    def pending(self, state: MatchState) -> Sequence[RenderableType]:
        """What was held back to be told together; called before anything else is printed."""
        ...

    def label(self, state: MatchState, option: Option, label: str) -> Text:
        """An option of a question, for a person who may not know what it is."""
        ...

    def lasts(self, option: Option) -> bool:
        """Whether the option's id will mean the same when such a question is asked again."""
        ...

    def table(self, state: MatchState) -> RenderableType | None:
        """The whole table at a glance."""
        ...


class PlainLook:
    """The look of a game that has none of its own."""

    legend = ""

    def show(
        self, before: MatchState, after: MatchState, fact: Fact
    ) -> Sequence[RenderableType] | None:
        """Always the engine's line."""
        return None

    def mark(self, fact: Fact) -> tuple[str, str]:
        """A dot."""
        return ("·", "dim")

    def aside(self, state: MatchState, fact: Fact) -> str:
        """Nothing."""
        return ""

    def pending(self, state: MatchState) -> Sequence[RenderableType]:
        """Nothing."""
        return []

    def label(self, state: MatchState, option: Option, label: str) -> Text:
        """The label itself."""
        return Text(label)

    def lasts(self, option: Option) -> bool:
        """Nothing is known to the contrary."""
        return True

    def table(self, state: MatchState) -> RenderableType | None:
        """None is known."""
        return None


def look_of(game: str, locale: Locale) -> Look:
    """The look of a game."""
    if game.startswith("king_of_"):
        return KingsLook(locale)
    return PlainLook()


def answer_words(match: MatchState, prompt: Prompt, answer: Answer, locale: Locale) -> str:
    """An answer in the words of its question's options."""
    if answer.number is not None:
        return str(answer.number)
    if answer.amounts:
        return " ".join(str(amount) for amount in answer.amounts)
    if not answer.picks:
        return say(locale, "none")
    known = describe_prompt(match, prompt, locale).option_labels
    labels = {option.id: label for option, label in zip(prompt.options, known, strict=True)}
    words = Words(find_game(match.game), match, locale)
    return words.join(
        [labels.get(pick) or words.phrase(f"option.{pick}") or pick for pick in answer.picks]
    )


class Narrator:
    """Prints what happens, fact by fact, and keeps the state that the facts give."""

    def __init__(self, out: Console, locale: Locale, *, lobby: bool = True) -> None:
        """`lobby`: tell also who sits down, before the first turn."""
        self.state = empty_state()
        self._out = out
        self._locale: Locale = locale
        self._lobby = lobby
        self._look: Look = PlainLook()

    def tell(self, facts: Iterable[Fact], unasked: Collection[PromptId] = ()) -> None:
        """Take over the facts of the next commit and print those that are worth a line.

        `unasked`: questions that a standing answer of the person who reads this has answered.
        """
        for fact in facts:
            before = self.state
            self.state = evolve(before, fact)
            if isinstance(fact, Answered) and fact.prompt_id in unasked:
                parts = self._unasked(before, fact)
            else:
                parts = self._parts(before, fact)
            if parts:
                self._print(self._look.pending(before))
                self._print(parts)
        self._print(self._look.pending(self.state))

    def _print(self, parts: Iterable[RenderableType]) -> None:
        for part in parts:
            self._out.print(part)

    def skip(self, facts: Iterable[Fact]) -> None:
        """Take over facts without printing them."""
        for fact in facts:
            before = self.state
            self.state = evolve(before, fact)
            if isinstance(fact, MatchCreated):
                self._look = look_of(fact.game, self._locale)

    def label(self, option: Option, label: str) -> Text:
        """An option of a question as the game shows it."""
        return self._look.label(self.state, option, label)

    def lasts(self, prompt: Prompt, answer: Answer) -> bool:
        """Whether an answer will mean the same when such a question is asked again."""
        # Amounts go by the order of the options, which may be others then.
        picked = [option for option in prompt.options if option.id in answer.picks]
        return not answer.amounts and all(self._look.lasts(option) for option in picked)

    def show_table(self) -> None:
        """Print the table as it is now."""
        table = self._look.table(self.state)
        if table is not None:
            self._out.print(Padding(table, (0, 0, 0, _INDENT), expand=False))

    def _parts(self, before: MatchState, fact: Fact) -> Sequence[RenderableType]:
        match fact:
            case MatchCreated():
                self._look = look_of(fact.game, self._locale)
                return []
            case SeatTaken() | EntropyRevealed() if not self._lobby:
                return []
            case SeedRevealed():
                return []
            case MatchEnded():
                return self._ending(fact)
            case ActionTaken():
                return [self._marked(fact, self._acting(before, fact))]
            case _:
                shown = self._look.show(before, self.state, fact)
                if shown is not None:
                    return shown
                line = describe_fact(self.state, fact, self._locale)
                if not line:
                    return []
                return [self._marked(fact, line)]

    def _unasked(self, before: MatchState, fact: Answered) -> Sequence[RenderableType]:
        """What was asked and answered while the person did not have to look."""
        prompt = next((each for each in before.prompts if each.id == fact.prompt_id), None)
        if prompt is None or isinstance(fact.answer, Hidden):
            return []
        title = describe_prompt(before, prompt, self._locale).title
        answer = answer_words(before, prompt, fact.answer, self._locale)
        return [self._marked(fact, say(self._locale, "standing.answered", title, answer))]

    def _acting(self, before: MatchState, fact: ActionTaken) -> str:
        """Who acts out of the order of questions, and how: a fact knows no more than an id."""
        offered = before.actions_of(fact.seat)
        subject = next((each.subject for each in offered if each.id == fact.action), "")
        words = Words(find_game(before.game), before, self._locale)
        label = words.label(fact.action, subject)
        return say(self._locale, "acts", before.name_of(fact.seat), label)

    def _ending(self, fact: MatchEnded) -> Sequence[RenderableType]:
        winners = [self.state.name_of(seat) for seat in fact.winners]
        if winners:
            text = say(self._locale, "winners", say(self._locale, "and").join(winners))
        else:
            text = say(self._locale, "nobody_wins")
        reason = say(self._locale, f"reason.{fact.reason}") if fact.reason else ""
        parts: list[RenderableType] = [Text()]
        table = self._look.table(self.state)
        if table is not None:
            parts += [Padding(table, (0, 0, 0, _INDENT), expand=False), Text()]
        parts.append(Text.assemble(("  ★ ", "bold yellow"), (text, "bold"), f"  {reason}"))
        return parts

    def _marked(self, fact: Fact, line: str) -> RenderableType:
        """The engine's line between its symbol and what it leads to."""
        symbol, style = self._look.mark(fact)
        text = Text.assemble((symbol, style), " ", line)
        aside = self._look.aside(self.state, fact)
        if text.cell_len + cell_len(aside) + _MARGIN < self._out.width:
            text.append(f"  {aside}" if aside else "", style="dim")
            return Padding(text, (0, 0, 0, _INDENT), expand=False)
        below = Padding(Text(aside, style="dim"), (0, 0, 0, _INDENT), expand=False)
        return Padding(Group(text, below), (0, 0, 0, _INDENT), expand=False)
