"""What a person types, and what is made of it."""

import io
import os
from collections.abc import Iterator
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

from engine import Answer, Option, Prompt, PromptId, Seat
from services.cli.play_ask import (
    Drop,
    Leave,
    Lines,
    Misread,
    Use,
    could_answer,
    read_reply,
    read_wish,
    show_actions,
    show_question,
)
from services.client import Question


def _select(low: int, high: int, default: tuple[str, ...] = ()) -> Prompt:
    options = tuple(Option(f"die:{n}", f"die:{n}:smash") for n in range(1, 4))
    return Prompt(
        id=PromptId("p1"),
        seat=Seat(1),
        kind="reroll",
        low=low,
        high=high,
        options=options,
        default=Answer(picks=default),
    )


NUMBER = Prompt(
    id=PromptId("p2"),
    seat=Seat(1),
    kind="how_many",
    form="number",
    low=1,
    high=5,
    default=Answer(number=2),
)
ALLOCATE = Prompt(
    id=PromptId("p3"),
    seat=Seat(1),
    kind="use_hearts",
    form="allocate",
    low=3,
    high=3,
    options=(Option("heal"), Option("poison")),
    limits=(2, 2),
    default=Answer(amounts=(2, 1)),
)


@pytest.mark.parametrize(
    ("prompt", "line", "expected"),
    [
        (_select(0, 3), "1 3", Answer(picks=("die:1", "die:3"))),
        (_select(0, 3), "3,1", Answer(picks=("die:3", "die:1"))),
        (_select(0, 3, ("die:2",)), "", Answer(picks=("die:2",))),
        (_select(0, 3, ("die:2",)), "0", Answer()),
        (NUMBER, "4", Answer(number=4)),
        (NUMBER, "", Answer(number=2)),
        (ALLOCATE, "1 2", Answer(amounts=(1, 2))),
        (ALLOCATE, "", Answer(amounts=(2, 1))),
        (NUMBER, "q", "quit"),
        (NUMBER, "T", "table"),
        (NUMBER, "?", "help"),
        (NUMBER, "u", Use(1)),
        (_select(0, 3), "U2", Use(2)),
        (ALLOCATE, "u 2", Use(2)),
        (_select(0, 3, ("die:2",)), "s", Leave(Answer(picks=("die:2",)), 0)),
        (_select(0, 3, ("die:2",)), "s5", Leave(Answer(picks=("die:2",)), 5)),
        (_select(0, 3, ("die:2",)), "0s", Leave(Answer(), 0)),
        (_select(0, 3), "1, 3 S12", Leave(Answer(picks=("die:1", "die:3")), 12)),
        (NUMBER, "4 s 3", Leave(Answer(number=4), 3)),
        (NUMBER, "d", "standing"),
        (NUMBER, "D 2", Drop(2)),
    ],
)
def test_a_line_becomes_an_answer(prompt: Prompt, line: str, expected: object) -> None:
    assert read_reply(prompt, line) == expected


@pytest.mark.parametrize(
    ("prompt", "line"),
    [
        (_select(0, 3), "4"),
        (_select(0, 3), "1 1"),
        (_select(1, 1), "0"),
        (_select(0, 3), "first"),
        (_select(0, 3), "u0"),
        (_select(0, 3), "u x"),
        (_select(0, 3), "4 s"),
        (_select(0, 3), "1 1 s3"),
        (_select(0, 3), "s0"),
        (_select(0, 3), "s3 1"),
        (_select(0, 3), "d0"),
        (_select(0, 3), "-1"),
        (NUMBER, "6"),
        (NUMBER, "1 2"),
        (ALLOCATE, "3 0"),
        (ALLOCATE, "1"),
        (ALLOCATE, "1 1"),
    ],
)
@pytest.mark.parametrize("locale", ["en", "zh"])
def test_what_is_not_legal_is_explained(prompt: Prompt, line: str, locale: str) -> None:
    reply = read_reply(prompt, line, locale)  # type: ignore[arg-type]  # a parameter's literal
    assert isinstance(reply, Misread)
    assert reply.sentence
    assert "die:" not in reply.sentence


@pytest.mark.parametrize(
    ("prompt", "line"), [(_select(0, 3), "1 1"), (_select(1, 1), "1 2"), (NUMBER, "6")]
)
def test_what_is_not_legal_is_explained_in_chinese(prompt: Prompt, line: str) -> None:
    reply = read_reply(prompt, line, "zh")
    assert isinstance(reply, Misread)
    assert not any(word.isascii() and word.isalpha() for word in reply.sentence.split())


def test_a_standing_answer_is_of_the_question_on_the_screen() -> None:
    """Typed where nothing is asked it is neither kept for the next question nor a wish."""
    assert could_answer("1 2")
    assert not could_answer("1 2 s")
    assert read_wish("s") is None


def test_a_question_for_a_number_says_in_chinese_what_enter_means() -> None:
    out = io.StringIO()
    show_question(Console(file=out, width=100), Question(NUMBER, "多少？", (), 0), "zh")
    assert "回车 = 2" in out.getvalue()


def test_a_question_shows_its_numbered_options_and_marks_the_default() -> None:
    out = io.StringIO()
    prompt = _select(0, 3, ("die:2",))
    question = Question(prompt, "Which dice?", ("die 1", "die 2", "die 3"), 0)
    show_question(Console(file=out, width=100), question, "en")
    text = out.getvalue()
    assert "Which dice?" in text
    assert "2*die 2" in text
    assert "1 die 1" in text


@pytest.mark.parametrize(("locale", "words"), [("en", "at any time"), ("zh", "随时")])
def test_what_may_be_done_at_any_time_is_shown_with_its_key(locale: Any, words: str) -> None:
    out = io.StringIO()
    console = Console(file=out, width=100)
    show_actions(console, [], locale)
    assert not out.getvalue()
    show_actions(console, [Text("use the wand")], locale)
    assert words in out.getvalue()
    assert "[u] use the wand" in out.getvalue()
    assert out.getvalue().count("\n") == 1
    show_actions(console, [Text("use the wand"), Text("use the cup")], locale)
    assert "[u1] use the wand" in out.getvalue()
    assert "[u2] use the cup" in out.getvalue()


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    os.close(reader)


async def test_lines_are_read_as_they_come(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    lines = Lines(reader)
    os.write(writer, "1 2\n\nzwölf".encode())
    os.close(writer)
    assert await lines.next() == "1 2"
    assert await lines.next() == ""
    assert await lines.next() == "zwölf"
    assert await lines.next() is None
