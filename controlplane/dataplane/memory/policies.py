"""Policies and overrides for each calling service, versioned. Pure.

A service's version is the highest among its dependencies, removed ones included, so that a removal
counts as a change. Documents are rendered once per service, on the first request after a change.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple
from uuid import UUID

import orjson

from controlplane.core import protocol

from .compression import VARY, GzipForm, Header
from .served_copy import JSON, NO_CACHE

_TAG = re.compile(rb'"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.c([0-9]{1,18})(?:-gzip)?"')


class Policy(NamedTuple):
    """The policy of one dependency, with its override, as canonical JSON in `text`.

    `text` is empty if there is nothing to send, as after a removal. `version` is that of its last
    change.
    """

    caller: str
    callee: str
    version: int
    text: bytes

    @property
    def name(self) -> str:
        return f"{self.caller}->{self.callee}"


class ServicePolicies:
    """The document of one service, and the headers that go with it."""

    __slots__ = ("_epoch", "body", "description", "etag", "gzip", "validators", "version")

    def __init__(self, service: str, epoch: UUID, policies: Iterable[Policy]) -> None:
        ordered = sorted(policies)
        self._epoch = str(epoch).encode()
        self.version = max((one.version for one in ordered), default=0)
        self.body = b'{"service":%b,"version":%d,"dependencies":{%b}}' % (
            orjson.dumps(service),
            self.version,
            b",".join(b"%b:%b" % (orjson.dumps(one.name), one.text) for one in ordered if one.text),
        )
        self.etag = b'"%b.c%d"' % (self._epoch, self.version)
        self.validators: tuple[Header, ...] = ((b"etag", self.etag), NO_CACHE, VARY)
        self.gzip = GzipForm(self.body)
        length = (b"content-length", str(len(self.body)).encode())
        self.description: tuple[Header, ...] = (JSON, length)

    def is_known(self, if_none_match: bytes) -> bool:
        """Return True if a tag names this document or a newer version of its epoch.

        A newer one comes from a replica that is ahead of this one; the caller keeps it.
        """
        if protocol.matches_etag(if_none_match.decode("latin-1"), self.etag.decode()):
            return True
        tags = _TAG.findall(if_none_match)
        return any(epoch == self._epoch and int(version) > self.version for epoch, version in tags)


@dataclass(frozen=True)
class Policies:
    """All policies at the registry's `version`, set at `changed_at`, within a database epoch.

    The same version with another `changed_at` belongs to another history: a backup was restored.
    """

    epoch: UUID
    version: int
    of_caller: Mapping[str, Mapping[str, Policy]]
    """Policies by caller, then by callee."""
    changed_at: datetime | None = None

    @classmethod
    def build(
        cls,
        epoch: UUID,
        version: int,
        policies: Iterable[Policy],
        changed_at: datetime | None = None,
    ) -> "Policies":
        return cls(epoch, version, {}).after(version, policies, changed_at)

    def after(
        self, version: int, changed: Iterable[Policy], changed_at: datetime | None = None
    ) -> "Policies":
        """Return a copy that includes the changes up to `version`."""
        of_caller = dict(self.of_caller)
        copied: set[str] = set()
        told = dict(self._documents)
        for one in changed:
            if one.caller not in copied:
                copied.add(one.caller)
                of_caller[one.caller] = dict(of_caller.get(one.caller, {}))
                told.pop(one.caller, None)
            of_caller[one.caller][one.callee] = one  # type: ignore[index]
        result = Policies(self.epoch, version, of_caller, changed_at)
        result._documents.update(told)
        return result

    def document_for(self, service: str) -> ServicePolicies:
        """Return the document for a service, an empty one at version 0 without dependencies."""
        found = self._documents.get(service)
        if found is None:
            policies = self.of_caller.get(service)
            found = ServicePolicies(service, self.epoch, policies.values() if policies else ())
            if policies:
                self._documents[service] = found
        return found

    def one(self, caller: str, callee: str) -> Policy | None:
        return self.of_caller.get(caller, {}).get(callee)

    def every(self) -> list[Policy]:
        """Return all policies, sorted."""
        return sorted(one for callees in self.of_caller.values() for one in callees.values())

    @cached_property
    def _documents(self) -> dict[str, ServicePolicies]:
        return {}
