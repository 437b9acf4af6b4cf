"""The file of policies and degradation causes: content, merging and serialization. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson

from controlplane.core.canonical import timestamp
from controlplane.core.degradation_levels import Cause, to_json
from controlplane.dataplane.memory.degradation_causes import parse_cause
from controlplane.dataplane.memory.policies import DependencyPolicy, Policies

from . import signed_file
from .signed_file import check_count, check_text, parse_time

KIND = b"switchgear-policies"
_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class SavedPolicies:
    """Policies, and causes at a `revision`, confirmed by the database at `confirmed_at`.

    `left_epochs` are earlier epochs of the database, whose policies are outdated.
    """

    policies: Policies
    revision: int
    causes: tuple[Cause, ...]
    left_epochs: frozenset[UUID]
    confirmed_at: datetime

    @property
    def epoch(self) -> UUID:
        return self.policies.epoch


def merge_saved(present: SavedPolicies, news: SavedPolicies) -> SavedPolicies:
    """Return the content to save when `present` is on disk and `news` is to be saved.

    Another process may have written `present`. Within an epoch, the newer of each part is kept. Of
    two epochs, one that is in the other content's `left_epochs` is discarded; otherwise the content
    that was confirmed later is kept.
    """
    left = present.left_epochs | news.left_epochs
    if present.epoch == news.epoch:
        away = max(present, news, key=lambda saved: saved.revision)
        return replace(
            max(present, news, key=_version_key),
            revision=away.revision,
            causes=away.causes,
            left_epochs=left - {news.epoch},
        )
    if news.epoch in present.left_epochs:
        return present
    if present.epoch in news.left_epochs or news.confirmed_at > present.confirmed_at:
        return replace(news, left_epochs=left - {news.epoch})
    return present


def sign(saved: SavedPolicies, key: bytes) -> bytes:
    return signed_file.sign_file(KIND, _serialize(saved), key)


def verify(text: bytes, key: bytes) -> SavedPolicies:
    return signed_file.verify_file(KIND, text, key, _parse, _serialize)


def _version_key(saved: SavedPolicies) -> tuple[int, datetime]:
    return saved.policies.version, saved.policies.changed_at or _NEVER


def _serialize(saved: SavedPolicies) -> bytes:
    policies = saved.policies
    document = {
        "causes": to_json(saved.causes),
        "changed_at": None if policies.changed_at is None else timestamp(policies.changed_at),
        "dependencies": [_to_element(one) for one in policies.list_all()],
        "epoch": str(policies.epoch),
        "left_epochs": sorted(str(epoch) for epoch in saved.left_epochs),
        "revision": check_count(saved.revision),
        "told_at": timestamp(saved.confirmed_at),
        "version": policies.version,
    }
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


def _to_element(policy: DependencyPolicy) -> dict[str, Any]:
    return {
        "callee": policy.callee,
        "caller": policy.caller,
        "config": orjson.Fragment(policy.text) if policy.text else None,
        "version": policy.version,
    }


def _parse(document: Any) -> SavedPolicies:
    changed_at = document["changed_at"]
    policies = Policies.build(
        UUID(document["epoch"]),
        check_count(document["version"]),
        _parse_policies(document["dependencies"]),
        None if changed_at is None else parse_time(changed_at),
    )
    left_epochs = frozenset(UUID(epoch) for epoch in document["left_epochs"])
    if policies.epoch in left_epochs:
        raise ValueError("its epoch is one that was left")
    return SavedPolicies(
        policies=policies,
        revision=check_count(document["revision"]),
        causes=tuple(parse_cause(each) for each in document["causes"]),
        left_epochs=left_epochs,
        confirmed_at=parse_time(document["told_at"]),
    )


def _parse_policies(elements: Iterable[Any]) -> Iterable[DependencyPolicy]:
    for element in elements:
        config = element["config"]
        if not isinstance(config, dict | None):
            raise TypeError("a policy is no object")
        text = b"" if config is None else orjson.dumps(config, option=orjson.OPT_SORT_KEYS)
        caller, callee = check_text(element["caller"]), check_text(element["callee"])
        yield DependencyPolicy(caller, callee, check_count(element["version"]), text)
