"""What services are told of their dependencies: policies and overrides, numbered. Pure.

A service's version is the highest among its own dependencies, removed ones too, so that a removal
is news. Texts are made once for each service, when somebody asks for it after a change.
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
    """A dependency as it is told: `text` is canonical JSON, with its override in it; empty if there
    is nothing to be told, as after a removal. `version` is that of its last change."""

    caller: str
    callee: str
    version: int
    text: bytes

    @property
    def name(self) -> str:
        return f"{self.caller}->{self.callee}"


class Told:
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
        """True if a tag is this one's, or that of a newer version of its epoch: it comes from
        another replica that is ahead of this one, and nobody is sent back."""
        if protocol.names(if_none_match.decode("latin-1"), self.etag.decode()):
            return True
        tags = _TAG.findall(if_none_match)
        return any(epoch == self._epoch and int(version) > self.version for epoch, version in tags)


@dataclass(frozen=True)
class Policies:
    """All of them at the registry's `version`, given at `changed_at`, within an epoch of the
    database. The same version with another moment is of another history: a backup was restored."""

    epoch: UUID
    version: int
    of_caller: Mapping[str, Mapping[str, Policy]]
    """By caller, and then by callee."""
    changed_at: datetime | None = None

    @classmethod
    def of(
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
        """The same with what has changed until `version`."""
        of_caller = dict(self.of_caller)
        copied: set[str] = set()
        told = dict(self._told)
        for one in changed:
            if one.caller not in copied:
                copied.add(one.caller)
                of_caller[one.caller] = dict(of_caller.get(one.caller, {}))
                told.pop(one.caller, None)
            of_caller[one.caller][one.callee] = one  # type: ignore[index]
        result = Policies(self.epoch, version, of_caller, changed_at)
        result._told.update(told)
        return result

    def told(self, service: str) -> Told:
        """What a service is told; one that has no dependencies is told so, at version 0."""
        found = self._told.get(service)
        if found is None:
            policies = self.of_caller.get(service)
            found = Told(service, self.epoch, policies.values() if policies else ())
            if policies:
                self._told[service] = found
        return found

    def one(self, caller: str, callee: str) -> Policy | None:
        return self.of_caller.get(caller, {}).get(callee)

    def every(self) -> list[Policy]:
        """Each of them, in order."""
        return sorted(one for callees in self.of_caller.values() for one in callees.values())

    @cached_property
    def _told(self) -> dict[str, Told]:
        return {}
