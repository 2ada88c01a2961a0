"""The command line, and the set-ups of processes that it runs: the only place where services meet."""
