"""Questions, answers, actions and games between the engine's structs and ``diceledger.match.v1``.

The engine knows forms and ids; on the wire a question carries its words as well, in the language
of the one who is asked. Whether an answer is legal is the engine's business; here it is only
checked that it is an answer at all.
"""

from collections.abc import Sequence
from typing import Final

from diceledger.match.v1 import match_pb2
from engine import (
    Answer,
    AnyGame,
    Form,
    MatchState,
    Option,
    Prompt,
    PromptId,
    Refusal,
    Seat,
    Words,
    describe_prompt,
    find_game,
)

_FORMS: Final[dict[Form, match_pb2.PromptForm.ValueType]] = {
    "select": match_pb2.PROMPT_FORM_SELECT,
    "number": match_pb2.PROMPT_FORM_NUMBER,
    "allocate": match_pb2.PROMPT_FORM_ALLOCATE,
}
_FORM_OF: Final = {wire: form for form, wire in _FORMS.items()}
_WIRE_FIELDS: Final = {
    "answer.picks": "answer.selection.options",
    "answer.number": "answer.number",
    "answer.amounts": "answer.allocation.amounts",
}


def wire_field(field: str) -> str:
    """Where a field that a Refusal names lies in the request: "answer.selection.options"."""
    return _WIRE_FIELDS.get(field, field)


def prompt_to_wire(
    where: MatchState | AnyGame, prompt: Prompt, locale: str = "en", *, deadline_ms: int = 0
) -> match_pb2.Prompt:
    """A question for the one who is asked, in words of `locale` ("en", "zh").

    `where` is the match, so that seats have names, or the game. `deadline_ms`: when the default is
    taken, milliseconds since 1970, 0: never. A concealed prompt is none to be answered: ValueError.
    """
    if prompt.concealed:
        raise ValueError(f"{prompt.id} is concealed from this viewer")
    text = describe_prompt(where, prompt, locale)
    limits = prompt.limits or (0,) * len(prompt.options)
    return match_pb2.Prompt(
        prompt_id=prompt.id,
        seat=prompt.seat,
        kind=prompt.kind,
        form=_FORMS[prompt.form],
        low=prompt.low,
        high=prompt.high,
        options=[
            match_pb2.PromptOption(
                option=option.id, subject=option.subject, label=label, limit=limit
            )
            for option, label, limit in zip(prompt.options, text.option_labels, limits, strict=True)
        ],
        default_answer=answer_to_wire(prompt.default, prompt.form),
        title=text.title,
        cause=prompt.cause,
        deadline_ms=deadline_ms,
    )


def prompt_from_wire(wire: match_pb2.Prompt) -> Prompt:
    """The engine's question behind one on the wire. Raises ValueError for a form of the future."""
    form = _FORM_OF.get(wire.form)
    if form is None:
        raise ValueError(f"{wire.prompt_id}: unknown form {wire.form}")
    return Prompt(
        id=PromptId(wire.prompt_id),
        seat=Seat(wire.seat),
        kind=wire.kind,
        form=form,
        low=wire.low,
        high=wire.high,
        options=tuple(Option(id=each.option, subject=each.subject) for each in wire.options),
        limits=tuple(each.limit for each in wire.options) if form == "allocate" else (),
        default=answer_from_wire(wire.default_answer),
        cause=wire.cause,
    )


def answer_to_wire(answer: Answer, form: Form | None = None) -> match_pb2.Answer:
    """An answer, in the form of its prompt; without `form` the one that its content shows.

    Raises ValueError when it has content of another form.
    """
    shown: list[Form] = []
    if answer.picks:
        shown.append("select")
    if answer.number is not None:
        shown.append("number")
    if answer.amounts:
        shown.append("allocate")
    form = form or (shown[0] if shown else "select")
    if any(each != form for each in shown):
        raise ValueError(f"{answer} is no answer of the form {form}")
    match form:
        case "select":
            return match_pb2.Answer(selection=match_pb2.Selection(options=answer.picks))
        case "number" if answer.number is not None:
            return match_pb2.Answer(number=answer.number)
        case "number":
            raise ValueError("a number is wanted, and the answer has none")
        case "allocate":
            return match_pb2.Answer(allocation=match_pb2.Allocation(amounts=answer.amounts))


def answer_from_wire(wire: match_pb2.Answer) -> Answer:
    """The engine's answer. Raises Refusal ILLEGAL_ANSWER, naming the field, where none is given."""
    match wire.WhichOneof("form"):
        case "selection":
            picks = tuple(wire.selection.options)
            for index, pick in enumerate(picks):
                if not pick:
                    field = f"answer.selection.options[{index}]"
                    raise Refusal("ILLEGAL_ANSWER", field, detail="an option has no id")
            return Answer(picks=picks)
        case "number":
            return Answer(number=wire.number)
        case "allocation":
            return Answer(amounts=tuple(wire.allocation.amounts))
        case _:
            detail = "one of selection, number and allocation is wanted"
            raise Refusal("ILLEGAL_ANSWER", "answer", detail=detail)


def actions_to_wire(
    match: MatchState, actions: Sequence[Option], locale: str = "en"
) -> list[match_pb2.Action]:
    """What a seat may do at any time, in words of `locale`."""
    if not actions:
        return []
    words = Words(find_game(match.game), match, locale)
    return [
        match_pb2.Action(
            action=option.id,
            subject=option.subject,
            label=words.label(option.id, option.subject),
        )
        for option in actions
    ]


def game_to_wire(game: AnyGame, locale: str = "en") -> match_pb2.GameInfo:
    """A game of the catalogue; the summaries of its options in words of `locale`."""
    chinese = locale.startswith("zh")
    return match_pb2.GameInfo(
        game=game.id,
        name=game.name,
        name_zh=game.name_zh,
        seats_low=game.seats_low,
        seats_high=game.seats_high,
        options=[
            match_pb2.GameOption(
                option=spec.id,
                values=spec.values,
                default_value=spec.default,
                summary=spec.summary_zh if chinese else spec.summary,
            )
            for spec in game.options
        ],
        presets=sorted(game.presets),
        revision=game.revision,
        expansions=game.expansions,
    )
