"""One person at one table: what happens is told, what is asked is answered.

Lines are read while something is asked, and also in others' turns while there is something that
the person may do at any time; meanwhile the match goes on, and so does the telling.
"""

import asyncio
from collections.abc import AsyncIterator

from rich.console import Console

from engine import Answer, Seat
from services.cli.main_options import Locale
from services.cli.play_ask import (
    Lines,
    Misread,
    Use,
    Wish,
    could_answer,
    help_text,
    nothing_offered,
    read_reply,
    read_wish,
    show_actions,
    show_question,
)
from services.cli.render import Narrator
from services.cli.render_words import say
from services.client import Action, ApiError, Client, MatchUpdate, PlayStream, Question

_OVERTAKEN = frozenset({"PROMPT_CLOSED", "MATCH_FINISHED"})
_NOT_NOW = frozenset({"ACTION_NOT_OFFERED", "MATCH_FINISHED"})


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
        # The line that is being read, or that was read before anything was asked.
        self._typed: asyncio.Task[str | None] | None = None
        self._is_ahead = False
        # The cursor stands behind the mark at which one types.
        self._is_at_mark = False

    async def play(self, you: Client, seat: int) -> None:
        """Play until the match is over or the person leaves, by Ctrl-C also."""
        try:
            is_over = await self._play(you, seat)
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

    async def _play(self, you: Client, seat: int) -> bool:
        """Tell and ask; False when the person leaves before the end."""
        self._is_catching_up = not (await you.get(self.match_id)).summary.sequence <= 1
        self._out.print(f"[dim]{help_text(self._locale)}[/]")
        async with you.play() as stream:
            updates = stream.watch(self.match_id)
            news = asyncio.create_task(_next(updates))
            try:
                while True:
                    if await self._is_said(news):
                        if not await self._hear(stream):
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

        A line comes first: who typed it had not seen the news.
        """
        if not (self._questions or (self._actions and not self._is_ahead)):
            await asyncio.wait([news])
            return False
        if self._typed is None:
            self._typed = asyncio.create_task(self._lines.next())
        await asyncio.wait([news, self._typed], return_when=asyncio.FIRST_COMPLETED)
        return self._typed.done()

    # -- telling ----------------------------------------------------------------------------------

    def _see(self, update: MatchUpdate, seat: int) -> None:
        self._seen = update.hash
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
            self._is_catching_up = False
        else:
            self._narrator.tell(update.facts)
        self._actions = update.actions
        if not self._narrator.state.actions_of(Seat(seat)):
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

    async def _hear(self, stream: PlayStream) -> bool:
        """Do what the typed line says; False when the person leaves."""
        assert self._typed is not None
        line = self._typed.result()
        if not self._questions and (line is None or could_answer(line)):
            # Typed ahead: it answers what is asked next.
            self._is_ahead = True
            return True
        self._typed, self._is_ahead, self._is_at_mark = None, False, False
        if line is None:
            self._out.print()
            return False
        if not self._questions:
            return await self._fulfil(stream, read_wish(line) or "help")
        match read_reply(self._questions[0].prompt, line, self._locale):
            case Answer() as answer:
                await self._answer(stream, answer)
            case Misread() as misread:
                self._out.print(f"  [yellow]{misread.sentence}[/]")
                self._mark()
            case wish:
                return await self._fulfil(stream, wish)
        return True

    async def _fulfil(self, stream: PlayStream, wish: Wish | Use) -> bool:
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
                await self._act(stream, self._actions[number - 1])
            case Use():
                if not self._actions:
                    self._out.print(f"  [yellow]{nothing_offered(self._locale)}[/]")
                self._show_actions()
                self._mark()
        return True

    async def _answer(self, stream: PlayStream, answer: Answer) -> None:
        prompt = self._questions[0].prompt
        try:
            await stream.submit(self.match_id, prompt.id, answer)
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

    async def _act(self, stream: PlayStream, action: Action) -> None:
        try:
            await stream.take_action(self.match_id, action.option.id)
        except ApiError as error:
            if error.reason not in _NOT_NOW:
                raise
            self._out.print(f"  [yellow]{error.message}[/]")
        # What is asked and offered now comes with the next update.
        self._questions, self._actions = [], ()

    def _say_goodbye(self) -> None:
        self._out.print(f"The match is kept: {self._again} --match {self.match_id}")


async def _next(updates: AsyncIterator[MatchUpdate]) -> MatchUpdate | None:
    """The next update; None after the last."""
    return await anext(updates, None)
