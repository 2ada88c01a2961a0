"""One person at one table: what happens is told, what is asked is answered.

Lines are read in others' turns too, for what the person may do at any time; meanwhile the match
goes on, and so does the telling.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from engine import Answer, Seat, StandingAnswer
from services.cli.main_options import Locale
from services.cli.play_ask import (
    Drop,
    Leave,
    Lines,
    Misread,
    Use,
    Wish,
    could_answer,
    help_text,
    read_reply,
    read_wish,
    show_actions,
    show_question,
)
from services.cli.play_standing import StandingAnswers, answered_unasked
from services.cli.render import Narrator
from services.cli.render_words import say
from services.client import Action, ApiError, Client, MatchUpdate, PlayStream, Question

_OVERTAKEN = frozenset({"PROMPT_CLOSED", "MATCH_FINISHED"})
_NOT_NOW = frozenset({"ACTION_NOT_OFFERED", "MATCH_FINISHED"})
_NOT_LEFT = frozenset(
    {"BAD_STANDING_ANSWER", "ILLEGAL_ANSWER", "MATCH_FINISHED", "TOO_MANY_CHANGES"}
)


@dataclass(frozen=True, slots=True)
class _Person:
    """Who sits at the table, and how what they want reaches the match."""

    seat: Seat
    client: Client
    stream: PlayStream


class Table:
    """The person's view of one match."""

    def __init__(
        self,
        out: Console,
        locale: Locale,
        match_id: str,
        again: str,
        lines: Lines | None = None,
    ) -> None:
        """`again` is the command that, with `--match`, goes on with a match that was left; `lines`
        are what the person types (default: standard input).
        """
        self.match_id = match_id
        self._again = again
        self._out = out
        self._locale: Locale = locale
        self._narrator = Narrator(out, locale)
        self._standing = StandingAnswers(out, locale)
        self._lines = lines or Lines()
        # Hash of the newest commit.
        self._seen = b""
        # What happened before one sat down is not told again, only shown.
        self._is_catching_up = False
        # What is asked, and what may be done at any time, as of the newest update; empty once that
        # is overtaken by what the person did, until the next.
        self._questions: list[Question] = []
        self._actions: tuple[Action, ...] = ()
        self._answered: set[str] = set()
        # The actions that were shown last.
        self._shown: tuple[Action, ...] = ()
        # The line that is being read, and those that were read before anything was asked.
        self._typed: asyncio.Task[str | None] | None = None
        self._ahead: deque[str] = deque()
        # The cursor stands behind the mark at which one types.
        self._is_at_mark = False

    async def play(self, you: Client, seat: int) -> None:
        """Play until the match is over or the person leaves, by Ctrl-C also."""
        try:
            is_over = await self._play(you, Seat(seat))
        except asyncio.CancelledError:
            self._out.print()
            self._say_goodbye()
            raise
        if not is_over:
            self._say_goodbye()
            return
        promised = self._narrator.state.commitment.hex()
        noted = say(self._locale, "id.noted", promised, self._seen.hex())
        self._out.print(f"[dim]{noted}[/]", soft_wrap=True)

    async def _play(self, you: Client, seat: Seat) -> bool:
        """Tell and ask; False when the person leaves before the end."""
        self._is_catching_up = not (await you.get(self.match_id)).summary.sequence <= 1
        self._out.print(f"[dim]{help_text(self._locale)}[/]")
        async with you.play() as stream:
            person = _Person(seat, you, stream)
            updates = stream.watch(self.match_id)
            news = asyncio.create_task(_next(updates))
            try:
                while True:
                    if await self._is_said(news):
                        if not await self._hear(person):
                            return False
                        continue
                    update = news.result()
                    if update is None:
                        return True
                    self._see(update, seat)
                    news = asyncio.create_task(_next(updates))
            finally:
                tasks = [news, self._typed] if self._typed is not None else [news]
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _is_said(self, news: "asyncio.Task[MatchUpdate | None]") -> bool:
        """Wait until there is a line to hear, or else news.

        A line comes first: who typed it had not seen the news. Behind lines for later questions a
        wish waits for its turn, except that of somebody at a terminal.
        """
        if self._ahead and self._questions:
            return True
        if self._is_catching_up or (self._ahead and not self._lines.is_terminal):
            await asyncio.wait([news])
            return False
        if self._typed is None:
            self._typed = asyncio.create_task(self._lines.next())
        await asyncio.wait([news, self._typed], return_when=asyncio.FIRST_COMPLETED)
        return self._typed.done()

    # -- telling ----------------------------------------------------------------------------------

    def _see(self, update: MatchUpdate, seat: Seat) -> None:
        self._seen = update.hash
        self._standing.note(update.facts, seat)
        if self._is_catching_up and not update.live:
            self._narrator.skip(update.facts)
            return
        if self._is_at_mark:
            self._out.print()
            self._is_at_mark = False
        if self._is_catching_up:
            self._narrator.skip(update.facts)
            self._out.print()
            self._narrator.show_table()
            if any(each.seat == seat for each in self._narrator.state.standing):
                self._standing.show(self._narrator.state, seat)
            self._is_catching_up = False
        else:
            unasked = answered_unasked(update, seat) - self._answered
            self._narrator.tell(update.facts, unasked)
        self._actions = update.actions
        if not self._narrator.state.actions_of(seat):
            # When it is offered again, it is shown again.
            self._shown = ()
        self._questions = [
            question
            for question in update.questions
            if question.prompt.seat == seat and question.prompt.id not in self._answered
        ]
        self._ask()

    def _ask(self) -> None:
        """Show what is asked, with what may be done at any time; in others' turns that alone, when
        it is new.
        """
        if self._questions:
            question = self._questions[0]
            options = zip(question.prompt.options, question.labels, strict=True)
            labels = [self._narrator.label(option, label) for option, label in options]
            show_question(self._out, question, self._locale, labels)
        if self._actions and (self._questions or self._actions != self._shown):
            self._show_actions()
        self._mark()

    def _show_actions(self) -> None:
        labels = [self._narrator.label(each.option, each.label) for each in self._actions]
        show_actions(self._out, labels, self._locale)
        self._shown = self._actions

    def _mark(self) -> None:
        if self._questions:
            self._out.print("[bold magenta]>[/] ", end="")
            self._is_at_mark = True

    # -- hearing ----------------------------------------------------------------------------------

    async def _hear(self, person: _Person) -> bool:
        """Do what the typed line says; False when the person leaves."""
        line = self._line()
        if not self._questions and line is not None and could_answer(line):
            # Typed ahead: it answers what is asked next.
            self._ahead.append(line)
            return True
        if line is None and self._is_at_mark:
            self._out.print()
        self._is_at_mark = False
        if line is None:
            return False
        if not self._questions:
            return await self._fulfil(person, read_wish(line) or "help")
        match read_reply(self._questions[0].prompt, line, self._locale):
            case Answer() as answer:
                await self._answer(person, answer)
            case Leave() as leave:
                await self._leave(person, leave)
            case Misread() as misread:
                self._out.print(f"  [yellow]{misread.sentence}[/]")
                self._mark()
            case wish:
                return await self._fulfil(person, wish)
        return True

    def _line(self) -> str | None:
        """The line to hear now; None at the end of the input."""
        if self._ahead and self._questions:
            return self._ahead.popleft()
        assert self._typed is not None
        line, self._typed = self._typed.result(), None
        return line

    async def _fulfil(self, person: _Person, wish: Wish | Use | Drop) -> bool:
        match wish:
            case "quit":
                return False
            case "table":
                self._narrator.show_table()
                self._ask()
            case "help":
                self._out.print(f"[dim]{help_text(self._locale)}[/]")
                self._mark()
            case Use(number) if number <= len(self._actions):
                await self._act(person, self._actions[number - 1])
            case Use():
                if not self._actions:
                    self._out.print(f"  [yellow]{say(self._locale, 'nothing_offered')}[/]")
                self._show_actions()
                self._mark()
            case "standing":
                self._standing.show(self._narrator.state, person.seat)
                self._mark()
            case Drop(number):
                await self._drop(person, number)
                self._mark()
        return True

    async def _answer(self, person: _Person, answer: Answer) -> None:
        prompt = self._questions[0].prompt
        try:
            await person.stream.submit(self.match_id, prompt.id, answer)
        except ApiError as error:
            if error.reason == "ILLEGAL_ANSWER":
                self._out.print(f"  [red]{error.message}[/]")
                self._ask()
                return
            # Too late: what happened instead comes with the next update, and what is asked now.
            if error.reason not in _OVERTAKEN:
                raise
        self._answered.add(prompt.id)
        self._questions = []

    async def _leave(self, person: _Person, leave: Leave) -> None:
        """Answer, now and from now on; not now either where it cannot be left."""
        prompt = self._questions[0].prompt
        standing = StandingAnswer(person.seat, prompt.kind, leave.answer, leave.below)
        if not self._narrator.lasts(prompt, leave.answer):
            self._standing.say("standing.passing")
            self._mark()
        elif await self._is_changed(person, standing, leave.answer):
            self._standing.show_left(self._narrator.state, standing)
            # What was left answers the open question as well, but only while below its number.
            await self._answer(person, leave.answer)
        else:
            self._mark()

    async def _drop(self, person: _Person, number: int) -> None:
        standing = self._standing.listed(number)
        if standing is None:
            self._standing.show(self._narrator.state, person.seat)
        elif await self._is_changed(person, standing, None):
            self._standing.show_dropped(self._narrator.state, standing)

    async def _is_changed(
        self, person: _Person, standing: StandingAnswer, answer: Answer | None
    ) -> bool:
        """Leave the answer behind, or None; False, with the reason shown, when that is refused."""
        below = 0 if answer is None else standing.below
        try:
            await person.client.set_standing(self.match_id, standing.kind, answer, below=below)
        except ApiError as error:
            if error.reason not in _NOT_LEFT:
                raise
            self._out.print(Text(f"  {error.message}", style="yellow"))
            return False
        return True

    async def _act(self, person: _Person, action: Action) -> None:
        try:
            await person.stream.take_action(self.match_id, action.option.id)
        except ApiError as error:
            if error.reason not in _NOT_NOW:
                raise
            self._out.print(f"  [yellow]{error.message}[/]")
        # What is asked and offered now comes with the next update.
        self._questions, self._actions = [], ()

    def _say_goodbye(self) -> None:
        words = say(self._locale, "kept", self._again, self.match_id)
        self._out.print(words, markup=False)


async def _next(updates: AsyncIterator[MatchUpdate]) -> MatchUpdate | None:
    """The next update; None after the last."""
    return await anext(updates, None)
