"""Lookup and registration of switches, and changes of their description."""

from collections.abc import Collection, Mapping
from datetime import datetime
from urllib.parse import urlsplit

from django.db import transaction
from django.db.models import F

from controlplane.core import authority
from controlplane.core.actions import Action
from controlplane.core.actors import Actor
from controlplane.core.approvals.models import Approval
from controlplane.core.audit import services as audit
from controlplane.core.errors import Conflict, InvalidInput
from controlplane.core.live.change_notices import notify_changed
from switches import publication
from switches.episodes import changes
from switches.models import Episode, Publication, Switch
from switches.scopes import SCOPES, SwitchScope

WRITTEN_AT_ONCE = 500
DESCRIPTIVE = {"owner": 120, "description": 4000, "runbook_url": 200}


def identify(scope: str, key: str) -> str:
    """Return a switch's id, such as `segment:finance`; raise :class:`InvalidInput` if invalid."""
    found = SCOPES.get(scope)
    if found is None:
        raise InvalidInput({"scope": [f"Must be one of {', '.join(SCOPES.names)}, not {scope!r}."]})
    if not found.allows(key):
        raise InvalidInput({"key": [_describe_keys(found)]})
    return f"{scope}:{key}"


def _describe_keys(scope: SwitchScope) -> str:
    if scope.only_key:
        return f"The {scope.name} switch is {scope.name}:{scope.only_key}."
    return "A key has 1 to 120 characters: A-Z, a-z, 0-9, . _ and -, without the scope."


def find_switch(scope: str, key: str) -> Switch | None:
    return Switch.objects.with_open_episode().filter(pk=identify(scope, key)).first()


def find_or_new(scope: str, key: str) -> Switch:
    """Return the registered switch, or an unsaved one; raise :class:`InvalidInput` for a bad id."""
    return find_switch(scope, key) or Switch(id=identify(scope, key), scope=scope, key=key)


def lock_switch(scope: str, key: str) -> Switch | None:
    """Lock and return a registered switch, or None; callers hold the :class:`Publication` row."""
    return Switch.objects.select_for_update().filter(pk=identify(scope, key)).first()


def register_and_lock(scope: str, key: str, *, now: datetime) -> Switch:
    """Lock and return the switch, which is registered first if it is unknown."""
    switch = lock_switch(scope, key)
    if switch is None:
        switch = Switch(id=identify(scope, key), scope=scope, key=key, registered_at=now)
        switch.save(force_insert=True)
        Publication.objects.update(registrations=F("registrations") + 1)
    return switch


def write_many(states: Mapping[str, Mapping[str, str]], now: datetime) -> None:
    """Register switches, or set their descriptive fields; `states` maps ids to fields.

    The caller holds the :class:`Publication` row, and writes the audit rows.
    """
    known = set(Switch.objects.filter(pk__in=list(states)).values_list("pk", flat=True))
    rows = []
    for switch_id in sorted(states):
        scope, _, key = switch_id.partition(":")
        fields = states[switch_id]
        rows.append(Switch(id=switch_id, scope=scope, key=key, registered_at=now, **fields))
    Switch.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["id"],
        update_fields=list(DESCRIPTIVE),
        batch_size=WRITTEN_AT_ONCE,
    )
    if new := len(states.keys() - known):
        Publication.objects.update(registrations=F("registrations") + new)
    notify_changed("switches", *states)


def register_missing(ids: Collection[str], now: datetime) -> None:
    """Register those of the switches that are unknown; the caller holds the publication row."""
    known = set(Switch.objects.filter(pk__in=ids).values_list("pk", flat=True))
    empty = dict.fromkeys(DESCRIPTIVE, "")
    write_many({switch_id: empty for switch_id in ids if switch_id not in known}, now)


def describe(
    *, scope: str, key: str, changes: Mapping[str, str], actor: Actor, now: datetime
) -> Switch:
    """Set a switch's owner, description and runbook; nothing is published."""
    actor.require("switches:write")
    check_fields(changes)
    with transaction.atomic():
        authority.require(actor, Action.EDIT, identify(scope, key))
        publication.lock()
        switch = lock_switch(scope, key)
        if switch is None and not any(changes.values()):
            return Switch(id=identify(scope, key), scope=scope, key=key, registered_at=now)
        switch = switch or register_and_lock(scope, key, now=now)
        before = {field: getattr(switch, field) for field in changes}
        if before == dict(changes):
            return switch
        for field, value in changes.items():
            setattr(switch, field, value)
        switch.save(update_fields=list(changes))
        notify_changed("switches", switch.pk)
        audit.record(
            actor=actor,
            action="registration.changed",
            target=switch.pk,
            before=before,
            after=dict(changes),
            now=now,
        )
        return switch


def check_fields(changes: Mapping[str, str]) -> None:
    """Raise :class:`InvalidInput` unless these are valid descriptive fields of a switch."""
    errors: dict[str, list[str]] = {}
    for field, value in changes.items():
        longest = DESCRIPTIVE.get(field)
        if longest is None:
            errors[field] = [f"Only {', '.join(DESCRIPTIVE)} can be changed here."]
        elif len(value) > longest:
            errors[field] = [f"At most {longest} characters."]
        elif "\x00" in value:
            errors[field] = ["Null characters are not allowed."]
    url = changes.get("runbook_url", "")
    if url and "runbook_url" not in errors and not _is_web_address(url):
        errors["runbook_url"] = ["Must be a URL starting with http:// or https://."]
    if errors:
        raise InvalidInput(errors)


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        named = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and named and url.isprintable() and " " not in url


def lock_engaged(scope: str, key: str, refusal: str = "") -> tuple[Switch, Episode]:
    """Lock and return a switch that is not released, and its open episode.

    Raise :class:`Conflict` for a released switch, with the text `refusal` if given.
    """
    switch_id = identify(scope, key)
    switch = lock_switch(scope, key)
    episode = changes.lock_open_episode(switch) if switch is not None else None
    if switch is not None and episode is not None:
        return switch, episode
    if refusal:
        raise Conflict(refusal)
    last = Episode.objects.filter(switch_id=switch_id).order_by("-id").first()
    since = f" since {last.ended_at:%Y-%m-%d %H:%M} UTC, by {last.ended_by}" if last else ""
    raise Conflict(f"{switch_id} is already released{since}.", state="released")


def lock_approved(approval: Approval) -> tuple[Switch, Episode]:
    """Lock and return the switch and the episode that an approval is about.

    Raise :class:`Conflict` if that episode has ended.
    """
    switch = Switch.objects.select_for_update().get(pk=approval.target)
    episode = changes.lock_open_episode(switch)
    if episode is None or episode.pk != approval.diff["episode"]:
        raise Conflict(f"{switch.pk} is no longer in the episode of this request.")
    return switch, episode
