"""Generated code of diceledger.facts.kings.v1."""
