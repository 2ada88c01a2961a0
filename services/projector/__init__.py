"""The projector: keeps the read models in Redis equal to the fold of the log."""

from services.projector.node import Projector

__all__ = ["Projector"]
