"""A data plane's signing keys: read at the start, followed while it runs, listed for all."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from controlplane.core.signatures import SigningKey, verify
from controlplane.core.signing_keys import OVERLAP, KeyRing, SigningKeyFile, StoredKey
from controlplane.dataplane.config import Config
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.sync.signing_key_watch import SigningKeyWatch
from controlplane.dataplane.tests.served import BEARER, ask, plane

KEYS, SNAPSHOT = "/api/v1/keys", "/api/v1/snapshot"
NOON = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)
OLD, NEW = SigningKey(bytes(range(32))), SigningKey(bytes(range(1, 33)))


class Watched:
    """A plane that follows the keys of a file, or of the environment, by a clock set by hand."""

    def __init__(self, file: SigningKeyFile | None, keys: KeyRing | None = None) -> None:
        self.now = NOON
        self.plane: Plane = plane("feature:chat")
        config = Config(
            database_url="postgresql://nowhere/x",
            assume_role=None,
            redis_url="redis://nowhere",
            signing_keys=keys,
            signing_key_file=file,
        )
        self._watch = SigningKeyWatch(config, self.plane.state, lambda: self.now)

    def refresh(self) -> None:
        asyncio.run(self._watch.refresh())

    def signers(self) -> list[str]:
        """Return the ids of the keys that sign the snapshot, verified, the current one first."""
        listed = ask(self.plane, "GET", KEYS).json()["keys"]
        response = ask(self.plane, "GET", SNAPSHOT, BEARER)
        header = response.headers.get("switchgear-signature", "")
        for key in (OLD, NEW):
            if key.public.id in header:
                verify(header, response.content, {key.public.id: key.public})
        ids = [part.removeprefix("keyid=")[:16] for part in header.split(", ") if part]
        assert [key["id"] for key in listed] == ids
        return ids


@pytest.fixture
def file(tmp_path: Path) -> SigningKeyFile:
    made = SigningKeyFile(tmp_path / "secrets")
    made.read_or_create(lambda: OLD)
    return made


def test_keys_are_listed_without_a_token(file: SigningKeyFile) -> None:
    watched = Watched(file)
    watched.refresh()

    response = ask(watched.plane, "GET", KEYS)

    assert response.status_code == 200
    assert response.json() == {"keys": list(file.read().public_documents())}
    assert OLD.secret_text not in response.text
    assert ask(watched.plane, "HEAD", KEYS).status_code == 200
    assert ask(watched.plane, "POST", KEYS).status_code == 405


def test_without_keys_the_list_is_empty() -> None:
    assert ask(plane(), "GET", KEYS).json() == {"keys": []}


def test_the_first_look_generates_a_key(tmp_path: Path) -> None:
    watched = Watched(SigningKeyFile(tmp_path / "secrets"))

    watched.refresh()

    assert len(watched.signers()) == 1


def test_a_rotation_is_noticed_and_the_old_key_signs_for_a_day(file: SigningKeyFile) -> None:
    watched = Watched(file)
    watched.refresh()
    assert watched.signers() == [OLD.public.id]

    file.rotate(NEW, NOON)
    watched.refresh()

    assert watched.signers() == [NEW.public.id, OLD.public.id]
    watched.now = NOON + OVERLAP - timedelta(seconds=1)
    watched.refresh()
    assert watched.signers() == [NEW.public.id, OLD.public.id]
    watched.now = NOON + OVERLAP
    watched.refresh()
    assert watched.signers() == [NEW.public.id]


def test_keys_of_the_environment_sign_without_an_end() -> None:
    watched = Watched(None, KeyRing((StoredKey(NEW), StoredKey(OLD))))
    watched.now = NOON + timedelta(days=400)

    watched.refresh()

    assert watched.signers() == [NEW.public.id, OLD.public.id]


def test_a_lost_file_is_reported_and_not_replaced(file: SigningKeyFile) -> None:
    watched = Watched(file)
    watched.refresh()
    file.path.unlink()

    watched.refresh()

    assert watched.signers() == [OLD.public.id]
    assert not file.path.exists()
    (cause,) = watched.plane.state.own_causes()
    assert "signed with the keys that were read before" in cause.text


def test_an_unreadable_file_leaves_snapshots_unsigned_and_says_so(file: SigningKeyFile) -> None:
    watched = Watched(file)
    file.path.chmod(0o644)

    watched.refresh()

    assert watched.signers() == []
    (cause,) = watched.plane.state.own_causes()
    assert "chmod 600" in cause.text
    assert "not signed" in cause.text
    file.path.chmod(0o600)
    watched.refresh()
    assert watched.signers() == [OLD.public.id]
    assert not watched.plane.state.own_causes()
