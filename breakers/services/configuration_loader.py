"""Loading of configuration files into the registry."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from breakers import names, publication
from breakers.models import Dependency, Registry, Service
from breakers.policies import configuration
from breakers.policies.parameters import COLUMNS
from controlplane.core.configuration.comparison import PlannedWrite, compare_and_write
from controlplane.core.configuration.readers import Loaded, LoadOptions
from controlplane.core.live.change_notices import notify_changed

from . import catalog, registry
from .load_plan import LoadPlan, build_plan

WRITTEN_AT_ONCE = 500
POLICY = (
    *COLUMNS, "document", "on_outage", "version", "registered_at", "changed_at", "removed_at",
)  # fmt: skip
"""Columns of a dependency that loading writes; counters are left alone."""


def load_files(texts: Mapping[str, str], options: LoadOptions) -> Loaded:
    """Register all that the configuration files define, under one registry version.

    Entries that are not in the files are left alone. A dry run only returns the changes.

    Raise :class:`InvalidInput`, whose errors name file and key, or :class:`Conflict` if there would
    be too many dependencies; then nothing is changed.
    """
    folder = configuration.read_files(texts)

    def write(plan: LoadPlan) -> list[dict[str, Any]]:
        audit_rows = []
        for entries, found in (
            (catalog.SERVICES, plan.services),
            (catalog.CHANNELS, plan.channels),
        ):
            entries.write({one.name: one.after for one in found.writes}, options.now)
            audit_rows += [
                entries.audit_change(one.name, one.before, one.after) for one in found.writes
            ]
        return audit_rows + _write_dependencies(plan.dependencies.writes, options.now)

    return compare_and_write(partial(build_plan, folder, options), publication.lock, write, options)


def is_registry_empty() -> bool:
    """Return True if nothing was ever registered."""
    return not (Registry.objects.filter(version__gt=0).exists() or Service.objects.exists())


def _write_dependencies(writes: Sequence[PlannedWrite], now: datetime) -> list[dict[str, Any]]:
    """Write the planned policies under one registry version; return their audit rows."""
    if not writes:
        return []
    present = registry.lock_dependencies([one.name for one in writes])
    version = publication.advance(publication.lock(), now)
    rows = []
    for one in writes:
        caller, callee = names.split_name(one.name) or ("", "")
        row = present.get(one.name) or Dependency(caller=caller, callee=callee)
        registry.apply_policy(row, one.after, now)
        row.version = version
        rows.append(row)
    # A report may create one of the rows meanwhile; then that row is updated. Without ids, caller
    # and callee decide which row that is.
    names_and_policy = ("caller", "callee", *POLICY)
    Dependency.objects.bulk_create(
        [Dependency(**{name: getattr(row, name) for name in names_and_policy}) for row in rows],
        update_conflicts=True,
        unique_fields=["caller", "callee"],
        update_fields=POLICY,
        batch_size=WRITTEN_AT_ONCE,
    )
    notify_changed("breakers", *(row.name for row in rows))
    return [
        registry.audit_change(row, one.before, one.after)
        for row, one in zip(rows, writes, strict=True)
    ]
