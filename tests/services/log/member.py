"""A process that takes part in the ownership group and says what happens; for test_ownership.

Arguments: server, topic, group, address, session timeout in ms. Prints one JSON array per change:
["assigned" | "revoked", partitions]. A line on standard input makes it leave in order.
"""

import asyncio
import json
import sys

from services.common.log.kafka_client import KafkaOptions
from services.common.log.kafka_ownership import KafkaOwnership


class Printer:
    """Prints every change."""

    async def assigned(self, partitions: frozenset[int]) -> None:
        print(json.dumps(["assigned", sorted(partitions)]), flush=True)

    async def revoked(self, partitions: frozenset[int]) -> None:
        print(json.dumps(["revoked", sorted(partitions)]), flush=True)


async def main() -> None:
    server, topic, group, address, session_timeout_ms = sys.argv[1:]
    ownership = KafkaOwnership(
        KafkaOptions(servers=(server,), topic=topic),
        address=address,
        group=group,
        session_timeout_ms=int(session_timeout_ms),
    )
    await ownership.start(Printer())
    await asyncio.to_thread(sys.stdin.readline)
    await ownership.close()


if __name__ == "__main__":
    asyncio.run(main())
