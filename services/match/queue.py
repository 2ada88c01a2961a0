"""Commands that wait for their turn: one queue for each match, each request id in it once."""

import time
from collections import deque
from collections.abc import Callable

from services.common.errors import refuse
from services.match.commands import AnyCommand
from services.match.outcomes import Outcome

Done = Callable[[Outcome], None]


class Job:
    """One command on its way, and everybody who wants to know what became of it."""

    __slots__ = ("_listeners", "arrived", "command", "is_over")

    def __init__(self, command: AnyCommand, done: Done) -> None:
        self.command = command
        self.arrived = time.monotonic()
        self.is_over = False
        self._listeners: list[Done] = [done]

    def also_tell(self, done: Done) -> None:
        """The same request came again while it was under way."""
        self._listeners.append(done)

    def tell(self, outcome: Outcome) -> None:
        """Tell the outcome to everybody who waits for it."""
        listeners, self._listeners = self._listeners, []
        for done in listeners:
            done(outcome)


class MatchQueue:
    """The commands of one match, first come first served."""

    __slots__ = ("_jobs", "_requests", "current")

    def __init__(self) -> None:
        self._jobs: deque[Job] = deque()
        self._requests: dict[tuple[str, str], Job] = {}
        # The one that is being worked on.
        self.current: Job | None = None

    def join(self, command: AnyCommand, done: Done) -> bool:
        """Attach to the same request if it is under way already; False when it is not.

        Raises ApiError when another request has the same id.
        """
        job = self._requests.get((command.actor, command.request_id))
        if job is None or job.is_over:
            return False
        if job.command.digest != command.digest:
            raise refuse("REQUEST_ID_REUSED", field="request_id")
        job.also_tell(done)
        return True

    def put(self, job: Job) -> None:
        """Add a command whose request is not under way."""
        self._jobs.append(job)
        self._requests[job.command.actor, job.command.request_id] = job

    def take(self) -> Job | None:
        """The next one to work on; None when nothing waits."""
        self.current = self._jobs.popleft() if self._jobs else None
        return self.current

    def finish(self, job: Job, outcome: Outcome) -> None:
        """The command is through."""
        job.is_over = True
        key = (job.command.actor, job.command.request_id)
        if self._requests.get(key) is job:
            del self._requests[key]
        job.tell(outcome)

    def refuse_waiting(self, outcome: Outcome) -> None:
        """End every command that was not begun yet."""
        while self._jobs:
            self.finish(self._jobs.popleft(), outcome)
