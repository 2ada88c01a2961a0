"""The topic of the log on Kafka, for the commands, the supervisor and the processes."""

from services.cli.runtime import log_errors
from services.common.log.kafka_client import Admin, KafkaOptions, check_topic, create_topic
from services.common.settings import Settings


def kafka_options(settings: Settings) -> KafkaOptions:
    """Return how Kafka is reached, as the settings say."""
    return KafkaOptions(
        servers=tuple(str(server) for server in settings.kafka),
        topic=settings.topic,
        name=settings.node_name,
        security=settings.kafka_security or {},
    )


async def ensure_topic(settings: Settings) -> bool:
    """Make the topic that the settings name; whether it is new.

    Raises StartupError when Kafka is not reached, or the topic has another number of partitions.
    """
    with log_errors():
        return await create_topic(
            kafka_options(settings),
            partitions=settings.partitions,
            replication=settings.replication,
        )


async def existing_partitions(settings: Settings) -> int | None:
    """Return how many partitions the topic has; None when there is none. Raises StartupError."""
    admin = Admin(kafka_options(settings))
    try:
        with log_errors():
            topic = await admin.topic()
    finally:
        await admin.close()
    return topic.partitions if topic else None


async def existing_topic(settings: Settings) -> str:
    """Return the identity of the log behind the topic; StartupError unless it is right."""
    options = kafka_options(settings)
    admin = Admin(options)
    try:
        with log_errors():
            return check_topic(options, await admin.topic(), settings.partitions).log_id
    finally:
        await admin.close()
