"""The match service: decides commands, appends commits, serves watches."""
