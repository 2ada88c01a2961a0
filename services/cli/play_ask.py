"""A question on the terminal: show it, read a line, make an answer of it."""

import asyncio
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from rich.columns import Columns
from rich.console import Console
from rich.text import Text

from engine import Answer, Prompt, Refusal, check_answer
from services.cli.main_options import Locale
from services.client import Question

# Options whose labels are shorter than this stand side by side.
_SHORT: Final = 28
_CHUNK: Final = 4096
_HELP: Final = {
    "en": "Type the numbers of your choices, separated by spaces; Enter alone takes what is marked "
    "with *. t: table, u: do what you may do at any time, in others' turns too, q: quit (the match "
    "is kept), ?: this help. With s behind your choices (2 s; s alone is Enter) this kind of "
    "question is answered so from now on, unasked; with s5 only while you have less than 5 energy, "
    "or hearts where they are at stake. d: what you left so, to take it back.",
    "zh": "输入选项的编号，用空格分隔；直接回车则取带 * 的默认答案。"
    "t：牌桌，u：使用可随时使用的能力（他人回合也可以），q：退出（对局会保留），?：帮助。"
    "在选择后加 s（如 2 s；单独的 s 等于回车），今后同类问题都照此回答，不再询问；"
    "s5 则仅当能量（涉及失去心时为心）低于 5 时。d：查看并撤回这些预设回答。",
}
_ANY_TIME: Final = {"en": "You may at any time:", "zh": "你可以随时："}
_USE: Final = re.compile(r"u([1-9][0-9]?)?")
_DROP: Final = re.compile(r"d([1-9][0-9]?)")
_LEAVE: Final = re.compile(r"([0-9, ]*)s ?([1-9][0-9]{0,3})?")

Wish = Literal["quit", "table", "help", "standing"]
_WISHES: Final[dict[str, Wish]] = {
    "q": "quit",
    "quit": "quit",
    "t": "table",
    "table": "table",
    "d": "standing",
    "?": "help",
    "h": "help",
    "help": "help",
}


@dataclass(frozen=True, slots=True)
class Misread:
    """A line that is no answer; `sentence` says why."""

    sentence: str


@dataclass(frozen=True, slots=True)
class Use:
    """The wish to do what may be done at any time: the action of this number, from 1."""

    number: int


@dataclass(frozen=True, slots=True)
class Drop:
    """The wish to be asked again: instead of the standing answer of this number, from 1."""

    number: int


@dataclass(frozen=True, slots=True)
class Leave:
    """An answer for now and from now on; `below` as in StandingAnswer."""

    answer: Answer
    below: int


def help_text(locale: Locale) -> str:
    """How to answer."""
    return _HELP[locale]


def read_wish(line: str) -> Wish | Use | Drop | None:
    """What a typed line means whoever is asked; None: it is at most an answer to a question."""
    word = "".join(line.lower().split())
    use = _USE.fullmatch(word)
    if use is not None:
        return Use(int(use[1] or 1))
    drop = _DROP.fullmatch(word)
    if drop is not None:
        return Drop(int(drop[1]))
    return _WISHES.get(word)


def read_reply(
    prompt: Prompt, line: str, locale: Locale = "en"
) -> Answer | Leave | Wish | Use | Drop | Misread:
    """What a typed line means: an answer that the prompt allows, a wish, or nothing legal."""
    wish = read_wish(line)
    if wish is not None:
        return wish
    leave = _LEAVE.fullmatch(" ".join(line.lower().split()))
    answer = _read_answer(prompt, line if leave is None else leave[1], locale)
    if leave is None or isinstance(answer, Misread):
        return answer
    return Leave(answer, int(leave[2] or 0))


def _read_answer(prompt: Prompt, line: str, locale: Locale) -> Answer | Misread:
    numbers = _numbers(line)
    if numbers is None:
        return Misread(help_text(locale))
    if not numbers:
        return prompt.default
    answer = _answer(prompt, numbers)
    if isinstance(answer, Misread):
        return answer
    refusal = check_answer(prompt, answer)
    return answer if refusal is None else Misread(_shown(refusal, locale))


def could_answer(line: str) -> bool:
    """Whether a typed line is an answer to some question, whichever that may be."""
    return _numbers(line) is not None


def _numbers(line: str) -> list[int] | None:
    """The numbers that were typed; None where there is anything else."""
    try:
        return [int(word) for word in line.replace(",", " ").split()]
    except ValueError:
        return None


def _answer(prompt: Prompt, numbers: list[int]) -> Answer | Misread:
    match prompt.form:
        case "select":
            # 0 says "none of them", for questions whose default is something else.
            if numbers == [0]:
                return Answer()
            if not all(1 <= number <= len(prompt.options) for number in numbers):
                return Misread(f"1 – {len(prompt.options)}")
            return Answer(picks=tuple(prompt.options[number - 1].id for number in numbers))
        case "number":
            return Answer(number=numbers[0]) if len(numbers) == 1 else Misread("1")
        case "allocate":
            return Answer(amounts=tuple(numbers))


def _shown(refusal: Refusal, locale: Locale) -> str:
    # The ids that would be legal mean nothing to a person; the options are on the screen.
    sentence = refusal.message(locale)
    for mark in (" Legal:", " 可选"):
        sentence = sentence.partition(mark)[0]
    return sentence


def show_question(
    out: Console, question: Question, locale: Locale, labels: Sequence[Text] | None = None
) -> None:
    """Print the question with its numbered options, the default marked.

    `labels` stand for the options where the game's look knows better than the question's words.
    """
    prompt = question.prompt
    shown = [Text(label) for label in question.labels] if labels is None else labels
    title = Text.assemble(("? ", "bold magenta"), (question.title, "bold"))
    bounds = _bounds(prompt, locale)
    if bounds:
        title.append(f"  {bounds}", style="dim")
    out.print(title)
    lines = [_option(prompt, number, label) for number, label in enumerate(shown, 1)]
    if lines and max(line.cell_len for line in lines) < _SHORT:
        out.print(Columns(lines, padding=(0, 3), equal=False, expand=False))
    else:
        for line in lines:
            out.print(line)


def show_actions(out: Console, labels: Sequence[Text], locale: Locale) -> None:
    """Print what may be done at any time, and what to type for it."""
    if not labels:
        return
    title = Text(f"  {_ANY_TIME[locale]}", style="dim")
    keys = ["u"] if len(labels) == 1 else [f"u{number}" for number in range(1, len(labels) + 1)]
    lines = [
        Text.assemble("  ", (f"[{key}]", "bold magenta"), " ", label)
        for key, label in zip(keys, labels, strict=True)
    ]
    if len(lines) == 1:
        out.print(title + lines[0][1:])
        return
    out.print(title)
    for line in lines:
        out.print(line)


def _option(prompt: Prompt, number: int, label: Text) -> Text:
    is_default = prompt.options[number - 1].id in prompt.default.picks
    line = Text.assemble((f"  {number}", "bold magenta"), ("*" if is_default else " "), label)
    if prompt.form == "allocate":
        line.append(f"  (0–{prompt.limits[number - 1]})", style="dim")
    return line


def _bounds(prompt: Prompt, locale: Locale) -> str:
    english = locale == "en"
    if prompt.form == "number":
        words = "{0}–{1}, Enter = {2}" if english else "{0}–{1}，回车 = {2}"
        return words.format(prompt.low, prompt.high, prompt.default.number)
    span = str(prompt.low) if prompt.low == prompt.high else f"{prompt.low}–{prompt.high}"
    if prompt.form == "allocate":
        amounts = " ".join(str(amount) for amount in prompt.default.amounts)
        words = "distribute {0}, Enter = {1}" if english else "分配 {0}，回车 = {1}"
        return words.format(span, amounts)
    if prompt.default.picks:
        return ("pick {0}, Enter = *" if english else "选 {0}，回车 = *").format(span)
    return ("pick {0}, Enter = none" if english else "选 {0}，回车 = 不选").format(span)


class Lines:
    """Lines of standard input, awaited without a thread and without touching the terminal."""

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._pending = b""

    @property
    def is_terminal(self) -> bool:
        """Whether somebody types them, not a file or another program."""
        return os.isatty(self._descriptor)

    async def next(self) -> str | None:
        """The next line without its end; None when there is no more input."""
        while b"\n" not in self._pending:
            await self._readable()
            chunk = os.read(self._descriptor, _CHUNK)
            if not chunk:
                last, self._pending = self._pending, b""
                return last.decode(errors="replace").strip() if last else None
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        return line.decode(errors="replace").strip()

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        try:
            loop.add_reader(self._descriptor, ready.set)
        except PermissionError:
            # A regular file is always readable, and cannot be polled.
            return
        try:
            await ready.wait()
        finally:
            loop.remove_reader(self._descriptor)
