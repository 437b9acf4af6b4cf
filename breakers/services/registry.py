"""Registering a dependency and its policy, changing it, and taking it out again."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from breakers import names, publication
from breakers.models import Dependency
from breakers.policies import policy
from breakers.services import endings
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.errors import Conflict, InvalidInput, NotFound
from controlplane.core.live.notes import changed

Record = Callable[..., object]
"""What writes an audit row, or notes it for later: :func:`audit.record` and its like."""

SCOPE = "breakers:write"
MOST_DEPENDENCIES = 20_000
COLUMNS = (
    "protocol", "criticality", "mode", "owner", "runbook_url", "notes", "managed_by",
)  # fmt: skip
"""What stands in the document and in a column of its own as well."""


def put(
    *,
    caller: str,
    callee: str,
    fields: Mapping[str, Any],
    actor: Actor,
    now: datetime,
    reason: str = "",
    record: Record = audit.record,
) -> Dependency:
    """Register the dependency, or have its policy say exactly this from now on.

    `fields` are those of :func:`policy.checked`, and `on_outage`. Whoever depends on it is told at
    once; a policy that is the same already changes nothing. Raises :class:`Forbidden` or
    :class:`InvalidInput`. One that is registered just now has `registered_at == now`. Whoever
    writes many at once gives its own `record`, to write the audit rows last.
    """
    actor.require(SCOPE)
    require_names(caller, callee)
    document, on_outage = _checked(fields)
    with transaction.atomic():
        registry = publication.lock()
        dependency = _locked(caller, callee)
        before = picture(dependency) if dependency and is_registered(dependency) else None
        if dependency is None:
            _require_room()
            dependency = Dependency(caller=caller, callee=callee, registered_at=now)
        after = {**document, "on_outage": on_outage}
        if before == after:
            return dependency
        if before is None:
            dependency.registered_at = now
        for column in COLUMNS:
            setattr(dependency, column, document[column])
        dependency.document, dependency.on_outage = document, on_outage
        dependency.changed_at, dependency.removed_at = now, None
        dependency.save()
        publication.advance(registry, now, dependency)
        changed("breakers", dependency.name)
        record(
            actor=actor,
            action="dependency.registered" if before is None else "dependency.changed",
            target=target(dependency),
            reason=reason.strip(),
            before=before,
            after=after,
            now=now,
        )
        return dependency


def remove(
    *, caller: str, callee: str, reason: str = "", actor: Actor, now: datetime
) -> Dependency:
    """Take a dependency out; an override of it ends. Services learn that its policy is gone.

    Raises :class:`Forbidden` or :class:`NotFound`.
    """
    actor.require(SCOPE)
    with transaction.atomic():
        registry = publication.lock()
        dependency = find_locked(caller, callee)
        before = picture(dependency)
        dependency.document, dependency.on_outage = {}, {}
        dependency.changed_at = dependency.removed_at = now
        dependency.save(update_fields=["document", "on_outage", "changed_at", "removed_at"])
        publication.advance(registry, now, dependency)
        changed("breakers", dependency.name)
        endings.with_its_dependency(dependency, actor=actor, now=now)
        audit.record(
            actor=actor,
            action="dependency.removed",
            target=target(dependency),
            reason=reason.strip(),
            before=before,
            now=now,
        )
        return dependency


def find(caller: str, callee: str) -> Dependency:
    """The dependency, registered or only reported; raises :class:`NotFound`."""
    found = None
    if names.is_slug(caller) and names.is_slug(callee):
        found = Dependency.objects.registered().named(caller, callee).first()
    if found is None:
        raise _not_found()
    return found


def find_locked(caller: str, callee: str) -> Dependency:
    """The same, locked; the registry row has to be locked already."""
    found = None
    if names.is_slug(caller) and names.is_slug(callee):
        found = _locked(caller, callee)
    if found is None or found.removed_at is not None:
        raise _not_found()
    return found


def require_new(caller: str, callee: str) -> None:
    """Raise :class:`Conflict` if the dependency is registered. The registry row stays locked until
    commit, so that nobody registers it meanwhile."""
    publication.lock()
    found = Dependency.objects.named(caller, callee).first()
    if found is not None and is_registered(found):
        raise Conflict(f"{found.name} is registered already; change it with PUT.")


def is_registered(dependency: Dependency) -> bool:
    """Whether somebody has said what its policy is; a document is never empty then."""
    return dependency.removed_at is None and bool(dependency.document)


def picture(dependency: Dependency) -> dict[str, Any]:
    """What the audit trail keeps of it: all that somebody said."""
    return {**dependency.document, "on_outage": dependency.on_outage}


def target(dependency: Dependency) -> str:
    """What audit rows about it, and its messages' thread, are about."""
    return f"dependency:{dependency.name}"


def require_names(caller: str, callee: str) -> None:
    said = f"Must be 1 to {names.LONGEST} of the letters, digits and signs a-z 0-9 -"
    wrong = {
        field: [said]
        for field, slug in (("caller", caller), ("callee", callee))
        if not names.is_slug(slug)
    }
    if wrong:
        raise InvalidInput(wrong)


def _checked(fields: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Document and outage policy, what is wrong with both told at once."""
    errors: dict[str, list[str]] = {}
    document: dict[str, Any] = {}
    on_outage: dict[str, Any] = {}
    try:
        document = policy.checked({k: v for k, v in fields.items() if k != "on_outage"})
    except InvalidInput as error:
        errors.update(error.errors)
    try:
        on_outage = policy.checked_outage(fields.get("on_outage"))
    except InvalidInput as error:
        errors.update(error.errors)
    if errors:
        raise InvalidInput(errors)
    return document, on_outage


def _locked(caller: str, callee: str) -> Dependency | None:
    return Dependency.objects.select_for_update().named(caller, callee).first()


def _require_room() -> None:
    if Dependency.objects.count() >= MOST_DEPENDENCIES:
        raise Conflict(
            f"There are {MOST_DEPENDENCIES:,} dependencies, which is the most this console keeps."
        )


def _not_found() -> NotFound:
    return NotFound("There is no such dependency; it may be registered with PUT.")
