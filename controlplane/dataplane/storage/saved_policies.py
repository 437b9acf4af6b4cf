"""Policies and degradation causes as one signed file beside the saved copy. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson

from controlplane.core.canonical import timestamp
from controlplane.core.degradation_levels import Cause, to_json
from controlplane.dataplane.memory.degradation_causes import cause
from controlplane.dataplane.memory.policies import Policies, Policy

from . import signature
from .signature import count, moment, word

KIND = b"switchgear-policies"
_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class SavedPolicies:
    """Policies, and the causes at a `revision`, as known at `told_at` by the database's clock.

    Policies of epochs in `left_epochs` never count as newer.
    """

    policies: Policies
    revision: int
    causes: tuple[Cause, ...]
    left_epochs: frozenset[UUID]
    told_at: datetime

    @property
    def epoch(self) -> UUID:
        return self.policies.epoch


def merged(present: SavedPolicies, news: SavedPolicies) -> SavedPolicies:
    """Return the content to save when `present` is on disk and `news` arrives.

    Another process may have written `present`. Within an epoch the newer of each part is kept. Of
    two epochs, the one that the other has not left is kept; if neither has left the other, the one
    confirmed later.
    """
    left = present.left_epochs | news.left_epochs
    if present.epoch == news.epoch:
        away = max(present, news, key=lambda saved: saved.revision)
        return replace(
            max(present, news, key=_stamp),
            revision=away.revision,
            causes=away.causes,
            left_epochs=left - {news.epoch},
        )
    if news.epoch in present.left_epochs:
        return present
    if present.epoch in news.left_epochs or news.told_at > present.told_at:
        return replace(news, left_epochs=left - {news.epoch})
    return present


def sign(saved: SavedPolicies, key: bytes) -> bytes:
    """Return the signed content of the file."""
    return signature.seal(KIND, _text(saved), key)


def verify(text: bytes, key: bytes) -> SavedPolicies:
    """Return the policies in `text`; raise :class:`signature.InvalidFile`."""
    return signature.open_sealed(KIND, text, key, _parse, _text)


def _stamp(saved: SavedPolicies) -> tuple[int, datetime]:
    return saved.policies.version, saved.policies.changed_at or _NEVER


def _text(saved: SavedPolicies) -> bytes:
    policies = saved.policies
    document = {
        "causes": to_json(saved.causes),
        "changed_at": None if policies.changed_at is None else timestamp(policies.changed_at),
        "dependencies": [_element(one) for one in policies.every()],
        "epoch": str(policies.epoch),
        "left_epochs": sorted(str(epoch) for epoch in saved.left_epochs),
        "revision": count(saved.revision),
        "told_at": timestamp(saved.told_at),
        "version": policies.version,
    }
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


def _element(policy: Policy) -> dict[str, Any]:
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
        count(document["version"]),
        _policies(document["dependencies"]),
        None if changed_at is None else moment(changed_at),
    )
    left_epochs = frozenset(UUID(epoch) for epoch in document["left_epochs"])
    if policies.epoch in left_epochs:
        raise ValueError("its epoch is one that was left")
    return SavedPolicies(
        policies=policies,
        revision=count(document["revision"]),
        causes=tuple(cause(each) for each in document["causes"]),
        left_epochs=left_epochs,
        told_at=moment(document["told_at"]),
    )


def _policies(elements: Iterable[Any]) -> Iterable[Policy]:
    for element in elements:
        config = element["config"]
        if not isinstance(config, dict | None):
            raise TypeError("a policy is no object")
        text = b"" if config is None else orjson.dumps(config, option=orjson.OPT_SORT_KEYS)
        caller, callee = word(element["caller"]), word(element["callee"])
        yield Policy(caller, callee, count(element["version"]), text)
