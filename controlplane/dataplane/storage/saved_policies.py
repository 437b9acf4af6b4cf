"""Encoding and decoding of the saved file of policies and degradation causes. Pure."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Self
from uuid import UUID

import orjson

from controlplane.core.canonical import timestamp
from controlplane.core.degradation_levels import Cause, to_json
from controlplane.dataplane.memory.json_elements import (
    check_count,
    parse_policy,
    parse_time,
    policy_element,
)
from controlplane.dataplane.memory.policies import Policies, parse_cause

from .signed_file import SavedContent, SignedDocument

_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class SavedPolicies(SavedContent):
    """The saved policies, and the saved degradation causes with their `revision`."""

    policies: Policies
    revision: int
    causes: tuple[Cause, ...]

    @property
    def epoch(self) -> UUID:
        return self.policies.epoch

    def merge_parts(self, news: Self) -> Self:
        def version_of(saved: SavedPolicies) -> tuple[int, datetime]:
            return saved.policies.version, saved.policies.changed_at or _NEVER

        away = max(self, news, key=lambda saved: saved.revision)
        newer = max(self, news, key=version_of)
        return replace(newer, revision=away.revision, causes=away.causes)


def _serialize(saved: SavedPolicies) -> bytes:
    policies = saved.policies
    document = {
        "causes": to_json(saved.causes),
        "changed_at": None if policies.changed_at is None else timestamp(policies.changed_at),
        "dependencies": [policy_element(one) for one in policies.list_all()],
        "epoch": str(policies.epoch),
        "left_epochs": sorted(str(epoch) for epoch in saved.left_epochs),
        "revision": check_count(saved.revision),
        "told_at": timestamp(saved.confirmed_at),
        "version": policies.version,
    }
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


def _parse(document: Any) -> SavedPolicies:
    changed_at = document["changed_at"]
    policies = Policies.build(
        UUID(document["epoch"]),
        check_count(document["version"]),
        map(parse_policy, document["dependencies"]),
        None if changed_at is None else parse_time(changed_at),
    )
    left_epochs = frozenset(UUID(epoch) for epoch in document["left_epochs"])
    if policies.epoch in left_epochs:
        raise ValueError("its epoch was replaced")
    return SavedPolicies(
        policies=policies,
        revision=check_count(document["revision"]),
        causes=tuple(parse_cause(each) for each in document["causes"]),
        left_epochs=left_epochs,
        confirmed_at=parse_time(document["told_at"]),
    )


POLICIES = SignedDocument(b"switchgear-policies", _parse, _serialize)
