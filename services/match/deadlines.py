"""Until when the open prompts of a running match may be answered.

A match has one deadline, for all that is open; it stands in the header of its newest commit. So a
process that takes the match over has it, and so do the read models, which copy it from there. What
is decided here follows from that commit and from the session, as rebuilt by any process.
"""

from collections.abc import Sequence

from engine import ActionTaken, Answered, Fact, Prompt, Prompted, PromptedInSecret, Step


def next_deadline_ms(
    step: Step, before: Sequence[Prompt], deadline_ms: int, *, now_ms: int, timeout_s: int
) -> int:
    """The deadline after a step; `before` were open until then, with `deadline_ms`. 0: none.

    Whoever is asked something new has the whole time. A step that asks nothing new gives nobody
    more of it. Nor does an action at any time by what it has put anew: a question of the same kind
    to the same seat, and any question to the seat that acted, go on in the time that ran already.
    Only somebody else, or who was not asked, has then been asked something new. Everybody who is
    asked at the same moment shares that time.
    """
    if not timeout_s or not step.waiting:
        return 0
    known = {prompt.id for prompt in before} if deadline_ms else frozenset()
    again = _put_anew(step.facts, before) if deadline_ms else frozenset()
    if all(prompt.id in known or prompt.id in again for prompt in step.waiting):
        return deadline_ms
    return now_ms + timeout_s * 1000


def _put_anew(facts: Sequence[Fact], before: Sequence[Prompt]) -> frozenset[str]:
    """The prompts that an action put in the place of others. What is asked once somebody has
    answered (a standing answer may do so at once) is asked in its own right.
    """
    taken = facts[0] if facts else None
    if not isinstance(taken, ActionTaken):
        return frozenset()
    asked = {(prompt.seat, prompt.kind) for prompt in before}
    actor_was_asked = any(prompt.seat == taken.seat for prompt in before)
    again: set[str] = set()
    for fact in facts:
        if isinstance(fact, Answered):
            break
        if not isinstance(fact, Prompted | PromptedInSecret) or not isinstance(fact.prompt, Prompt):
            continue
        prompt = fact.prompt
        is_own = prompt.seat == taken.seat and actor_was_asked
        if is_own or (prompt.seat, prompt.kind) in asked:
            again.add(prompt.id)
    return frozenset(again)
