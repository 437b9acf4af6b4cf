"""A SCIM client of the test database: requests by a token of its own, as JSON."""

from typing import Any

from django.http import HttpResponse
from django.test import Client

from controlplane.accounts.models.people import User
from controlplane.core.http.tests.callers import token_text
from controlplane.tests.fake_directory import PATCH, SCIM

ROOT = "/scim/v2/"


class Directory:
    """An identity provider; `owner` is the admin who owns its token."""

    def __init__(self, owner: User, *scopes: str) -> None:
        text = token_text(owner, scopes or ["scim"], name="okta")
        headers = {"authorization": f"Bearer {text}"}
        self.client = Client(raise_request_exception=False, headers=headers)

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> HttpResponse:
        more = {} if body is None else {"data": body, "content_type": SCIM}
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        return getattr(self.client, method)(ROOT + path, headers=named, **more)

    def get(self, path: str, **parameters: Any) -> Any:
        answer = self.client.get(ROOT + path, parameters)
        assert answer.status_code == 200, answer.content
        return answer.json()

    def find(self, kind: str, filter_: str) -> list[str]:
        """Return the ids of what a filter finds."""
        return [each["id"] for each in self.get(kind, filter=filter_)["Resources"]]

    def user(self, user_name: str = "kim@example.com", /, **more: Any) -> dict[str, Any]:
        """Create a user; return the representation."""
        answer = self.send("post", "Users", {"userName": user_name, **more})
        assert answer.status_code == 201, answer.content
        return answer.json()

    def group(self, name: str, *member_ids: str, **more: Any) -> dict[str, Any]:
        """Create a group with these members; return the representation."""
        members = [{"value": each} for each in member_ids]
        body = {"displayName": name, "members": members, **more}
        answer = self.send("post", "Groups", body)
        assert answer.status_code == 201, answer.content
        return answer.json()

    def patch(self, path: str, *operations: dict[str, Any], **headers: str) -> HttpResponse:
        body = {"schemas": [PATCH], "Operations": list(operations)}
        return self.send("patch", path, body, **headers)


def account(user: dict[str, Any]) -> User:
    """Return the account of a representation."""
    return User.objects.get(pk=user["id"])
