"""Registration, change and removal of dependencies and their policies."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from breakers import names, publication
from breakers.models import Dependency
from breakers.policies import policy
from breakers.policies.parameters import COLUMNS
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.errors import Conflict, InvalidInput, NotFound
from controlplane.core.live.change_notices import notify_changed

from . import override_endings
from .permissions import require_edit, require_end


def put_dependency(
    *,
    caller: str,
    callee: str,
    fields: Mapping[str, Any],
    actor: Actor,
    now: datetime,
    reason: str = "",
) -> Dependency:
    """Register a dependency or replace its policy, and publish the change.

    `fields` are `on_outage` and the fields of :func:`policy.validate_policy`. Nothing is written if
    the policy is unchanged. A new dependency has `registered_at == now`. Raise :class:`Forbidden`
    or :class:`InvalidInput`.
    """
    require_names(caller, callee)
    require_edit(actor, names.dependency_resource(caller, callee))
    wanted = validate_fields(fields)
    present = Dependency.objects.for_pair(caller, callee).first()
    if present is not None and registered_state(present) == wanted:
        return present
    with transaction.atomic():
        registry = publication.lock()
        dependency = _get_or_create(caller, callee, now)
        require_edit(actor, dependency.resource)
        before = registered_state(dependency)
        if before == wanted:
            return dependency
        apply_policy(dependency, wanted, now)
        dependency.save()
        publication.advance(registry, now, dependency)
        notify_changed("breakers", dependency.name)
        audit.record(
            **audit_change(dependency, before, wanted), reason=reason.strip(), actor=actor, now=now
        )
        return dependency


def apply_policy(dependency: Dependency, wanted: Mapping[str, Any], now: datetime) -> None:
    """Set a validated policy and outage policy on a dependency, without saving it."""
    if not is_registered(dependency):
        dependency.registered_at = now
    document = {name: value for name, value in wanted.items() if name != "on_outage"}
    for column in COLUMNS:
        setattr(dependency, column, document[column])
    dependency.document, dependency.on_outage = document, wanted["on_outage"]
    dependency.changed_at, dependency.removed_at = now, None


def audit_change(
    dependency: Dependency, before: Mapping[str, Any] | None, after: Mapping[str, Any]
) -> dict[str, Any]:
    """Return action, target, before and after of the audit row about a policy change."""
    return {
        "action": "dependency.registered" if before is None else "dependency.changed",
        "target": dependency.resource,
        "before": before,
        "after": after,
    }


def remove_dependency(
    *, caller: str, callee: str, reason: str = "", actor: Actor, now: datetime
) -> Dependency:
    """Remove a dependency and its override. Raise :class:`Forbidden` or :class:`NotFound`."""
    with transaction.atomic():
        registry = publication.lock()
        dependency = lock_dependency(caller, callee)
        require_edit(actor, dependency.resource)
        audit_row = mark_removed(dependency, now)
        publication.advance(registry, now, dependency)
        notify_changed("breakers", dependency.name)
        override = override_endings.lock_live_override(dependency)
        if override is not None:
            require_end(actor, override, dependency)
            override_endings.end_override(override, override_endings.REMOVED, actor=actor, now=now)
            why = "The dependency was removed."
            override_endings.record_end(override, dependency, reason=why, actor=actor, now=now)
        audit.record(**audit_row, reason=reason.strip(), actor=actor, now=now)
        return dependency


def mark_removed(dependency: Dependency, now: datetime) -> dict[str, Any]:
    """Remove a locked dependency's policy, and return action, target and before of the audit row.

    The caller publishes the change.
    """
    before = audit_state(dependency)
    dependency.document, dependency.on_outage = {}, {}
    dependency.changed_at = dependency.removed_at = now
    dependency.save(update_fields=["document", "on_outage", "changed_at", "removed_at"])
    return {"action": "dependency.removed", "target": dependency.resource, "before": before}


def find_dependency(caller: str, callee: str) -> Dependency:
    """Return a registered or reported dependency. Raise :class:`NotFound`."""
    found = Dependency.objects.registered().for_pair(caller, callee).first()
    if found is None:
        raise _not_found()
    return found


def lock_dependency(caller: str, callee: str) -> Dependency:
    """Lock and return a dependency; lock the registry first. Raise :class:`NotFound`."""
    found = _lock_row(caller, callee)
    if found is None or found.removed_at is not None:
        raise _not_found()
    return found


def require_new(caller: str, callee: str) -> None:
    """Raise :class:`Conflict` if the dependency is registered; lock the registry until commit."""
    publication.lock()
    found = Dependency.objects.for_pair(caller, callee).first()
    if found is not None and is_registered(found):
        raise Conflict(f"{found.name} is already registered. Use PUT to change it.")


def is_registered(dependency: Dependency) -> bool:
    """Return True if the dependency has a policy and is not removed."""
    return dependency.removed_at is None and bool(dependency.document)


def audit_state(dependency: Dependency) -> dict[str, Any]:
    """Return a dependency's policy and outage policy, as the audit trail records them."""
    return {**dependency.document, "on_outage": dependency.on_outage}


def registered_state(dependency: Dependency) -> dict[str, Any] | None:
    """Return what :func:`audit_state` returns, or None if the dependency is not registered."""
    return audit_state(dependency) if is_registered(dependency) else None


def list_states() -> dict[str, dict[str, Any]]:
    """Return the policies of all registered dependencies, sorted by name."""
    rows = sorted(Dependency.objects.registered(), key=lambda row: row.name)
    return {row.name: audit_state(row) for row in rows if is_registered(row)}


def require_names(caller: str, callee: str) -> None:
    slugs = {"caller": caller, "callee": callee}
    if wrong := [field for field, slug in slugs.items() if not names.is_slug(slug)]:
        raise InvalidInput({field: [names.SLUG_RULE] for field in wrong})


def validate_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the complete policy and outage policy. Raise :class:`InvalidInput` with all errors."""
    errors: dict[str, list[str]] = {}
    document: dict[str, Any] = {}
    on_outage: dict[str, Any] = {}
    try:
        document = policy.validate_policy({k: v for k, v in fields.items() if k != "on_outage"})
    except InvalidInput as error:
        errors.update(error.errors)
    try:
        on_outage = policy.validate_outage(fields.get("on_outage"))
    except InvalidInput as error:
        errors.update(error.errors)
    if errors:
        raise InvalidInput(errors)
    return {**document, "on_outage": on_outage}


def require_capacity(more: int) -> None:
    """Raise :class:`Conflict` if registering `more` dependencies would exceed the limit.

    Reported dependencies don't count, so that reports can't block registrations.
    """
    if not more:
        return
    registered = Dependency.objects.registered().exclude(document={}).count()
    if registered + more > names.MAX_REGISTERED:
        limit = f"{names.MAX_REGISTERED:,}"
        raise Conflict(f"At most {limit} dependencies can be registered.")


def lock_dependencies(wanted: Collection[str]) -> dict[str, Dependency]:
    """Lock and return the existing dependencies with these names, in id order."""
    rows = Dependency.objects.select_for_update(no_key=True).select_named(wanted)
    return {row.name: row for row in rows.order_by("pk")}


def _get_or_create(caller: str, callee: str, now: datetime) -> Dependency:
    """Lock and return the dependency's row; create it if there is none."""
    found = _lock_row(caller, callee)
    if found is None or not is_registered(found):
        require_capacity(1)
    if found is None:
        new = Dependency(caller=caller, callee=callee, registered_at=now, changed_at=now)
        Dependency.objects.bulk_create([new], ignore_conflicts=True)
        found = _lock_row(caller, callee)
    if found is None:  # It was purged meanwhile.
        raise Conflict(f"{names.dependency_name(caller, callee)} was just changed; try again.")
    return found


def _lock_row(caller: str, callee: str) -> Dependency | None:
    """Lock and return a dependency, `FOR NO KEY UPDATE`, so that reports can still reference it."""
    rows = Dependency.objects.select_for_update(no_key=True)
    return rows.for_pair(caller, callee).first()


def _not_found() -> NotFound:
    return NotFound("This dependency doesn't exist. Use PUT to register it.")
