"""Prompts and actions from the wire: for programs the engine's own, for people their words."""

from dataclasses import dataclass

from diceledger.match.v1 import match_pb2
from engine import Option, Prompt
from services.common.prompts_wire import prompt_from_wire


@dataclass(frozen=True, slots=True)
class Question:
    """An open prompt with all of its legal answers, and what to show a person."""

    prompt: Prompt
    title: str
    # One for each option, in the prompt's order.
    labels: tuple[str, ...]
    # Milliseconds since 1970 at which the default is taken; 0: never.
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class Action:
    """What the own seat may do whenever the match waits, whoever is asked; `option.id` takes it."""

    option: Option
    label: str


def question_from_wire(message: match_pb2.Prompt) -> Question:
    """Read a prompt. Raises ValueError for a form that this client does not know."""
    labels = tuple(option.label or option.option for option in message.options)
    title = message.title or message.kind
    return Question(prompt_from_wire(message), title, labels, message.deadline_ms)


def action_from_wire(message: match_pb2.Action) -> Action:
    """Read an action that is offered."""
    option = Option(id=message.action, subject=message.subject)
    return Action(option, message.label or message.action)
