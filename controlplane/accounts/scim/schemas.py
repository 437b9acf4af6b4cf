"""The schemas of users and groups that SCIM clients see, and the names of messages.

Attributes that are not listed here are accepted and ignored.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

CORE = "urn:ietf:params:scim:schemas:core:2.0:"
MESSAGES = "urn:ietf:params:scim:api:messages:2.0:"
USER, GROUP = f"{CORE}User", f"{CORE}Group"
LIST_RESPONSE = f"{MESSAGES}ListResponse"
PATCH = f"{MESSAGES}PatchOp"
READ_ONLY = "readOnly"
MAX_PAGE = 200


@dataclass(frozen=True)
class Attribute:
    """An attribute of a resource, by RFC 7643, section 7; `sub` are those of a complex one.

    A reference leads to a resource of the type `references`.
    """

    name: str
    description: str
    type: str = "string"
    multi_valued: bool = False
    required: bool = False
    mutability: str = "readWrite"
    uniqueness: str = "none"
    sub: "Sequence[Attribute]" = ()
    references: str = ""

    def as_json(self) -> dict[str, Any]:
        text = {"caseExact": False, "uniqueness": self.uniqueness} if self.type == "string" else {}
        return {
            "name": self.name,
            "type": self.type,
            "multiValued": self.multi_valued,
            "description": self.description,
            "required": self.required,
            "mutability": self.mutability,
            "returned": "default",
            **text,
            **({"referenceTypes": [self.references]} if self.references else {}),
            **({"subAttributes": [each.as_json() for each in self.sub]} if self.sub else {}),
        }


EXTERNAL_ID = Attribute("externalId", "The identity provider's own id.")
USER_ATTRIBUTES: Sequence[Attribute] = (
    Attribute("userName", "Name for signing in.", required=True, uniqueness="server"),
    Attribute(
        "name",
        "Parts of the name; used where displayName is missing.",
        type="complex",
        sub=(
            Attribute("formatted", "The full name."),
            Attribute("familyName", "The family name."),
            Attribute("givenName", "The given name."),
        ),
    ),
    Attribute("displayName", "Name shown in the console."),
    Attribute("active", "False for a deactivated account.", type="boolean"),
    Attribute(
        "emails",
        "E-mail addresses; the primary one, else the first, is used.",
        type="complex",
        multi_valued=True,
        sub=(
            Attribute("value", "The address."),
            Attribute("type", "Its kind, such as work."),
            Attribute("primary", "True for the preferred address.", type="boolean"),
        ),
    ),
    Attribute(
        "groups",
        "Groups of the person; change them in the groups.",
        type="complex",
        multi_valued=True,
        mutability=READ_ONLY,
        sub=(
            Attribute("value", "The group's id.", mutability=READ_ONLY),
            Attribute(
                "$ref",
                "The group's URI.",
                type="reference",
                mutability=READ_ONLY,
                references="Group",
            ),
            Attribute("display", "The group's name.", mutability=READ_ONLY),
        ),
    ),
)
GROUP_ATTRIBUTES: Sequence[Attribute] = (
    Attribute("displayName", "The group's name.", required=True, uniqueness="server"),
    Attribute(
        "members",
        "The people in the group; groups can't be members.",
        type="complex",
        multi_valued=True,
        sub=(
            Attribute("value", "The user's id.", mutability="immutable"),
            Attribute(
                "$ref",
                "The user's URI.",
                type="reference",
                mutability="immutable",
                references="User",
            ),
            Attribute("display", "The user's name.", mutability=READ_ONLY),
        ),
    ),
)


@dataclass(frozen=True)
class ResourceType:
    """A type of resource with its schema and the path of its endpoint."""

    name: str
    schema: str
    endpoint: str
    description: str
    attributes: Sequence[Attribute]

    def find(self, name: str) -> Attribute | None:
        """Return the attribute with this name, in any case; None if it is ignored."""
        wanted = name.casefold()
        known = (*self.attributes, EXTERNAL_ID)
        return next((each for each in known if each.name.casefold() == wanted), None)


USERS = ResourceType("User", USER, "/Users", "A person.", USER_ATTRIBUTES)
GROUPS = ResourceType("Group", GROUP, "/Groups", "A group of people.", GROUP_ATTRIBUTES)
RESOURCES = (USERS, GROUPS)


def describe_schema(resource: ResourceType, base: str) -> dict[str, Any]:
    return {
        "schemas": [f"{CORE}Schema"],
        "id": resource.schema,
        "name": resource.name,
        "description": resource.description,
        "attributes": [each.as_json() for each in resource.attributes],
        "meta": {"resourceType": "Schema", "location": f"{base}/Schemas/{resource.schema}"},
    }


def describe_resource_type(resource: ResourceType, base: str) -> dict[str, Any]:
    return {
        "schemas": [f"{CORE}ResourceType"],
        "id": resource.name,
        "name": resource.name,
        "endpoint": resource.endpoint,
        "description": resource.description,
        "schema": resource.schema,
        "meta": {
            "resourceType": "ResourceType",
            "location": f"{base}/ResourceTypes/{resource.name}",
        },
    }


def describe_service(base: str) -> dict[str, Any]:
    return {
        "schemas": [f"{CORE}ServiceProviderConfig"],
        "patch": {"supported": True},
        "bulk": {"supported": False, "maxOperations": 0, "maxPayloadSize": 0},
        "filter": {"supported": True, "maxResults": MAX_PAGE},
        "changePassword": {"supported": False},
        "sort": {"supported": False},
        "etag": {"supported": True},
        "authenticationSchemes": [
            {
                "type": "oauthbearertoken",
                "name": "Bearer token",
                "description": "An API token with the scope scim.",
                "primary": True,
            }
        ],
        "meta": {
            "resourceType": "ServiceProviderConfig",
            "location": f"{base}/ServiceProviderConfig",
        },
    }


def list_response(
    resources: Sequence[Any], *, total: int | None = None, start: int = 1
) -> dict[str, Any]:
    """Return a list response of a page that starts at the resource number `start`."""
    return {
        "schemas": [LIST_RESPONSE],
        "totalResults": len(resources) if total is None else total,
        "startIndex": start,
        "itemsPerPage": len(resources),
        "Resources": list(resources),
    }
