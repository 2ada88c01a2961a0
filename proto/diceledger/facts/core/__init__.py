"""Generated code of diceledger.facts.core."""
