"""Generated code of diceledger.facts.core.v1."""
