"""The file of signing keys: generated once, replaced with an overlap, private."""

import stat
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest

from controlplane.core.private_files import InvalidFile
from controlplane.core.signatures import MAX_SIGNATURES, PublicKey, SigningKey, sign, verify
from controlplane.core.signing_keys import (
    OVERLAP,
    KeyRing,
    SigningKeyFile,
    StoredKey,
    TooManyKeys,
)

NOON = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
OLD, NEW, NEWEST = (SigningKey(bytes(range(start, start + 32))) for start in range(3))


def ids(ring: KeyRing) -> list[str]:
    return [key.public.id for key in ring.signing_keys]


def test_the_first_process_generates_a_private_key_and_all_use_it(tmp_path: Path) -> None:
    found: list[KeyRing] = []
    ready = threading.Barrier(8)

    def start() -> None:
        ready.wait()
        found.append(SigningKeyFile(tmp_path / "secrets").read_or_create())

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 8
    assert len({tuple(ids(ring)) for ring in found}) == 1
    (file,) = (tmp_path / "secrets").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_replaced_key_signs_for_a_day_after_the_new_one(tmp_path: Path) -> None:
    file = SigningKeyFile(tmp_path)
    file.read_or_create(lambda: OLD)

    ring = file.rotate(NEW, NOON)

    assert ring == file.read()
    assert ids(ring) == [NEW.public.id, OLD.public.id]
    assert ids(ring.valid_at(NOON + OVERLAP - SECOND)) == ids(ring)
    assert ids(ring.valid_at(NOON + OVERLAP)) == [NEW.public.id]


def test_during_the_overlap_a_client_with_either_key_verifies() -> None:
    ring = KeyRing((StoredKey(OLD),)).rotate(NEW, NOON)

    header = sign(b"content", ring.signing_keys)

    for key in (OLD, NEW):
        assert verify(header, b"content", {key.public.id: key.public}) == key.public


def test_the_next_rotation_removes_keys_whose_day_is_over(tmp_path: Path) -> None:
    file = SigningKeyFile(tmp_path)
    file.read_or_create(lambda: OLD)
    file.rotate(NEW, NOON)

    assert ids(file.rotate(NEWEST, NOON + OVERLAP)) == [NEWEST.public.id, NEW.public.id]
    assert OLD.secret_text not in file.path.read_text()


def test_a_leaked_key_ends_at_once(tmp_path: Path) -> None:
    file = SigningKeyFile(tmp_path)
    file.read_or_create(lambda: OLD)

    assert ids(file.rotate(NEW, NOON, drop_old=True)) == [NEW.public.id]
    assert OLD.secret_text not in file.path.read_text()


def test_no_more_keys_sign_than_clients_verify() -> None:
    ring = KeyRing((StoredKey(OLD),))
    for _ in range(MAX_SIGNATURES - 1):
        ring = ring.rotate(SigningKey.generate(), NOON)

    with pytest.raises(TooManyKeys):
        ring.rotate(NEW, NOON)
    assert len(ring.rotate(NEW, NOON + OVERLAP).keys) == 2


def test_public_documents_have_no_private_key() -> None:
    current, old = KeyRing((StoredKey(OLD),)).rotate(NEW, NOON).public_documents()

    assert current == {
        "id": NEW.public.id,
        "algorithm": "Ed25519",
        "public_key": str(NEW.public),
        "current": True,
        "valid_until": None,
    }
    assert PublicKey.parse(old["public_key"]) == OLD.public
    assert (old["current"], old["valid_until"]) == (False, "2026-11-29T12:00:00.000000Z")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"keys": []}',
        b'{"keys": [{"private_key": "c2hvcnQ=", "retired_at": null}]}',
        b'{"keys": [{"private_key": 7, "retired_at": null}]}',
        orjson.dumps(
            {"keys": [{"private_key": OLD.secret_text, "retired_at": "2026-11-28T12:00:00Z"}]}
        ),
        orjson.dumps({"keys": [{"private_key": OLD.secret_text, "retired_at": "yesterday"}]}),
    ],
)
def test_an_invalid_file_is_refused_without_revealing_it(tmp_path: Path, content: bytes) -> None:
    file = SigningKeyFile(tmp_path)
    file.path.write_bytes(content)
    file.path.chmod(0o600)

    with pytest.raises(InvalidFile) as caught:
        file.read_or_create()

    assert OLD.secret_text not in str(caught.value)


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    file = SigningKeyFile(tmp_path)
    file.read_or_create()
    file.path.chmod(0o640)

    with pytest.raises(InvalidFile, match="chmod 600"):
        file.read_or_create()
