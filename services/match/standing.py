"""Which changes of standing answers are taken: not everything that could be written is worth it.

A change costs a commit, and nobody has to wait for a turn to make one. Decided from the session
alone, which is the same for whichever process serves the match.
"""

from typing import Final

from engine import Answer, Seat, Session
from services.common.errors import refuse

# Changes by one seat within one turn of the match.
CHANGES_PER_TURN_MAX: Final = 32


def check_change(
    session: Session, seat: Seat, kind: str, answer: Answer | None, below: int
) -> None:
    """Refuse a change that nothing would come of, and more than so many of them.

    Raises ApiError: BAD_STANDING_ANSWER, TOO_MANY_CHANGES.
    """
    match = session.state
    if match.status != "running":
        # The engine says so.
        return
    if not session.game.asks(kind) and all(prompt.kind != kind for prompt in session.waiting):
        message, in_chinese = "The game has no such kind of question.", "游戏中没有这种问题。"
        raise refuse("BAD_STANDING_ANSWER", message, field="kind", message_zh=in_chinese)
    if answer is not None and len(frozenset(answer.picks)) != len(answer.picks):
        message, in_chinese = "An option is picked twice.", "同一选项选了两次。"
        field = "answer.selection.options"
        raise refuse("BAD_STANDING_ANSWER", message, field=field, message_zh=in_chinese)
    known = next((each for each in match.standing if (each.seat, each.kind) == (seat, kind)), None)
    wanted = None if answer is None else (answer, below)
    if wanted == (None if known is None else (known.answer, known.below)):
        message, in_chinese = "This would change nothing.", "这不会改变任何事。"
        raise refuse("BAD_STANDING_ANSWER", message, message_zh=in_chinese)
    if session.standing_changes(seat) >= CHANGES_PER_TURN_MAX:
        raise refuse("TOO_MANY_CHANGES")
