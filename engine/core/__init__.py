"""The game-agnostic kernel. It knows no game."""
