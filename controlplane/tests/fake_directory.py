"""A fake identity provider that provisions people and groups by SCIM, over real HTTP.

Requests look like those of Okta and Entra ID: look a name up, create, then add members by PATCH.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

SCIM = "application/scim+json"
USER = "urn:ietf:params:scim:schemas:core:2.0:User"
GROUP = "urn:ietf:params:scim:schemas:core:2.0:Group"
PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
GIVEN = ("Kim", "José", "Zoë", "Jürgen", "Olena", "Łukasz", "지민", "さくら", "Ольга", "ليلى")
FAMILY = (
    "Park",
    "García",
    "O'Brien",
    "Müller",
    "Ковальчук",
    "Nowak",
    "김",
    "佐藤",
    "Иванова",
    "حداد",
)
GROUP_NAMES = (
    *("payments", "search", "checkout", "identity", "catalog", "shipping"),
    *("pricing", "messaging", "platform", "data", "mobile", "support"),
)


@dataclass
class FakeDirectory:
    """People and groups, and the ids that the console gave them; `url` is the console's."""

    url: str
    token: str
    timeout: float = 30
    user_ids: dict[str, str] = field(default_factory=dict)
    group_ids: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": SCIM, "Accept": SCIM}
        self._client = httpx.Client(
            base_url=f"{self.url}/scim/v2", headers=headers, timeout=self.timeout
        )

    def provision(self, people: int = 300, groups: Sequence[str] = GROUP_NAMES) -> None:
        """Create people and groups, and put each person in one group, in turn."""
        names = [self.create_user(build_user(number)) for number in range(people)]
        for place, group in enumerate(groups):
            self.create_group(group)
            self.add_members(group, names[place :: len(groups)])

    def create_user(self, document: Mapping[str, Any]) -> str:
        """Create the user unless the console has them already; return the user name."""
        name = str(document["userName"])
        found = self.find("Users", f'userName eq "{name}"')
        if not found:
            found = [self.send("POST", "Users", document).json()]
        self.user_ids[name] = found[0]["id"]
        return name

    def create_group(self, name: str, external_id: str = "") -> str:
        """Create the group unless the console has it already; return its id."""
        found = self.find("Groups", f'displayName eq "{name}"')
        if not found:
            document = {"schemas": [GROUP], "displayName": name, "externalId": external_id or name}
            found = [self.send("POST", "Groups", document).json()]
        self.group_ids[name] = found[0]["id"]
        return self.group_ids[name]

    def add_members(self, group: str, names: Sequence[str]) -> None:
        members = [{"value": self.user_ids[name]} for name in names]
        self.patch_group(group, {"op": "Add", "path": "members", "value": members})

    def remove_member(self, group: str, name: str) -> None:
        path = f'members[value eq "{self.user_ids[name]}"]'
        self.patch_group(group, {"op": "remove", "path": path})

    def rename_group(self, group: str, name: str) -> None:
        self.patch_group(group, {"op": "replace", "path": "displayName", "value": name})
        self.group_ids[name] = self.group_ids.pop(group)

    def deactivate(self, name: str) -> None:
        self.patch_user(name, {"op": "Replace", "path": "active", "value": "False"})

    def patch_user(self, name: str, *operations: Mapping[str, Any]) -> httpx.Response:
        return self._patch(f"Users/{self.user_ids[name]}", operations)

    def patch_group(self, name: str, *operations: Mapping[str, Any]) -> httpx.Response:
        return self._patch(f"Groups/{self.group_ids[name]}", operations)

    def find(self, kind: str, filter_: str) -> list[dict[str, Any]]:
        """Return the users or groups that match a filter, from the first page."""
        answer = self.send("GET", kind, params={"filter": filter_, "excludedAttributes": "members"})
        return list(answer.json()["Resources"])

    def list_all(self, kind: str) -> list[dict[str, Any]]:
        """Return all users or groups, page by page."""
        found: list[dict[str, Any]] = []
        while True:
            page = self.send("GET", kind, params={"startIndex": len(found) + 1, "count": 200})
            found += page.json()["Resources"]
            if len(found) >= page.json()["totalResults"] or not page.json()["Resources"]:
                return found

    def send(self, method: str, path: str, body: Any = None, **more: Any) -> httpx.Response:
        """Send a request; raise httpx.HTTPStatusError if it is refused."""
        answer = self._client.request(method, f"/{path}", json=body, **more)
        answer.raise_for_status()
        return answer

    def close(self) -> None:
        self._client.close()

    def _patch(self, path: str, operations: Sequence[Mapping[str, Any]]) -> httpx.Response:
        return self.send("PATCH", path, {"schemas": [PATCH], "Operations": list(operations)})


def build_user(number: int) -> dict[str, Any]:
    """Return the SCIM document of a person, whose names may be in any script."""
    given = GIVEN[number % len(GIVEN)]
    family = FAMILY[number // len(GIVEN) % len(FAMILY)]
    name = f"person{number:03}@example.com"
    return {
        "schemas": [USER],
        "externalId": f"00u{number:08}",
        "userName": name,
        "name": {"givenName": given, "familyName": family},
        "displayName": f"{given} {family}",
        "emails": [{"value": name, "type": "work", "primary": True}],
        "active": True,
    }
