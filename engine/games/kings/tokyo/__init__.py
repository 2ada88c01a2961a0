"""King of Tokyo, base game, 2 to 6 players."""
