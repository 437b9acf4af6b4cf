"""`manage.py keys`: the public keys of a machine, and their replacement."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import orjson
import pytest
from django.core.management import CommandError, call_command

from controlplane.core.audit.models import AuditEntry
from controlplane.core.signatures import MAX_SIGNATURES, SigningKey
from controlplane.core.signing_keys import KeyRing, SigningKeyFile, StoredKey

pytestmark = pytest.mark.django_db

OLD = SigningKey(bytes(range(32)))


@pytest.fixture
def file(tmp_path: Path, settings) -> SigningKeyFile:
    settings.ENV = replace(settings.ENV, data_dir=tmp_path, signing_keys=None)
    made = SigningKeyFile(tmp_path / "secrets")
    made.read_or_create(lambda: OLD)
    return made


def run(*arguments: str) -> tuple[list[list[str]], str]:
    """Return the words of each line of the output, and what was written to stderr."""
    out, notes = StringIO(), StringIO()
    call_command("keys", *arguments, stdout=out, stderr=notes)
    return [line.split() for line in out.getvalue().splitlines()], notes.getvalue()


@pytest.mark.parametrize("arguments", [[], ["list"]])
def test_keys_are_listed_without_the_private_part(file: SigningKeyFile, arguments) -> None:
    lines, notes = run(*arguments)

    assert lines == [[OLD.public.id, "current", str(OLD.public)]]
    assert notes == ""


def test_the_first_list_generates_the_key_that_processes_will_use(file: SigningKeyFile) -> None:
    file.path.unlink()

    lines, _ = run()

    assert lines[0][0] == file.read().current.public.id != OLD.public.id


def test_a_rotation_is_audited_and_the_old_key_has_an_end(file: SigningKeyFile) -> None:
    lines, notes = run("rotate")

    new = file.read().current
    assert [line[0] for line in lines] == [new.public.id, OLD.public.id]
    assert lines[1][1] == "until"
    assert run()[0] == lines
    assert "SWITCHGEAR_PUBLIC_KEY" in notes
    entry = AuditEntry.objects.get(action="signing_key.rotated")
    assert entry.actor_name.startswith("shell:")
    assert orjson.loads(entry.before) == {"key": OLD.public.id}
    assert orjson.loads(entry.after) == {"key": new.public.id, "drop_old": False}
    assert new.secret_text not in f"{lines}{notes}"


def test_keys_whose_day_is_over_are_not_listed(file: SigningKeyFile) -> None:
    new = SigningKey.generate()
    file.rotate(new, datetime.now(UTC) - timedelta(hours=25))

    assert [line[0] for line in run()[0]] == [new.public.id]


def test_leaked_keys_end_at_once(file: SigningKeyFile) -> None:
    lines, _ = run("rotate", "--drop-old")

    assert len(lines) == 1
    assert len(file.read().keys) == 1
    entry = AuditEntry.objects.get(action="signing_key.rotated")
    assert orjson.loads(entry.after)["drop_old"] is True


def test_a_refused_rotation_changes_nothing_and_leaves_no_audit_row(file: SigningKeyFile) -> None:
    for _ in range(MAX_SIGNATURES - 1):
        run("rotate")
    before, rows = file.read(), AuditEntry.objects.count()

    with pytest.raises(CommandError, match="8 keys sign already"):
        run("rotate")

    assert file.read() == before
    assert AuditEntry.objects.count() == rows


def test_a_file_that_others_can_read_stops_the_command(file: SigningKeyFile) -> None:
    file.path.chmod(0o644)

    with pytest.raises(CommandError, match="chmod 600"):
        run("rotate")


def test_with_keys_in_the_environment_the_command_says_what_to_set(tmp_path, settings) -> None:
    ring = KeyRing((StoredKey(OLD),))
    settings.ENV = replace(settings.ENV, data_dir=tmp_path, signing_keys=ring)

    lines, notes = run("rotate")

    (name, _, text), (fallbacks, _, older) = (line[0].partition("=") for line in lines)
    assert (name, fallbacks) == ("SNAPSHOT_SIGNING_KEY", "SNAPSHOT_SIGNING_KEY_FALLBACKS")
    assert older == OLD.secret_text
    assert str(SigningKey.parse(text).public) in notes
    assert not (tmp_path / "secrets").exists()
    assert not AuditEntry.objects.filter(action="signing_key.rotated").exists()
    assert run()[0] == [[OLD.public.id, "current", str(OLD.public)]]
