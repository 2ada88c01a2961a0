"""The games. Each package with a module `game` that has a GAME is found by the catalogue."""
