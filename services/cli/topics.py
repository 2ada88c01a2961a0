"""`diceledger topics`: makes and checks the log's topic; nothing else ever makes one.

The settings are those of the services: DICELEDGER_KAFKA, _TOPIC, _PARTITIONS, _REPLICATION.
"""

import asyncio
import json
from typing import Annotated

import typer

from services.common.settings import Settings, load_settings

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    topics = typer.Typer(help="Make and check the topic of the log.", no_args_is_help=True)
    topics.command("create")(create)
    topics.command("check")(check)
    app.add_typer(topics, name="topics", rich_help_panel="Servers")


def create(as_json: JsonOption = False) -> None:
    """Make the log's topic with all that it needs; a topic that is there already is checked.

    Settings: DICELEDGER_KAFKA, DICELEDGER_TOPIC, DICELEDGER_PARTITIONS, DICELEDGER_REPLICATION.
    """
    # Kafka's client is loaded only by those who use it.
    from services.cli.topics_kafka import ensure_topic

    settings = load_settings("topics")
    created = asyncio.run(ensure_topic(settings))
    done = "created" if created else "there already"
    if as_json:
        print(json.dumps(_summary(settings) | {"created": created}))
    else:
        print(f"The topic {settings.topic} with {settings.partitions} partitions is {done}.")


def check(as_json: JsonOption = False) -> None:
    """Check that the log's topic is there with the right number of partitions.

    Settings: DICELEDGER_KAFKA, DICELEDGER_TOPIC, DICELEDGER_PARTITIONS.
    """
    from services.cli.topics_kafka import existing_topic

    settings = load_settings("topics")
    log_id = asyncio.run(existing_topic(settings))
    if as_json:
        print(json.dumps(_summary(settings) | {"log_id": log_id}))
    else:
        print(
            f"The topic {settings.topic} is as it should be: {settings.partitions} partitions, "
            f"log {log_id}."
        )


def _summary(settings: Settings) -> dict[str, object]:
    return {"topic": settings.topic, "partitions": settings.partitions}
