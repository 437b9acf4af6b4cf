"""Policies and overrides of dependencies, by calling service; degradation causes. Pure.

The version of a service's policies is the highest of its dependencies' versions, including removed
ones. Documents are rendered on the first request after a change.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from controlplane.core import protocol
from controlplane.core.degradation_levels import CRITICAL, DEGRADED, EMERGENCY, Cause

from .compression import VARY, GzipForm, Header
from .served_copy import JSON, NO_CACHE

_TAG = re.compile(rb'"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.c([0-9]{1,18})(?:-gzip)?"')


class DependencyPolicy(NamedTuple):
    """A dependency's policy with its override, as canonical JSON in `text`.

    `text` is empty if nothing is served, as after a removal. `version` is the version of the last
    change.
    """

    caller: str
    callee: str
    version: int
    text: bytes


class ServicePolicies:
    """The policy document of one service: its policies and overrides, rendered, with headers."""

    __slots__ = ("_epoch", "body", "description", "etag", "gzip", "validators", "version")

    def __init__(self, service: str, epoch: UUID, policies: Iterable[DependencyPolicy]) -> None:
        ordered = sorted(policies)
        self._epoch = str(epoch).encode()
        self.version = max((one.version for one in ordered), default=0)
        self.body = b'{"service":%b,"version":%d,"dependencies":{%b}}' % (
            orjson.dumps(service),
            self.version,
            b",".join(
                b"%b:%b" % (orjson.dumps(f"{one.caller}->{one.callee}"), one.text)
                for one in ordered
                if one.text
            ),
        )
        self.etag = b'"%b.c%d"' % (self._epoch, self.version)
        self.validators: tuple[Header, ...] = ((b"etag", self.etag), NO_CACHE, VARY)
        self.gzip = GzipForm(self.body)
        length = (b"content-length", str(len(self.body)).encode())
        self.description: tuple[Header, ...] = (JSON, length)

    def is_known(self, if_none_match: bytes) -> bool:
        """Return True if `if_none_match` has this version's ETag, or a newer one of the same epoch.

        A newer version comes from a replica that is ahead of this one, so the client keeps it.
        """
        if protocol.matches_etag(if_none_match.decode("latin-1"), self.etag.decode()):
            return True
        tags = _TAG.findall(if_none_match)
        return any(epoch == self._epoch and int(version) > self.version for epoch, version in tags)


@dataclass(frozen=True)
class Policies:
    """All policies of an epoch, at a `version` of the dependency registry set at `changed_at`.

    The same version with another `changed_at` means that the database was restored from a backup.
    """

    epoch: UUID
    version: int
    by_caller: Mapping[str, Mapping[str, DependencyPolicy]]
    """Policies by caller, then by callee."""
    changed_at: datetime | None = None

    @classmethod
    def build(
        cls,
        epoch: UUID,
        version: int,
        policies: Iterable[DependencyPolicy],
        changed_at: datetime | None = None,
    ) -> "Policies":
        return cls(epoch, version, {}).with_changes(version, policies, changed_at)

    def with_changes(
        self, version: int, changed: Iterable[DependencyPolicy], changed_at: datetime | None = None
    ) -> "Policies":
        """Return a copy at `version` with the `changed` policies.

        Rendered documents of services without changes are reused.
        """
        by_caller = dict(self.by_caller)
        copied: set[str] = set()
        documents = dict(self._documents)
        for one in changed:
            if one.caller not in copied:
                copied.add(one.caller)
                by_caller[one.caller] = dict(by_caller.get(one.caller, {}))
                documents.pop(one.caller, None)
            by_caller[one.caller][one.callee] = one  # type: ignore[index]
        result = Policies(self.epoch, version, by_caller, changed_at)
        result._documents.update(documents)
        return result

    def document_for(self, service: str) -> ServicePolicies:
        """Return a service's policy document; without dependencies, an empty one at version 0."""
        document = self._documents.get(service)
        if document is None:
            policies = self.by_caller.get(service)
            document = ServicePolicies(service, self.epoch, policies.values() if policies else ())
            if policies:
                self._documents[service] = document
        return document

    def list_all(self) -> list[DependencyPolicy]:
        return sorted(one for callees in self.by_caller.values() for one in callees.values())

    @cached_property
    def _documents(self) -> dict[str, ServicePolicies]:
        return {}


def parse_cause(document: Any) -> Cause:
    """Return the degradation cause in a JSON document; raise TypeError if a field is invalid.

    Unknown fields are ignored.
    """
    if not isinstance(document, Mapping) or document.get("level") not in (
        DEGRADED,
        CRITICAL,
        EMERGENCY,
    ):
        raise TypeError("a cause is not an object")
    known = {each.name: document[each.name] for each in fields(Cause) if each.name in document}
    if not all(isinstance(known.get(name), str) for name in ("what", "text")):
        raise TypeError("a cause has no component")
    if not isinstance(known.get("since", ""), str):
        raise TypeError("a cause has no start time")
    effects = (known.get("fails", []), known.get("works", []))
    if not all(isinstance(of, list) and all(isinstance(one, str) for one in of) for of in effects):
        raise TypeError("a cause's effects are not strings")
    return Cause.from_json(known)
