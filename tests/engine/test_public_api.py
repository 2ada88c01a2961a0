"""The public names of the engine: changing this list is a decision, not an accident."""

from __future__ import annotations

import engine

PUBLIC = [
    "CORE_FACTS",
    "HIDDEN",
    "NOBODY",
    "PASS",
    "REASONS",
    "ActionTaken",
    "ActionsOffered",
    "Answer",
    "Answered",
    "AnyGame",
    "Ask",
    "Card",
    "ChanceDrawn",
    "ChanceDrawnInSecret",
    "Deck",
    "EntropyRevealed",
    "Fact",
    "Form",
    "Game",
    "GameState",
    "Hidden",
    "Holding",
    "MatchCreated",
    "MatchEnded",
    "MatchOver",
    "MatchStarted",
    "MatchState",
    "Me",
    "Option",
    "OptionSpec",
    "OptionValue",
    "Player",
    "Prompt",
    "PromptId",
    "PromptText",
    "Prompted",
    "PromptedInSecret",
    "PromptsWithdrawn",
    "Public",
    "RebuildMismatch",
    "Refusal",
    "Sealed",
    "Seat",
    "SeatActions",
    "SeatTaken",
    "Secret",
    "SeedMissing",
    "SeedRevealed",
    "Session",
    "StandingAnswer",
    "StandingAnswerDropped",
    "StandingAnswerSet",
    "Stat",
    "Step",
    "Table",
    "UndeclaredVisibility",
    "UnknownRules",
    "Words",
    "WrongSeed",
    "begins",
    "catalogue",
    "check_answer",
    "commitment",
    "decode_state",
    "derive_seed",
    "describe_fact",
    "describe_prompt",
    "draw",
    "empty_state",
    "encode_state",
    "entropy_commitment",
    "evolve",
    "evolves",
    "fact_types",
    "find_game",
    "fold",
    "has_hidden",
    "hidden_fields",
    "recompute",
    "redact",
    "state_hash",
    "visibility_of",
]


def test_the_public_names_are_these() -> None:
    assert sorted(engine.__all__) == sorted(PUBLIC)
    assert all(hasattr(engine, name) for name in PUBLIC)


def test_the_kernel_knows_no_game() -> None:
    """Also checked by import-linter; here so that the engine's own tests say it."""
    from pathlib import Path

    kernel = Path(engine.__file__).parent / "core"
    for path in kernel.glob("*.py"):
        text = path.read_text()
        assert "from engine.games" not in text, path.name
        assert "import engine.games" not in text, path.name
