"""The event log: the port and its two adapters, Kafka and SQLite."""

from services.common.log.port import (
    AppendUnknown,
    Log,
    LogBusy,
    LogCorrupt,
    LogError,
    LogReplaced,
    LogTruncated,
    LogUnavailable,
    LogUnusable,
    Ownership,
    OwnershipListener,
    Position,
    Record,
    RecordTooLarge,
    partition_of,
)

__all__ = [
    "AppendUnknown",
    "Log",
    "LogBusy",
    "LogCorrupt",
    "LogError",
    "LogReplaced",
    "LogTruncated",
    "LogUnavailable",
    "LogUnusable",
    "Ownership",
    "OwnershipListener",
    "Position",
    "Record",
    "RecordTooLarge",
    "partition_of",
]
