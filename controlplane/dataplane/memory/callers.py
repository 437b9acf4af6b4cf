"""The services in whose names tokens are used, and whether they may be. Memory only."""

from typing import NamedTuple

from controlplane.core.errors import Forbidden

from .credentials import Credential
from .instance_names import is_part, service_of
from .ownership import NO_OWNERS, OwnershipTable

MAX_ACCEPTED = 50_000
MAX_USES = 2000
"""Most pairs of token and service that are noted between two writes."""


class TokenUse(NamedTuple):
    """A service in whose name a token was used, or tried to be."""

    token_id: int
    service: str


class TokenCallers:
    """Decides whether tokens may act in the names of services, without I/O, and notes which did.

    A token may not act for a service that a team owns, unless it names the service, or belongs to
    the team or one above it, itself or by its owner.
    """

    def __init__(self) -> None:
        self.refused_count = 0
        """Number of requests in the name of a service that the token may not act for."""
        self._owners: OwnershipTable = NO_OWNERS
        self.accepted: set[tuple[int, bytes]] = set()
        """Tokens' ids with names of instances in whose names they may act, for speed."""
        self._uses: dict[TokenUse, set[bool]] = {}

    def install(self, owners: OwnershipTable) -> None:
        """Decide by `owners` from now on; call this also when tokens were replaced."""
        self._owners = owners
        self.accepted = set()

    def find_owner_of_instance(self, credential: Credential, name: bytes) -> str:
        """Return the team that owns the instance's service if the token may not act for it.

        Otherwise return "", also for an invalid name.
        """
        service = service_of(name.decode("utf-8", "replace"))
        owner = "" if service is None else self.find_foreign_owner(credential, service)
        if owner:
            self.refused_count += 1
            return owner
        if len(self.accepted) >= MAX_ACCEPTED:
            self.accepted.clear()
        self.accepted.add((credential.token_id, name))
        return ""

    def find_foreign_owner(self, credential: Credential, service: str) -> str:
        """Return the slug of the team that owns a service if the token may not act for it."""
        resource = f"service:{service}"
        is_own = service in credential.services or self._owners.is_of(resource, credential)
        owner = "" if is_own else self._owners.owner_of(resource)
        self._note(TokenUse(credential.token_id, service), is_refused=bool(owner))
        return owner

    def require(self, credential: Credential, service: str) -> None:
        """Raise :class:`Forbidden` if the token may not act for a service.

        Nor may a token whose limits exclude the service, unless it names it.
        """
        credential.require_service(service)
        if owner := self.find_foreign_owner(credential, service):
            self.refused_count += 1
            raise Forbidden(
                f"The team {owner} owns the service {service}. Use a token of this team, or one"
                f" that names {service} among its services.",
                owner=owner,
            )
        if service not in credential.services:
            self._owners.require_within_limits(credential, f"service:{service}")

    def note_use(self, token_id: int, service: object) -> None:
        """Note that a token was used in the name of a service elsewhere, as at a relay."""
        if isinstance(service, str) and is_part(service):
            self._note(TokenUse(token_id, service), is_refused=False)

    def take_uses(self) -> dict[TokenUse, set[bool]]:
        """Return the uses since the last call, each with whether it was refused, or both."""
        uses, self._uses = self._uses, {}
        self.accepted = set()  # So that the next uses are noted.
        return uses

    def _note(self, use: TokenUse, *, is_refused: bool) -> None:
        if use in self._uses or len(self._uses) < MAX_USES:
            self._uses.setdefault(use, set()).add(is_refused)
