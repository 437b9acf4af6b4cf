"""Load, comparison and export of configuration files, in one transaction for all apps."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction

from controlplane.core import canonical, provision
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.audit.models import AuditEntry
from controlplane.core.configuration import files, permissions
from controlplane.core.configuration.models import SampleEntry
from controlplane.core.configuration.readers import (
    CHANGED,
    KEPT,
    NEW,
    READERS,
    REASON,
    SAME,
    Document,
    Loaded,
    LoadOptions,
    list_files,
)
from controlplane.core.configuration.yaml_writer import schema_name, write_document
from controlplane.core.errors import Conflict, InvalidInput

SHIPPED = "config"
AUDIT_TARGET = "configuration"
CONSOLE = ("user", "token", "slack")
"""Actor types whose changes count as manual."""

log = structlog.get_logger(__name__)


def load_folder(folder: Path, options: LoadOptions, *, only: str = "") -> Loaded:
    """Load the configuration files in a folder, all or those of the reader `only`.

    The errors are those of :func:`load_texts`.
    """
    readers = [reader for reader in READERS.values() if only in ("", reader.name)]
    names = [name for reader in readers for name in reader.files]
    texts = files.read_files(folder, names)
    if not texts:
        raise InvalidInput({"folder": [f"The folder has none of {', '.join(names)}."]})
    return load_texts(texts, options)


def load_texts(
    texts: Mapping[str, str], options: LoadOptions, *, plan: str = "", reason: str = ""
) -> Loaded:
    """Load configuration files, given as text by file name, in one transaction.

    `plan` is the digest of a plan (:func:`digest_plan`) that must still be right.

    Raises :class:`Forbidden`, :class:`InvalidInput` with file and key of every problem, and
    :class:`Conflict` if a limit is reached or the plan is outdated; then nothing has changed.
    """
    scope = permissions.READ if options.dry_run else permissions.WRITE
    permissions.require_admin(options.actor, scope)
    _require_known(texts)
    errors: dict[str, list[str]] = {}
    loaded = Loaded()
    with transaction.atomic():
        if not options.dry_run:
            provision.take_lock()  # Loads run one after another, so that each keeps to its plan.
        for reader in READERS.values():
            own = {name: texts[name] for name in reader.files if name in texts}
            if not own:
                continue
            try:
                loaded += reader.load(own, options)
            except InvalidInput as error:
                errors.update(error.errors)
        if errors:
            raise InvalidInput(errors)
        if plan not in ("", digest_plan(texts, loaded)):
            raise Conflict(
                "The configuration has changed since this plan was made. Compare again.",
                plan=digest_plan(texts, loaded),
            )
        if not options.dry_run:
            loaded = loaded.complete()
            _record_load(texts, loaded, reason, options)
    return loaded


def digest_plan(texts: Mapping[str, str], loaded: Loaded) -> str:
    """Return the digest of what a load does: the files, and each change with its differences."""
    changes = [
        [one.kind, one.name, one.outcome, one.differences, one.edited] for one in loaded.changes
    ]
    return canonical.digest({"files": dict(texts), "changes": changes})


def export_texts() -> dict[str, str]:
    """Return the current configuration as texts by file name; secrets are left out.

    Loading it changes nothing.
    """
    with transaction.atomic():
        documents = {
            name: document
            for reader in READERS.values()
            for name, document in reader.export().items()
        }
    return {name: write_document(name, document) for name, document in documents.items()}


def build_schemas() -> dict[str, Document]:
    """Return the JSON Schema of each configuration file, by the schema's file name."""
    return {
        schema_name(name): schema
        for reader in READERS.values()
        for name, schema in reader.schemas().items()
    }


def load_shipped(name: str = "", *, actor: Actor, now: datetime) -> Loaded:
    """Load what is missing of the configuration that Switchgear ships, of one app or of all.

    The new entries are marked as samples.
    """
    folder = Path(settings.BASE_DIR) / SHIPPED
    files_of_apps = [reader.files for reader in READERS.values() if name in ("", reader.name)]
    if not any((folder / file).is_file() for own in files_of_apps for file in own):
        return Loaded()
    with transaction.atomic():
        loaded = load_folder(folder, LoadOptions(actor=actor, now=now, only_new=True), only=name)
        SampleEntry.objects.bulk_create(
            [
                SampleEntry(kind=one.kind, name=one.name, loaded_at=now)
                for one in loaded.changes
                if one.outcome == NEW
            ],
            update_conflicts=True,
            unique_fields=["kind", "name"],
            update_fields=["loaded_at"],
        )
    log.info("config.loaded", folder=SHIPPED, app=name or "all", entries=loaded.count(NEW))
    return loaded


def find_manual_edits(actions: Sequence[str]) -> dict[str, str]:
    """Return who last changed each entry by hand, and when, by the entry's audit target.

    `actions` are the audit actions of such changes, for example `service.changed`.
    """
    last = (
        AuditEntry.objects.filter(action__in=actions)
        .order_by("target", "-id")
        .distinct("target")
        .values_list("target", "actor_type", "actor_name", "action", "at", "reason")
    )
    return {
        target: f"{action.partition('.')[2]} by {kind}:{name} on {at:%Y-%m-%d %H:%M} UTC"
        for target, kind, name, action, at, reason in last
        if kind in CONSOLE and reason != REASON
    }


def _require_known(texts: Mapping[str, str]) -> None:
    known = list_files()
    errors = {
        name[:200]: [f"Unknown file; use {', '.join(known)}."]
        for name in texts
        if name not in known
    }
    for name, text in texts.items():
        if len(text.encode(errors="surrogatepass")) > files.MAX_FILE_BYTES:
            errors[name[:200]] = [f"Larger than {files.MAX_FILE_BYTES // 1024} KiB."]
    if not texts:
        errors["files"] = [f"Name at least one of {', '.join(known)}."]
    if errors:
        raise InvalidInput(errors)


def _record_load(
    texts: Mapping[str, str], loaded: Loaded, reason: str, options: LoadOptions
) -> None:
    """Write the audit rows of the entries, and one of the load as a whole if anything changed."""
    rows = [{"reason": REASON, **row} for row in loaded.audit_rows]
    if loaded.count(NEW, CHANGED):
        summary: dict[str, Any] = {
            "action": "configuration.loaded",
            "target": AUDIT_TARGET,
            "reason": reason.strip() or REASON,
            "after": {
                "plan": digest_plan(texts, loaded),
                "files": {name: _hash(text) for name, text in sorted(texts.items())},
                **{outcome: loaded.count(outcome) for outcome in (NEW, CHANGED, SAME, KEPT)},
            },
        }
        rows.append(summary)
    audit.record_many([{**row, "actor": options.actor, "now": options.now} for row in rows])


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
