"""Import of SLOs from documents of OpenSLO, Sloth and Pyrra."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.configuration import files
from controlplane.core.errors import InvalidInput

from . import services, spec_files
from .permissions import SCOPE, require_edit

REASON = "Import of SLO documents"
CREATED, CHANGED, SAME = "created", "changed", "same"


def import_slos(
    raw: Sequence[Any], *, server: str = "", actor: Actor, now: datetime, reason: str = ""
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Create or change every SLO in OpenSLO, Sloth or Pyrra documents, or none if one is invalid.

    Return the outcome by SLO name (`created`, `changed`, `same`), and remarks for people. `server`
    is the Prometheus URL for documents that name none. Raise :class:`Forbidden`,
    :class:`InvalidInput` naming document and field, or :class:`Conflict`.
    """
    if not actor.is_person:
        actor.require(SCOPE)
    found = spec_files.parse_documents(raw, server=server)
    outcomes, rows = {}, []
    with transaction.atomic():
        for name in sorted(found.slos):
            require_edit(actor, name)
            _, row = services.write_slo(name, found.slos[name], now)
            outcomes[name] = SAME if row is None else row["action"].partition(".")[2]
            rows += [row] if row else []
        audit_reason = reason.strip() or REASON
        audit.record_many(
            [{**row, "reason": audit_reason, "actor": actor, "now": now} for row in rows]
        )
    return outcomes, found.remarks


def parse_text(text: str) -> list[Any]:
    """Return the documents of a YAML or JSON text. Raise :class:`InvalidInput`."""
    errors: dict[str, list[str]] = {}
    found = files.parse_documents("text", text, errors)
    if errors:
        raise InvalidInput(errors)
    return found
