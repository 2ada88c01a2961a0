"""What King of Tokyo and King of New York share: state, facts, proposals and the rules that do not
need a board.
"""

from engine.games.kings import evolve

__all__ = ["evolve"]
