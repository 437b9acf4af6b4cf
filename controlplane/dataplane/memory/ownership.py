"""The teams' ownership of resources, in memory. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from controlplane.core.errors import Forbidden
from controlplane.core.ownership import Owners, ResourcePattern

from .credentials import Credential


@dataclass(frozen=True)
class OwnershipTable:
    """Owning teams by pattern: the owner's slug, then those of the teams above it."""

    chains: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @cached_property
    def _owners(self) -> Owners:
        return Owners((pattern, chain[0]) for pattern, chain in self.chains.items())

    @cached_property
    def _above(self) -> Mapping[str, frozenset[str]]:
        return {chain[0]: frozenset(chain) for chain in self.chains.values()}

    def owner_of(self, resource: str) -> str:
        """Return the slug of the team that owns a resource, "" without one."""
        return self._owners.owner_of(resource)

    def is_of(self, resource: str, credential: Credential) -> bool:
        """Return True if a team of the credential, or a team below one, owns the resource."""
        owner = self.owner_of(resource)
        return bool(owner) and not self._above[owner].isdisjoint(credential.teams)

    def require_within_limits(self, credential: Credential, resource: str) -> None:
        """Raise :class:`Forbidden` if the patterns or teams of a token exclude a resource."""
        patterns = map(ResourcePattern, credential.patterns)
        if credential.patterns and not any(one.matches(resource) for one in patterns):
            raise Forbidden(f"This token is limited to {', '.join(sorted(credential.patterns))}.")
        if credential.only_owned and not self.is_of(resource, credential):
            raise Forbidden("This token is limited to what its own team owns.")


NO_OWNERS = OwnershipTable()


def build_table(owned: Mapping[str, str], parents: Mapping[str, str]) -> OwnershipTable:
    """Return the table of `owned`, slugs of owners by pattern; `parents` are slugs by slug."""

    def list_up(slug: str) -> tuple[str, ...]:
        found: list[str] = []
        while slug and slug not in found:
            found.append(slug)
            slug = parents.get(slug, "")
        return tuple(found)

    chains = {slug: list_up(slug) for slug in {*owned.values()}}
    return OwnershipTable({pattern: chains[slug] for pattern, slug in owned.items()})
