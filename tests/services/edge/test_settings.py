"""Settings: every mistake is named, with its value and what would be right."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from services.common.settings import (
    Address,
    SettingsError,
    load_settings,
    misspelt_variables,
    parse_address,
    settings_table,
)
from tests.services.edge.serving import secret_file

SECRET = "s" * 40


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Enough for a match process."""
    return {
        "DICELEDGER_KAFKA": "one:9092, two:9093",
        "DICELEDGER_REDIS_URL": "redis://:geheim@redis:6379/0",
        "DICELEDGER_TOKEN_SECRET": SECRET,
        "DICELEDGER_MASTER_KEYS": str(tmp_path),
    }


def problems(environ: dict[str, str], role: str = "match") -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        load_settings(role, environ)  # type: ignore[arg-type]  # the test's own roles are real
    return caught.value.problems


def test_a_complete_environment_is_read(environ: dict[str, str]) -> None:
    settings = load_settings("match", environ | {"DICELEDGER_PARTITIONS": "512"})
    assert settings.kafka == (Address("one", 9092), Address("two", 9093))
    assert settings.partitions == 512
    assert settings.listen == Address("127.0.0.1", 50051)
    assert settings.topic == "match-events"
    assert settings.node_name


def test_everything_wrong_is_listed_at_once(environ: dict[str, str]) -> None:
    wrong = environ | {
        "DICELEDGER_LISTEN": "localhost",
        "DICELEDGER_PARTITIONS": "0",
        "DICELEDGER_LOG_FORMAT": "xml",
        "DICELEDGER_TLS_CERT": "/nowhere/cert.pem",
        "DICELEDGER_KAFKA": "",
        "DICELEDGER_TOPIC": "a b",
    }
    told = "\n".join(problems(wrong))
    assert "DICELEDGER_LISTEN: 'localhost' is not host:port" in told
    assert "DICELEDGER_PARTITIONS: '0' is not a whole number from 1 to 4096." in told
    assert "DICELEDGER_LOG_FORMAT: 'xml' is not one of json, console." in told
    assert "DICELEDGER_TLS_CERT: '/nowhere/cert.pem' is not the path of a file" in told
    assert "DICELEDGER_KAFKA is not set. Kafka brokers to begin with" in told
    assert "DICELEDGER_TOPIC: 'a b' is not" in told


def test_a_secret_is_never_shown(environ: dict[str, str]) -> None:
    settings = load_settings("match", environ)
    assert SECRET not in repr(settings)
    assert "geheim" not in repr(settings)
    wrong = environ | {
        "DICELEDGER_TOKEN_SECRET": "tooshort",
        "DICELEDGER_REDIS_URL": "http://:geheim@x",
    }
    told = "\n".join(problems(wrong))
    assert "DICELEDGER_TOKEN_SECRET: the value is shorter than 32 bytes." in told
    assert "DICELEDGER_REDIS_URL: the value is not redis://" in told
    assert "tooshort" not in told
    assert "geheim" not in told


def test_the_secret_may_lie_in_a_file(environ: dict[str, str], tmp_path: Path) -> None:
    del environ["DICELEDGER_TOKEN_SECRET"]
    environ["DICELEDGER_TOKEN_SECRET_FILE"] = str(secret_file(tmp_path / "t", SECRET + "\n"))
    assert load_settings("match", environ).token_secret == SECRET.encode()
    both = environ | {"DICELEDGER_TOKEN_SECRET": SECRET}
    assert "both set" in problems(both)[0]
    missing = environ | {"DICELEDGER_TOKEN_SECRET_FILE": str(tmp_path / "no")}
    assert "No such file" in problems(missing)[0]
    empty = environ | {"DICELEDGER_TOKEN_SECRET_FILE": str(secret_file(tmp_path / "e", "\n"))}
    assert "is empty" in problems(empty)[0]


def test_some_key_for_tokens_is_needed_by_those_who_check_them(environ: dict[str, str]) -> None:
    del environ["DICELEDGER_TOKEN_SECRET"]
    assert "no token could be checked" in problems(environ)[0]
    assert "no token could be checked" in problems(environ, "replay")[0]
    assert load_settings("projector", environ).token_keys() == ()


def test_a_public_key_is_enough(environ: dict[str, str], tmp_path: Path) -> None:
    del environ["DICELEDGER_TOKEN_SECRET"]
    pem = (
        Ed25519PrivateKey.generate()
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    (tmp_path / "good.pem").write_bytes(pem)
    environ["DICELEDGER_TOKEN_PUBLIC_KEYS"] = str(tmp_path / "good.pem")
    assert load_settings("replay", environ).token_keys()[0].algorithm == "EdDSA"
    (tmp_path / "bad.pem").write_text("rubbish")
    environ["DICELEDGER_TOKEN_PUBLIC_KEYS"] = str(tmp_path / "bad.pem")
    assert "bad.pem: not a PEM public key" in problems(environ, "replay")[0]


def test_a_process_does_not_look_at_secrets_that_are_not_its_own() -> None:
    environ = {
        "DICELEDGER_KAFKA": "kafka:9092",
        "DICELEDGER_TOKEN_SECRET_FILE": "/not/mounted/here",
        "DICELEDGER_MASTER_KEYS": "/not/mounted/either",
    }
    assert load_settings("topics", environ).token_secret == b""


def test_a_wildcard_address_needs_an_advertised_one(environ: dict[str, str]) -> None:
    environ["DICELEDGER_LISTEN"] = "0.0.0.0:50051"
    assert "DICELEDGER_ADVERTISE is not set" in problems(environ)[0]
    settings = load_settings("match", environ | {"DICELEDGER_ADVERTISE": "match-1:50051"})
    assert settings.advertise == Address("match-1", 50051)
    assert load_settings("replay", environ).listen.is_wildcard


def test_certificate_and_key_go_together(environ: dict[str, str], tmp_path: Path) -> None:
    file = str(secret_file(tmp_path / "x.pem", "x"))
    assert "go together" in problems(environ | {"DICELEDGER_TLS_CERT": file})[0]
    assert "needs" in problems(environ | {"DICELEDGER_TLS_CLIENT_CA": file})[0]


def test_kafka_s_security_lies_in_a_file(environ: dict[str, str], tmp_path: Path) -> None:
    path = secret_file(tmp_path / "k", '{"security_protocol": "SASL_SSL", "sasl_x": "geheim"}')
    environ["DICELEDGER_KAFKA_SECURITY_FILE"] = str(path)
    settings = load_settings("projector", environ)
    assert settings.kafka_security == {"security_protocol": "SASL_SSL", "sasl_x": "geheim"}
    assert "geheim" not in repr(settings)
    for text, told in (
        ('{"sasl_x": geheim}', "is not a file with a JSON object."),
        ("[]", "is not a file with a JSON object."),
        ('{"acks": 0}', "security_, sasl_ and ssl_ options only, not acks"),
    ):
        path.write_text(text)
        assert told in problems(environ, "projector")[0]
        assert "geheim" not in problems(environ, "projector")[0]
    environ["DICELEDGER_KAFKA_SECURITY_FILE"] = str(tmp_path / "none")
    assert "a file that exists" in problems(environ, "projector")[0]


@pytest.mark.parametrize("text", ["x:1", "10.0.0.1:65535", "[::1]:0", "a-b.c:50051"])
def test_addresses(text: str) -> None:
    assert str(parse_address(text)) == text


@pytest.mark.parametrize("text", ["x", "x:", ":1", "x:65536", "x:-1", "::1:5", "x y:1", "x:١"])
def test_no_addresses(text: str) -> None:
    with pytest.raises(ValueError, match="host:port"):
        parse_address(text)


def test_a_misspelt_variable_is_noticed_and_a_foreign_one_is_not() -> None:
    environ = {
        "DICELEDGER_PARTITION": "8",
        "DICELEDGER_SERVICE_HOST": "10.0.0.1",
        "DICELEDGER_TOPIC": "x",
        "HOME": "/root",
    }
    assert misspelt_variables(environ) == {"DICELEDGER_PARTITION": "DICELEDGER_PARTITIONS"}


def test_every_setting_is_documented() -> None:
    for variable, _, meaning in settings_table():
        assert variable.startswith("DICELEDGER_")
        assert meaning.endswith("."), variable
