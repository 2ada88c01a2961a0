"""Master keys: kept private, rotated, never overwritten, never shown."""

from pathlib import Path

import pytest

from services.common.errors import StartupError
from services.common.keys import create_key, ensure_key_ring, load_key_ring
from tests.services.edge.serving import secret_file


def test_the_first_key_is_made_once_and_is_private(tmp_path: Path) -> None:
    first = ensure_key_ring(tmp_path / "keys")
    again = ensure_key_ring(tmp_path / "keys")
    path = tmp_path / "keys" / "k1.key"
    assert first == again
    assert (first.current, len(first.current_key)) == ("k1", 32)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in path.parent.iterdir()] == ["k1.key"]


def test_new_matches_use_the_newest_key_and_old_ones_find_theirs(tmp_path: Path) -> None:
    for key_id in ("k2", "k10", "k1"):
        create_key(tmp_path, key_id)
    ring = load_key_ring(tmp_path)
    assert ring.current == "k10"
    assert ring.key("k2") not in (None, ring.current_key)
    assert ring.key("k3") is None
    assert load_key_ring(tmp_path, "k2").current == "k2"


def test_raw_and_hexadecimal_keys_are_read(tmp_path: Path) -> None:
    secret_file(tmp_path / "hex.key", "ab" * 32 + "\n")
    (tmp_path / "raw.key").write_bytes(bytes(range(32)))
    (tmp_path / "raw.key").chmod(0o600)
    ring = load_key_ring(tmp_path)
    assert ring.key("hex") == b"\xab" * 32
    assert ring.key("raw") == bytes(range(32))


def test_no_key_is_in_a_repr(tmp_path: Path) -> None:
    secret_file(tmp_path / "k1.key", "ab" * 32)
    assert "xab" not in repr(load_key_ring(tmp_path))


def test_a_key_that_everybody_may_read_is_refused(tmp_path: Path) -> None:
    secret_file(tmp_path / "k1.key", "ab" * 32).chmod(0o644)
    with pytest.raises(StartupError, match=r"chmod 600 .*k1\.key"):
        load_key_ring(tmp_path)


def test_a_damaged_key_is_named_but_not_shown(tmp_path: Path) -> None:
    secret_file(tmp_path / "k1.key", "geheim")
    with pytest.raises(StartupError, match=r"k1\.key is damaged: a key is 64 hex") as caught:
        load_key_ring(tmp_path)
    assert "geheim" not in str(caught.value)


def test_an_existing_key_is_never_overwritten(tmp_path: Path) -> None:
    create_key(tmp_path)
    with pytest.raises(StartupError, match="File exists"):
        create_key(tmp_path)


def test_missing_keys_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="no master key"):
        load_key_ring(tmp_path)
    create_key(tmp_path)
    with pytest.raises(StartupError, match=r"'k7' is not in .*; there are k1"):
        load_key_ring(tmp_path, "k7")
    with pytest.raises(StartupError, match="key id"):
        create_key(tmp_path, "../evil")
