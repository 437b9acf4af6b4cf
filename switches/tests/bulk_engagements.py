"""Many switches in force, created as rows."""

from collections.abc import Iterable
from datetime import datetime

from django.db.models import F

from switches.models import Episode, Publication, Switch


def engage_alike(model: Episode, switch_ids: Iterable[str], **fields: object) -> list[Episode]:
    """Engage new switches like `model`, except `fields`, without audit entries or messages.

    Each change has a version of its own, in order.
    """
    ids = list(switch_ids)
    first = Publication.objects.get().version + 1
    Publication.objects.update(version=F("version") + len(ids))
    switches = [
        Switch(
            id=switch_id,
            scope=switch_id.partition(":")[0],
            key=switch_id.partition(":")[2],
            registered_at=model.engaged_at,
            requested_at=model.engaged_at,
            committed_at=_committed_at(model),
            version=version,
        )
        for version, switch_id in enumerate(ids, first)
    ]
    Switch.objects.bulk_create(switches)
    values = {
        field.attname: getattr(model, field.attname)
        for field in Episode._meta.concrete_fields
        if not field.primary_key
    }
    return Episode.objects.bulk_create(
        Episode(
            **{**values, "switch_id": switch.pk, "engaged_version": switch.version, **fields},
        )
        for switch in switches
    )


def _committed_at(model: Episode) -> datetime | None:
    return model.switch.committed_at
