"""The version of the published policies and overrides, and the lock that changes take first."""

from datetime import datetime

from breakers.models import Dependency, Registry
from controlplane.core import authority
from controlplane.core.wakeups import wake


def lock() -> Registry:
    """Lock and return the registry row, until commit, so that versions follow the commit order."""
    return Registry.objects.select_for_update().get(pk=1)


def lock_with_teams() -> Registry:
    """Lock the teams against changes, and then the registry; for what belongs to an owner."""
    authority.lock_teams()
    return lock()


def advance(registry: Registry, now: datetime, *dependencies: Dependency) -> int:
    """Publish changes of these dependencies under the next registry version; return the version."""
    registry.version += 1
    registry.changed_at = now
    registry.save(update_fields=["version", "changed_at"])
    for dependency in dependencies:
        dependency.version = registry.version
    ids = [dependency.pk for dependency in dependencies]
    Dependency.objects.filter(pk__in=ids).update(version=registry.version)
    wake("config")
    return registry.version
