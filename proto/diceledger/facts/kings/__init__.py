"""Generated code of diceledger.facts.kings."""
