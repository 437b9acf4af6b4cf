"""Import of SLOs from OpenSLO documents, all or none."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.configuration import files
from controlplane.core.errors import InvalidInput, NotFound
from slo.models import Slo
from slo.objectives import documents, services
from slo.objectives.permissions import require_admin

from . import exporter, parser

REASON = "OpenSLO import"
CREATED, CHANGED, SAME = "created", "changed", "same"


@dataclass(frozen=True)
class ImportResult:
    """The outcome of each SLO (`created`, `changed`, `same`), and remarks for people."""

    outcomes: dict[str, str]
    remarks: tuple[str, ...]


def import_slos(
    given: Sequence[Any], *, server: str = "", actor: Actor, now: datetime, reason: str = ""
) -> ImportResult:
    """Create or change every SLO of these documents; others are left alone.

    `server` is the Prometheus for documents that name none. Raise :class:`Forbidden`,
    :class:`InvalidInput`, which names document and field, or :class:`Conflict`; then nothing
    has changed.
    """
    require_admin(actor)
    found = parser.parse_documents(given, server=server)
    outcomes, rows = {}, []
    with transaction.atomic():
        for name in sorted(found.slos):
            _, row = services.write_slo(name, found.slos[name], now)
            outcomes[name] = SAME if row is None else row["action"].partition(".")[2]
            rows += [row] if row else []
        because = reason.strip() or REASON
        audit.record_many([{**row, "reason": because, "actor": actor, "now": now} for row in rows])
    return ImportResult(outcomes, found.remarks)


def parse_text(text: str) -> list[Any]:
    """Return the documents of a YAML or JSON text. Raise :class:`InvalidInput`."""
    errors: dict[str, list[str]] = {}
    found = files.parse_documents("text", text, errors)
    if errors:
        raise InvalidInput(errors)
    return found


def export_slos(names: Collection[str] = ()) -> list[documents.Document]:
    """Return every SLO, or those of these names, as OpenSLO documents. Raise :class:`NotFound`."""
    rows = Slo.objects.present().order_by("name")
    if names:
        rows = rows.filter(name__in=names)
    found = {slo.name: documents.to_document(slo) for slo in rows}
    if missing := sorted(set(names) - found.keys()):
        raise NotFound(f"There is no SLO {missing[0]}.")
    return exporter.export_documents(found)
