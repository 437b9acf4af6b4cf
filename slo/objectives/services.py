"""Services that create, change, remove and find SLOs."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.errors import Conflict, NotFound
from controlplane.core.live.change_notices import notify_changed
from slo.counters import reader
from slo.models import Series, Sli, Slo
from slo.models.objective import PROMETHEUS, slo_resource

from . import documents, names
from .permissions import require_edit

MAX_SLOS = 20_000
MAX_SLICE_SLOS = 100
"""Most SLOs that count minutes: each reads all minutes of its period every minute."""


def put_slo(
    *,
    name: str,
    fields: Mapping[str, Any],
    actor: Actor,
    now: datetime,
    reason: str = "",
    version: int | None = None,
) -> Slo:
    """Create an SLO, or replace its fields; its counters stay.

    `fields` are validated by :func:`documents.validate`; equal fields change nothing. `version`, if
    given, must be the SLO's present version. Raise :class:`Forbidden`, :class:`InvalidInput` or
    :class:`Conflict`.

    The SLO is new if its `created_at` is `now`.
    """
    require_edit(actor, name)
    document = documents.validate(name, fields)
    with transaction.atomic():
        require_edit(actor, name)
        slo, row = write_slo(name, document, now, version=version)
        if row is not None:
            audit.record(**row, reason=reason.strip(), actor=actor, now=now)
        return slo


def write_slo(
    name: str, document: documents.Document, now: datetime, *, version: int | None = None
) -> tuple[Slo, dict[str, Any] | None]:
    """Create an SLO from a validated document, or replace its fields; call this in a transaction.

    Return the SLO and the arguments of :func:`audit.record`, None if nothing changed. The caller
    must write this audit row last in the transaction.
    """
    slo = _lock_slo(name)
    before = None if slo is None else documents.to_document(slo)
    if version is not None and (slo is None or slo.version != version):
        raise Conflict("Someone else changed it. Reload, then make your change again.")
    if slo is not None and before == document:
        return slo, None
    require_capacity(slo is None, counts_minutes(document) - counts_minutes(before))
    if slo is None:
        slo = _create(name, document, now)
    else:
        documents.apply_document(slo, document)
        slo.version += 1
        slo.changed_at = now
        slo.save()
    sli = reader.get_or_create_sli(slo)
    if before is not None and before["source"] != document["source"]:
        # Poll anew: the first sample of the new source is a baseline; earlier events stay. The SLI
        # is updated first, to wait for samples of the old source being recorded, which lock it.
        Sli.objects.filter(pk=sli.pk).update(
            polled_to=None, poll_after=None, source_error="", source_error_since=None
        )
        Series.objects.filter(sli=sli, source=PROMETHEUS).delete()
    notify_changed("slo", slo.name)
    action = "slo.created" if before is None else "slo.changed"
    target = audit_target(name)
    return slo, {"action": action, "target": target, "before": before, "after": document}


def remove_slo(*, name: str, reason: str = "", actor: Actor, now: datetime) -> Slo:
    """Remove an SLO; its open alerts resolve at the next evaluation.

    A new SLO of this name starts without history. Raise :class:`Forbidden` or :class:`NotFound`.
    """
    with transaction.atomic():
        require_edit(actor, name)
        slo = find_slo(name, lock=True)
        audit_row = mark_removed(slo, now)
        audit.record(**audit_row, reason=reason.strip(), actor=actor, now=now)
        return slo


def mark_removed(slo: Slo, now: datetime) -> dict[str, Any]:
    """Remove a locked SLO, and return action, target and before of the audit row."""
    before = documents.to_document(slo)
    slo.removed_at = slo.changed_at = now
    slo.save(update_fields=["removed_at", "changed_at"])
    notify_changed("slo", slo.name)
    return {"action": "slo.removed", "target": audit_target(slo.name), "before": before}


def find_slo(name: str, *, lock: bool = False) -> Slo:
    """Return the SLO of this name, and lock its row if `lock`. Raise :class:`NotFound`."""
    rows = Slo.objects.present().filter(name=name)
    rows = rows.select_for_update(no_key=True) if lock else rows
    slo = rows.first() if names.is_valid_name(name, documents.RESERVED_NAMES) else None
    if slo is None:
        raise NotFound("This SLO doesn't exist. Use PUT to create it.")
    return slo


def require_new(name: str) -> None:
    """Raise :class:`Conflict` if there is an SLO of this name."""
    present = Slo.objects.present().filter(name=name)
    if names.is_valid_name(name, documents.RESERVED_NAMES) and present.exists():
        raise Conflict(f"An SLO named {name} already exists. Use PUT to change it.")


def counts_minutes(document: documents.Document | None) -> bool:
    return document is not None and document["slice_target"] is not None


def require_capacity(more: int, more_with_minutes: int) -> None:
    """Raise :class:`Conflict` if new SLOs would exceed a limit.

    `more` is the number of new SLOs, `more_with_minutes` that of SLOs that start to count minutes.
    """
    present = Slo.objects.present()
    with_minutes = present.filter(slice_target__isnull=False)
    if more_with_minutes > 0 and with_minutes.count() + more_with_minutes > MAX_SLICE_SLOS:
        raise Conflict(f"At most {MAX_SLICE_SLOS} SLOs can count minutes. Leave out slice_target.")
    if more and present.count() + more > MAX_SLOS:
        raise Conflict(f"At most {MAX_SLOS:,} SLOs are allowed.")


def audit_target(name: str) -> str:
    """Return `slo:<name>`, which identifies an SLO in audit rows and message threads."""
    return slo_resource(name)


def _create(name: str, document: Mapping[str, Any], now: datetime) -> Slo:
    new = Slo(name=name, created_at=now, changed_at=now)
    documents.apply_document(new, document)
    Slo.objects.bulk_create([new], ignore_conflicts=True)
    slo = _lock_slo(name)
    if slo is None or slo.created_at != now or documents.to_document(slo) != document:
        raise Conflict(f"Someone else just created {name}. Open it first.")
    return slo


def _lock_slo(name: str) -> Slo | None:
    return Slo.objects.present().select_for_update(no_key=True).filter(name=name).first()
