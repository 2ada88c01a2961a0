"""One person at one table: what happens is told, what is asked is answered."""

import asyncio

from rich.console import Console

from engine import Answer
from services.cli.main_options import Locale
from services.cli.play_ask import Lines, Misread, help_text, read_reply, show_question
from services.cli.render import Narrator
from services.cli.render_words import say
from services.client import ApiError, Client, PlayStream, Question

_OVERTAKEN = frozenset({"PROMPT_CLOSED", "MATCH_FINISHED"})


class Table:
    """The person's view of one match."""

    def __init__(self, out: Console, locale: Locale, match_id: str, again: str) -> None:
        """`again` is the command that, with `--match`, goes on with a match that was left."""
        self.match_id = match_id
        self._again = again
        self._out = out
        self._locale: Locale = locale
        self._narrator = Narrator(out, locale)
        self._lines = Lines()
        # Hash of the newest commit.
        self._seen = b""

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
        answered: set[str] = set()
        # What happened before one sat down is not told again, only shown.
        is_catching_up = not (await you.get(self.match_id)).summary.sequence <= 1
        self._out.print(f"[dim]{help_text(self._locale)}[/]")
        async with you.play() as stream:
            async for update in stream.watch(self.match_id):
                self._seen = update.hash
                if is_catching_up and not update.live:
                    self._narrator.skip(update.facts)
                    continue
                if is_catching_up:
                    self._narrator.skip(update.facts)
                    self._out.print()
                    self._narrator.show_table()
                    is_catching_up = False
                else:
                    self._narrator.tell(update.facts)
                for question in update.questions:
                    if question.prompt.seat != seat or question.prompt.id in answered:
                        continue
                    answered.add(question.prompt.id)
                    if not await self._answer(stream, question):
                        return False
        return True

    async def _answer(self, stream: PlayStream, question: Question) -> bool:
        """Ask until the server takes the answer; False when the person leaves."""
        while True:
            answer = await self._ask(question)
            if answer is None:
                return False
            try:
                await stream.submit(self.match_id, question.prompt.id, answer)
            except ApiError as error:
                if error.reason in _OVERTAKEN:
                    return True
                if error.reason != "ILLEGAL_ANSWER":
                    raise
                self._out.print(f"  [red]{error.message}[/]")
            else:
                return True

    async def _ask(self, question: Question) -> Answer | None:
        self._show(question)
        while True:
            self._out.print("[bold magenta]>[/] ", end="")
            line = await self._lines.next()
            if line is None:
                self._out.print()
                return None
            match read_reply(question.prompt, line, self._locale):
                case Answer() as answer:
                    return answer
                case Misread() as misread:
                    self._out.print(f"  [yellow]{misread.sentence}[/]")
                case "quit":
                    return None
                case "table":
                    self._narrator.show_table()
                    self._show(question)
                case "help":
                    self._out.print(f"[dim]{help_text(self._locale)}[/]")

    def _show(self, question: Question) -> None:
        options = zip(question.prompt.options, question.labels, strict=True)
        labels = [self._narrator.label(option, label) for option, label in options]
        show_question(self._out, question, self._locale, labels)

    def _say_goodbye(self) -> None:
        self._out.print(f"The match is kept: {self._again} --match {self.match_id}")
