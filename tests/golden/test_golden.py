"""Recorded matches still mean what they meant: they fold to the same state and follow the rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import (
    ChanceDrawn,
    ChanceDrawnInSecret,
    MatchState,
    Session,
    catalogue,
    commitment,
    encode_state,
    fact_types,
    find_game,
    fold,
    recompute,
    state_hash,
)
from services.cli.simulate_kings import purchase_of
from services.cli.simulate_plan import Plan
from tests.golden import files, record
from tests.golden.files import (
    FOLDER,
    FORMAT,
    Golden,
    contents_of,
    digest_of,
    every_file,
    lines_of,
    noted,
    path_of,
    read,
    recorded,
)

FILES = every_file()
MATCHES_LOW = 40
# The oldest revision of each game that can still be played: open matches may have begun with it.
KEPT_FROM = {"king_of_tokyo": 1}
BYTES_HIGH = 20_000_000


def named(path: Path) -> str:
    return str(path.relative_to(FOLDER).with_suffix(""))


@pytest.mark.parametrize("path", FILES, ids=named)
def test_it_folds_to_the_recorded_state(path: Path) -> None:
    golden = read(path)
    header = golden.header
    assert header.format == FORMAT
    assert path.name.startswith(f"r{header.revision}-")
    assert digest_of(golden.lines) == header.digest
    facts = golden.facts()
    assert len(facts) == header.facts
    state = fold(facts)
    assert state_hash(state).hex() == header.state_hash
    assert state.status == "finished"
    assert state.table is not None
    told = (state.seats, tuple(state.winners), state.end_reason, state.table.turn)
    assert told == (header.seats, header.winners, header.reason, header.turns)
    assert {each.id: each.value for each in state.options} == header.options


@pytest.mark.parametrize("path", FILES, ids=named)
def test_the_rules_give_the_same_facts_again(path: Path) -> None:
    """As long as the rules have the branches of its revision: even older matches only fold."""
    golden = read(path)
    if golden.header.revision >= KEPT_FROM[golden.header.game]:
        Session.verify_rules(golden.facts())


@pytest.mark.parametrize("path", FILES, ids=named)
def test_its_dice_follow_from_the_revealed_seed(path: Path) -> None:
    facts = read(path).facts()
    state = fold(facts)
    assert commitment(state.seed) == state.commitment
    entropies = [player.entropy for player in state.players]
    draws = [fact for fact in facts if isinstance(fact, ChanceDrawn | ChanceDrawnInSecret)]
    assert [draw.number for draw in draws] == list(range(len(draws)))
    for draw in draws:
        assert draw.values == recompute(draw, state.seed, state.match_id, entropies)


@pytest.mark.parametrize("path", FILES, ids=named)
def test_its_lines_are_what_is_written_today(path: Path) -> None:
    """A field that is renamed, moved or given another default would show here."""
    golden = read(path)
    assert lines_of(golden.facts()) == golden.lines


@pytest.mark.parametrize("game_id", sorted(catalogue()))
def test_every_game_has_enough_of_them(game_id: str) -> None:
    """Every preset with every number of players, and every kind of fact."""
    game = find_game(game_id)
    goldens = [read(path) for path in recorded(game_id)]
    assert len(goldens) >= MATCHES_LOW
    tables = {(each.header.preset, each.header.seats) for each in goldens}
    seats = range(game.seats_low, game.seats_high + 1)
    assert tables >= {(preset, number) for preset in game.presets for number in seats}
    facts = [fact for each in goldens for fact in each.facts()]
    unseen = set(fact_types(game)) - {type(fact) for fact in facts}
    assert not unseen, f"no recorded match has a {unseen}"


@pytest.mark.parametrize("game_id", sorted(catalogue()))
def test_the_current_revision_is_recorded(game_id: str) -> None:
    """A new card is a new revision; a new option is not, but wants matches with its values."""
    game = find_game(game_id)
    noted_now = noted(game_id).get(game.revision)
    assert noted_now == contents_of(game), "record more: python -m tests.golden.record"


@pytest.mark.parametrize("game_id", sorted(catalogue()))
def test_all_that_a_revision_had_is_shown_by_matches_up_to_it(game_id: str) -> None:
    """What came later is not missed in them: every card is bought, every value chosen."""
    specs = {spec.id: spec for spec in find_game(game_id).options}
    goldens = [read(path) for path in recorded(game_id)]
    for revision, contents in noted(game_id).items():
        until = [each for each in goldens if each.header.revision <= revision]
        bought = {purchase_of(fact) for each in until for fact in each.facts()}
        assert bought >= set(contents.cards), f"not bought up to revision {revision}"
        for option, values in contents.options.items():
            default = specs[option].default if option in specs else ""
            chosen = {each.header.options.get(option, default) for each in until}
            assert chosen >= set(values), f"no match up to revision {revision} has another {option}"


def test_recording_adds_to_the_current_revision_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that exist stay as they are, those of older revisions and those of this one."""
    game, golden = find_game("king_of_tokyo"), read(FILES[0])
    monkeypatch.setattr(files, "FOLDER", tmp_path)
    played: list[str] = []

    def best(plan: Plan, *_: object) -> Golden:
        played.append(plan.seed)
        return golden

    monkeypatch.setattr(record, "_best", best)
    record.record(game, 1)
    tables = len(game.presets) * (game.seats_high - game.seats_low + 1)
    first = {path.name for path in recorded(game.id)}
    assert (len(played), len(first)) == (tables, tables)
    assert noted(game.id) == {game.revision: contents_of(game)}
    path_of(game, "online", 3, 1).write_bytes(FILES[1].read_bytes())
    monkeypatch.setattr(game, "revision", game.revision + 1)
    record.record(game, 1)
    monkeypatch.setattr(game, "revision", game.revision - 1)
    record.record(game, 2)
    assert len(played) == len(set(played)) + tables == 3 * tables
    assert len(recorded(game.id)) == 3 * tables
    assert path_of(game, "online", 3, 1).read_bytes() == FILES[1].read_bytes()
    assert set(noted(game.id)) == {game.revision, game.revision + 1}


def test_they_stay_small_enough_to_be_read() -> None:
    assert sum(path.stat().st_size for path in FILES) < BYTES_HIGH


def test_a_changed_line_is_noticed(tmp_path: Path) -> None:
    """The tests above are not idle: a fact that did not happen changes digest and state."""
    golden = read(FILES[0])
    index = next(i for i, line in enumerate(golden.lines) if b'"points_gained"' in line)
    changed = golden.lines[index].replace(b'"amount":', b'"amount":1')
    lines = (*golden.lines[:index], changed, *golden.lines[index + 1 :])
    assert digest_of(lines) != golden.header.digest
    state = fold(type(golden)(golden.header, lines).facts())
    assert isinstance(state, MatchState)
    assert encode_state(state) != encode_state(fold(golden.facts()))
