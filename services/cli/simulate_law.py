"""What a simulation says when something that must hold in every match does not."""


class LawBroken(Exception):  # named for what happened
    """Something that must hold in every match did not; the text says what."""
