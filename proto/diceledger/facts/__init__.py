"""Generated code of the facts and states of the games."""
