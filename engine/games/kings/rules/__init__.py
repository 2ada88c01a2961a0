"""Rules that do not need a board: gains, losses, dice, cards for sale."""
