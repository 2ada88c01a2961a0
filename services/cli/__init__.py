"""The command line, and the set-ups of processes that it runs.

The only place where services meet.
"""
