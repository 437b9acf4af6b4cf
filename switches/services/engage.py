"""Engaging a switch, which never waits for an approval."""

import secrets
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import Any

from django.db import transaction

from controlplane.core import authority, canonical, reasons
from controlplane.core.actions import Action
from controlplane.core.actors import Actor, label_of
from controlplane.core.ended_sessions import retry_if_ended
from controlplane.core.errors import Conflict, InvalidInput
from switches import publication
from switches.episodes import changes, live_drills
from switches.expiry import Expiry, plan_expiry
from switches.models import Episode, OnExpiry, Publication, Switch, SwitchState
from switches.rules import evaluation, guard
from switches.rules.break_glass import (
    describe_limit,
    notify_break_glass,
    override_record,
    override_refusals,
    read_override,
)
from switches.services import permanent_approval, reengage
from switches.services.engagement import Engagement, engagement_fields, shorten_for_override

from .registration import identify, register_and_lock


@retry_if_ended
def engage(
    *,
    scope: str,
    key: str,
    reason: str,
    expires_in: str | None = None,
    expires_at: str | None = None,
    on_expiry: str | None = None,
    evidence: Mapping[str, Any] | None = None,
    break_glass: Mapping[str, Any] | None = None,
    permission: str = "switches:write",
    actor: Actor,
    now: datetime,
) -> Engagement:
    """Engage a switch in one transaction: state, audit row, messages and version.

    Pass either `expires_in`, a duration (`24h`, `permanent`), or `expires_at`, an RFC 3339 time.
    `break_glass` (`{"rule", "reason"}`) overrides the named safety rules for a few hours, if they
    refuse. The actor needs the token scope `permission`. Raise :class:`InvalidInput`,
    :class:`Forbidden`, :class:`SafetyRefused`, or :class:`Conflict` with the open episode if the
    switch is already engaged.
    """
    actor.require(permission)
    override = read_override(break_glass)
    identify(scope, key)
    expiry = _validate(scope, reason, evidence, expires_in, expires_at, on_expiry, now)
    with transaction.atomic():
        authority.require(actor, Action.ENGAGE, f"{scope}:{key}")
        head = publication.lock()
        switch = register_and_lock(scope, key, now=now)
        present = changes.lock_open_episode(switch)
        if present is not None and present.state == SwitchState.ENGAGED:
            who = label_of(present.engaged_by_type, present.engaged_by_name)
            raise Conflict(
                f"{switch.pk} is already {present.state.value}, by {who}: {present.reason}",
                switch=switch.pk,
                episode=changes.audit_state(switch, present),
            )
        live_drills.supersede(switch, f"{actor.label} engaged the switch.", now)
        expiry = _apply_expiry_rules(switch.pk, expiry, requested=on_expiry)
        if present is not None:
            return reengage.reengage(head, switch, present, reason, expiry, evidence, actor, now)
        rules = override_refusals(guard.refusals_to_engage(switch.pk), override)
        override_entry = (
            override_record(override.reason, rules, "engage", actor) if override and rules else None
        )
        requested, expiry = expiry, shorten_for_override(expiry, now) if override_entry else expiry
        done = open_episode(head, switch, reason, expiry, evidence, actor, now, override_entry)
        if override_entry and expiry.is_shorter_than(requested):
            return replace(done, notice=describe_limit(rules))
        return done


def open_episode(
    head: Publication,
    switch: Switch,
    reason: str,
    expiry: Expiry,
    evidence: Mapping[str, Any] | None,
    actor: Actor,
    now: datetime,
    override_entry: Mapping[str, Any] | None = None,
    *,
    engaged_at: datetime | None = None,
    more: Mapping[str, Any] = MappingProxyType({}),
) -> Engagement:
    """Engage a released switch, after the safety rules were evaluated.

    The caller has locked the :class:`Publication` row and the switch, and has no live drill of it.
    `override_entry` is the record of an override of safety rules, which gets a review. `engaged_at`
    is by default `now`; `more` is added to the audit row and the messages.
    """
    before = changes.audit_state(switch, None)
    publication.publish(head, switch, now)
    episode = Episode.objects.create(
        switch=switch,
        engaged_at=engaged_at or now,
        engaged_version=switch.version,
        salt=secrets.token_hex(8),
        broke_glass=override_entry,
        **engagement_fields(reason, evidence, expiry, actor, now),
    )
    changes.record_change(
        "switch.engaged", switch, episode, actor, now, before=before, reason=reason, more=more
    )
    if override_entry:
        review = notify_break_glass(switch, episode, override_entry, actor, now)
        return Engagement(switch, episode, review=review)
    if not expiry.permanent_requested:
        return Engagement(switch, episode)
    approval = permanent_approval.request_permanent(switch, episode, episode.reason, actor, now)
    return Engagement(switch, episode, approval)


def _validate(
    scope: str,
    reason: str,
    evidence: Mapping[str, Any] | None,
    expires_in: str | None,
    expires_at: str | None,
    on_expiry: str | None,
    now: datetime,
) -> Expiry:
    errors: dict[str, list[str]] = {}
    if problems := reasons.find_reason_problems(reason):
        errors["reason"] = problems
    if evidence is not None and len(canonical.dumps(evidence)) > canonical.MAX_EVIDENCE_BYTES:
        errors["evidence"] = [
            f"At most {canonical.MAX_EVIDENCE_BYTES // 1024} KiB; link to the rest."
        ]
    try:
        expiry = plan_expiry(
            scope=scope, expires_in=expires_in, expires_at=expires_at, on_expiry=on_expiry, now=now
        )
    except InvalidInput as error:
        raise InvalidInput({**errors, **error.errors}) from error
    if errors:
        raise InvalidInput(errors)
    return expiry


def _apply_expiry_rules(switch_id: str, expiry: Expiry, *, requested: str | None) -> Expiry:
    """Return the expiry with a policy that the safety rules allow.

    Replace a forbidden default policy by `hold`; raise :class:`InvalidInput` for a forbidden
    requested one.
    """
    rule = evaluation.forbidding_rule(guard.list_rules(), switch_id, expiry.on_expiry)
    if rule is None:
        return expiry
    if not requested:
        return replace(expiry, on_expiry=OnExpiry.HOLD.value)
    raise InvalidInput(
        {
            "on_expiry": [
                f"{switch_id} can't {expiry.on_expiry} at expiry because of the rule “{rule.name}”."
                " Use hold, or omit the field."
            ]
        }
    )
