"""The replay service: any match, at any point, for any viewer who may, from the log alone."""

from services.replay.node import ReplayNode

__all__ = ["ReplayNode"]
