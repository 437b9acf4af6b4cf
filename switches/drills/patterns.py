"""Patterns that mark instances for drills: `core/canary-1`, or `core/*` for a service."""

from collections.abc import Iterable
from dataclasses import dataclass

from controlplane.core.errors import InvalidInput

ALL = "*"
PART_LENGTH = 120
_HOW_TO_WRITE = (
    "Use service/instance, as the instance reports it, or service/* for all instances: "
    "core/canary-1, core/*."
)
TOKEN_PREFIX = "token:"  # noqa: S105 - callers without a name of their own; never marked


@dataclass(frozen=True, slots=True)
class Marks:
    """The marked instances by name, and services marked as a whole."""

    names: frozenset[str]
    services: frozenset[str]

    @classmethod
    def from_patterns(cls, patterns: Iterable[str]) -> "Marks":
        names, services = set(), set()
        for pattern in patterns:
            service, _, instance = pattern.partition("/")
            if instance == ALL:
                services.add(service)
            else:
                names.add(pattern)
        return cls(frozenset(names), frozenset(services))

    def __bool__(self) -> bool:
        return bool(self.names or self.services)

    def match(self, name: str) -> bool:
        """Return True if the instance `service/instance` is marked."""
        service, _, instance = name.partition("/")
        return name in self.names or (service in self.services and _is_part(instance))


def read_pattern(text: str) -> str:
    """Return the pattern without surrounding spaces; raise :class:`InvalidInput` if invalid."""
    pattern = text.strip()
    service, _, instance = pattern.partition("/")
    is_whole_service = instance == ALL
    is_service = _is_part(service) and ALL not in service and not service.startswith(TOKEN_PREFIX)
    if not is_service or not _is_part(instance):
        raise InvalidInput({"pattern": [_HOW_TO_WRITE]})
    if ALL in instance and not is_whole_service:
        raise InvalidInput({"pattern": ["Use * alone, for all instances of a service: core/*."]})
    return pattern


def resource_of(pattern: str) -> str:
    """Return the service whose instances a pattern marks, as a resource: `service:core`."""
    return f"service:{pattern.partition('/')[0]}"


def _is_part(text: str) -> bool:
    """Return True for a valid part of a pattern: 1 to 120 printable characters, no space or slash.

    The data plane has the same rule for instance names.
    """
    plain = text.isprintable() and " " not in text and "/" not in text and "\ufffd" not in text
    return 0 < len(text) <= PART_LENGTH and plain
