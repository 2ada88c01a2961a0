"""The files under deploy/ name what exists: settings, commands, metrics."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry
from typer.testing import CliRunner

from services.cli.main import app
from services.common.metrics import Metrics
from services.common.settings import load_settings, settings_table

DEPLOY = Path(__file__).parents[2] / "deploy"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """The compose file, its anchors resolved."""
    loaded = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def _ours(compose: dict[str, Any]) -> dict[str, dict[str, Any]]:
    services = compose["services"]
    return {name: each for name, each in services.items() if "build" in each}


def test_every_process_of_the_set_up_is_there(compose: dict[str, Any]) -> None:
    """Kafka, Redis, match twice, projector, replay, Prometheus."""
    expected = {"kafka", "redis", "match-1", "match-2", "projector", "replay", "prometheus"}
    assert expected <= set(compose["services"])


def test_every_variable_is_a_setting(compose: dict[str, Any]) -> None:
    """A misspelt variable would be passed over in silence."""
    known = {row[0] for row in settings_table()} | {"DICELEDGER_TOKEN_SECRET_FILE"}
    for name, service in _ours(compose).items():
        assert set(service["environment"]) <= known, name


@pytest.mark.parametrize("role", ["match", "projector", "replay"])
def test_the_settings_are_accepted(
    compose: dict[str, Any], role: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The processes would start with these values, given the secrets."""
    (tmp_path / "secret").write_text("0" * 64)
    for service in _ours(compose).values():
        if service["command"] != ["serve", role]:
            continue
        environment = {key: str(value) for key, value in service["environment"].items()}
        environment["DICELEDGER_TOKEN_SECRET_FILE"] = str(tmp_path / "secret")
        environment["DICELEDGER_MASTER_KEYS"] = str(tmp_path)
        settings = load_settings(role, environment)  # type: ignore[arg-type]  # a literal's value
        assert settings.partitions == 8


def test_every_command_exists(compose: dict[str, Any]) -> None:
    """`serve match` and the others are commands of the program."""
    for name, service in _ours(compose).items():
        result = CliRunner().invoke(app, [*service["command"], "--help"])
        assert result.exit_code == 0, (name, result.output)


def test_each_match_process_says_where_it_is_reached(compose: dict[str, Any]) -> None:
    """Listening on every address, it cannot be guessed by the others."""
    for name, service in _ours(compose).items():
        if service["command"] == ["serve", "match"]:
            assert service["environment"]["DICELEDGER_ADVERTISE"] == f"{name}:50051"


def test_prometheus_scrapes_every_process(compose: dict[str, Any]) -> None:
    """Each process that serves is a target, at its metrics port."""
    text = (DEPLOY / "prometheus" / "prometheus.yml").read_text(encoding="utf-8")
    config = yaml.safe_load(text)
    targets = {
        target
        for job in config["scrape_configs"]
        for static in job["static_configs"]
        for target in static["targets"]
    }
    serving = {n for n, each in _ours(compose).items() if each["command"][0] == "serve"}
    assert targets == {f"{name}:9464" for name in serving}


def test_alerts_are_on_metrics_that_exist(compose: dict[str, Any]) -> None:
    """An alert on a metric that nobody exports never fires."""
    registry = CollectorRegistry()
    Metrics("match", registry=registry)
    exported = set()
    for family in registry.collect():
        suffixes = ("", "_total", "_bucket", "_sum", "_count")
        exported |= {family.name + suffix for suffix in suffixes}
    alerts = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text(encoding="utf-8"))
    for group in alerts["groups"]:
        for rule in group["rules"]:
            names = set(re.findall(r"diceledger_[a-z_]+", rule["expr"]))
            assert names <= exported, rule["alert"]
            partitions = compose["services"]["match-1"]["environment"]["DICELEDGER_PARTITIONS"]
            if rule["alert"] == "PartitionWithoutOwner":
                assert rule["expr"].endswith(f"< {partitions}")
