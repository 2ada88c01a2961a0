"""Laws that every scenario tests while it is played: about the log of a match, whatever the rules.

The match rebuilt from its facts is the match in play; folding all facts gives its state; every
turn, run again, gives the same facts; and every viewer's redacted facts can be folded.
"""

from collections.abc import Sequence

from engine import Fact, RebuildMismatch, Seat, Session, fold, redact
from services.cli.scenario_text import ScenarioError


def check_rebuilt(session: Session, facts: Sequence[Fact], *, seed: bytes, line: int) -> None:
    """The log gives the match in play. Raises ScenarioError."""
    try:
        rebuilt = Session.rebuild(facts, seed=seed, game=session.game)
    except RebuildMismatch as error:
        raise ScenarioError(line, f"law broken, rebuilding differs: {error}") from error
    if rebuilt.state != session.state or rebuilt.waiting != session.waiting:
        raise ScenarioError(line, "law broken: the rebuilt match is another one")
    if fold(facts) != session.state:
        raise ScenarioError(line, "law broken: the fold of the facts is another state")


def check_whole_log(
    session: Session, facts: Sequence[Fact], *, laid: int, seed: bytes, line: int
) -> None:
    """Every turn again from the position (the first `laid` facts); and what each viewer may see can
    be folded. Raises ScenarioError.
    """
    try:
        again = Session.resume(fold(facts[:laid]), facts[laid:], seed=seed, game=session.game)
    except RebuildMismatch as error:
        raise ScenarioError(line, f"law broken, running again differs: {error}") from error
    if again.state != session.state:
        raise ScenarioError(line, "law broken: running again gives another state")
    for viewer in (None, *(Seat(each + 1) for each in range(session.state.seats))):
        view = fold(redact(fact, viewer) for fact in facts)
        if view.fact_count != len(facts):
            raise ScenarioError(line, "law broken: a view has lost a fact")
