"""What a projector counts, beside lag and void records (`services.common.metrics`)."""

from prometheus_client import Counter, Gauge

from services.common.metrics import Metrics

PROJECTION = "views"


class Figures:
    """The metrics of one projector; partitions are label values, matches never are."""

    def __init__(self, metrics: Metrics) -> None:
        """Register them beside the process's other metrics."""
        self._metrics = metrics
        registry = metrics.registry
        self.commits = Counter(
            "diceledger_projection_commits_total",
            "Admitted commits that the projection has applied.",
            ["projection"],
            registry=registry,
        ).labels(PROJECTION)
        self.conflicts = Counter(
            "diceledger_projection_conflicts_total",
            "Writes refused because the stored watermark was not the expected one.",
            ["projection"],
            registry=registry,
        ).labels(PROJECTION)
        self.rebuilds = Counter(
            "diceledger_projection_rebuilds_total",
            "Partitions whose views were lost, set back or of another version, and folded anew.",
            ["projection", "cause"],
            registry=registry,
        )
        self.parked = Gauge(
            "diceledger_projection_parked_matches",
            "Matches whose view stands still because a commit could not be folded: an alarm.",
            ["projection", "partition"],
            registry=registry,
        )
        self.stopped = Gauge(
            "diceledger_projection_stopped",
            "1 when the projection of the partition must not go on: an alarm.",
            ["projection", "partition"],
            registry=registry,
        )

    def void(self, reason: str) -> None:
        """Count one void record."""
        self._metrics.void(reason)

    def lag(self, partition: int, records: int) -> None:
        """Say how many records the views of the partition are behind the log."""
        self._metrics.lag(PROJECTION, partition, records)

    def park(self, partition: int, matches: int) -> None:
        """Say how many matches of the partition are parked."""
        self.parked.labels(PROJECTION, str(partition)).set(matches)

    def stop(self, partition: int, stopped: bool) -> None:
        """Say whether the partition is stopped."""
        self.stopped.labels(PROJECTION, str(partition)).set(int(stopped))

    def rebuild(self, cause: str) -> None:
        """Count one rebuild of a partition."""
        self.rebuilds.labels(PROJECTION, cause).inc()

    def forget(self, partition: int) -> None:
        """The partition went to another process: say nothing about it any more."""
        name = str(partition)
        for gauge in (self.parked, self.stopped, self._metrics.projection_lag):
            # prometheus_client ignores labels that were never set.
            gauge.remove(PROJECTION, name)
