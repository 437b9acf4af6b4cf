"""SCIM 2.0 endpoints, for identity providers with a token of the scope `scim`."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.accounts.authentication.rest import TokenAuthentication
from controlplane.accounts.models.directory import DirectoryGroup, DirectoryUser
from controlplane.core.clock import db_now
from controlplane.core.errors import NotFound
from controlplane.core.http.json_format import JSONRenderer, StrictJSONParser
from controlplane.core.http.permissions import actor_of
from controlplane.core.http.views import ApiView
from controlplane.core.problem import SCIM_MEDIA_TYPE
from controlplane.core.protocol import matches_etag
from controlplane.core.roles import SCIM

from . import documents, filters, groups, queries, schemas, users
from .errors import InvalidRequest, PreconditionFailed
from .patches import Document

DEFAULT_PAGE = 100
MAX_START = 10**9
VERSION = "/scim/v2"


class ScimRenderer(JSONRenderer):
    media_type = SCIM_MEDIA_TYPE


class ScimParser(StrictJSONParser):
    media_type = SCIM_MEDIA_TYPE


class ScimView(ApiView):
    """Base of SCIM's views, which only tokens can use; not a part of the API's schema."""

    read_scope = write_scope = SCIM
    schema = None
    authentication_classes = [TokenAuthentication]
    parser_classes = [ScimParser, StrictJSONParser]
    renderer_classes = [ScimRenderer]

    @property
    def base(self) -> str:
        """The absolute URL of SCIM's root, without a slash at its end."""
        return settings.PUBLIC_URL.rstrip("/") + VERSION if settings.PUBLIC_URL else self._local()

    def _local(self) -> str:
        return str(self.request.build_absolute_uri(VERSION))

    @property
    def body(self) -> dict[str, Any]:
        return dict(self.request.data)  # The parsers accept nothing but objects.

    def select(self, document: Document) -> Document:
        """Return the attributes that the client wants, by `attributes` or `excludedAttributes`."""
        return documents.select_attributes(document, *self.read_selection())

    def read_selection(self) -> tuple[Sequence[str], Sequence[str]]:
        wanted, unwanted = (
            [filters.strip_schema(one.strip()) for one in text.split(",") if one.strip()]
            for text in (
                self.request.query_params.get("attributes", ""),
                self.request.query_params.get("excludedAttributes", ""),
            )
        )
        return wanted, unwanted

    def respond(self, document: Document, status: int = 200) -> Response:
        """Return a resource with its version and address."""
        meta = document["meta"]
        response = Response(self.select(document), status=status)
        response["ETag"] = meta["version"]
        if status == 201:
            response["Location"] = meta["location"]
        return response

    def respond_to_read(self, document: Document) -> Response:
        """Return a resource, or 304 if the client has this version."""
        version = document["meta"]["version"]
        known = self.request.headers.get("If-None-Match", "")
        if known and _is_listed(version, known):
            return Response(status=304, headers={"ETag": version})
        return self.respond(document)

    def require_version(self, version: str) -> None:
        """Raise :class:`PreconditionFailed` unless `If-Match`, if sent, lists the version."""
        wanted = self.request.headers.get("If-Match", "")
        if wanted and not _is_listed(version, wanted):
            raise PreconditionFailed("It has changed since the version that you name. Read it.")

    def respond_with_page(
        self, rows: QuerySet[Any], render: Callable[[Sequence[Any]], Sequence[Document]]
    ) -> Response:
        """Return the page of rows from `startIndex`, with up to `count` of them."""
        start = min(max(1, _read_number(self.request, "startIndex", 1)), MAX_START)
        count = min(max(0, _read_number(self.request, "count", DEFAULT_PAGE)), schemas.MAX_PAGE)
        total = rows.count()
        page = list(rows[start - 1 : start - 1 + count]) if count else []
        found = [self.select(document) for document in render(page)]
        return Response(schemas.list_response(found, total=total, start=start))


class ScimUsers(ScimView):
    def get(self, request: Request) -> Response:
        rows = queries.filter_users(request.query_params.get("filter", ""))
        return self.respond_with_page(rows, lambda page: render_users(page, self.base))

    def post(self, request: Request) -> Response:
        row = users.create_user(body=self.body, actor=actor_of(request), now=db_now())
        return self.respond(render_users([row], self.base)[0], status=201)


class ScimUser(ScimView):
    def get(self, request: Request, resource_id: str) -> Response:
        (document,) = render_users([users.get_user(resource_id)], self.base)
        return self.respond_to_read(document)

    def put(self, request: Request, resource_id: str) -> Response:
        return self._change(users.replace_user, resource_id)

    def patch(self, request: Request, resource_id: str) -> Response:
        return self._change(users.patch_user, resource_id)

    def delete(self, request: Request, resource_id: str) -> Response:
        users.delete_user(
            user_id=resource_id, actor=actor_of(request), now=db_now(), check=self._check
        )
        return Response(status=204)

    def _change(self, change: Callable[..., DirectoryUser], resource_id: str) -> Response:
        row = change(
            user_id=resource_id,
            body=self.body,
            actor=actor_of(self.request),
            now=db_now(),
            check=self._check,
        )
        return self.respond(render_users([row], self.base)[0])

    def _check(self, row: DirectoryUser) -> None:
        if "If-Match" in self.request.headers:
            (document,) = render_users([row], self.base)
            self.require_version(document["meta"]["version"])


class ScimGroups(ScimView):
    def get(self, request: Request) -> Response:
        rows = queries.filter_groups(request.query_params.get("filter", ""))
        wanted, unwanted = self.read_selection()
        shows_members = _selects("members", wanted, unwanted)
        return self.respond_with_page(
            rows, lambda page: render_groups(page, self.base, with_members=shows_members)
        )

    def post(self, request: Request) -> Response:
        group = groups.create_group(body=self.body, actor=actor_of(request), now=db_now())
        return self.respond(render_groups([group], self.base)[0], status=201)


class ScimGroup(ScimView):
    def get(self, request: Request, resource_id: str) -> Response:
        shows_members = _selects("members", *self.read_selection())
        rows = [groups.get_group(resource_id)]
        (document,) = render_groups(rows, self.base, with_members=shows_members)
        return self.respond_to_read(document)

    def put(self, request: Request, resource_id: str) -> Response:
        group = groups.replace_group(**self._arguments(resource_id), body=self.body)
        return self.respond(render_groups([group], self.base)[0])

    def patch(self, request: Request, resource_id: str) -> Response:
        """Return no content, because a group may have thousands of members."""
        group = groups.patch_group(**self._arguments(resource_id), body=self.body)
        return Response(status=204, headers={"ETag": documents.version_of_group(group)})

    def delete(self, request: Request, resource_id: str) -> Response:
        groups.delete_group(**self._arguments(resource_id))
        return Response(status=204)

    def _arguments(self, resource_id: str) -> dict[str, Any]:
        return {
            "group_id": resource_id,
            "actor": actor_of(self.request),
            "now": db_now(),
            "check": lambda group: self.require_version(documents.version_of_group(group)),
        }


class ServiceProviderConfig(ScimView):
    def get(self, request: Request) -> Response:
        return Response(schemas.describe_service(self.base))


class ResourceTypes(ScimView):
    def get(self, request: Request, name: str = "") -> Response:
        described = {
            each.name: schemas.describe_resource_type(each, self.base) for each in schemas.RESOURCES
        }
        return _respond_with_description(described, name)


class Schemas(ScimView):
    def get(self, request: Request, name: str = "") -> Response:
        described = {
            each.schema: schemas.describe_schema(each, self.base) for each in schemas.RESOURCES
        }
        return _respond_with_description(described, name)


def render_users(rows: Sequence[DirectoryUser], base: str) -> list[Document]:
    """Return the representations of users, with their groups."""
    links = DirectoryGroup.members.through.objects.filter(user_id__in=[row.pk for row in rows])
    found: dict[int, list[tuple[int, str]]] = {}
    for user_id, group_id, name in links.order_by("directorygroup_id").values_list(
        "user_id", "directorygroup_id", "directorygroup__name"
    ):
        found.setdefault(user_id, []).append((group_id, name))
    return [documents.render_user(row, found.get(row.pk, ()), base) for row in rows]


def render_groups(
    rows: Sequence[DirectoryGroup], base: str, *, with_members: bool = True
) -> list[Document]:
    """Return the representations of groups, with their members unless they are left out."""
    if not with_members:
        return [documents.render_group(row, None, base) for row in rows]
    links = DirectoryGroup.members.through.objects.filter(
        directorygroup_id__in=[row.pk for row in rows]
    )
    found: dict[int, list[tuple[int, str]]] = {}
    for group_id, user_id, name in links.order_by("user_id").values_list(
        "directorygroup_id", "user_id", "user__username"
    ):
        found.setdefault(group_id, []).append((user_id, name))
    return [documents.render_group(row, found.get(row.pk, ()), base) for row in rows]


def _respond_with_description(described: Mapping[str, Document], name: str) -> Response:
    """Return the description with this name; all of them without a name."""
    if not name:
        return Response(schemas.list_response(list(described.values())))
    if name not in described:
        raise NotFound(f"There is no {name[:100]}.")
    return Response(described[name])


def _selects(name: str, wanted: Collection[str], unwanted: Collection[str]) -> bool:
    """Return True if an attribute, or a part of it, is among those that the client wants."""
    if wanted:
        return any(one.casefold().partition(".")[0] == name for one in wanted)
    return name not in {one.casefold() for one in unwanted}


def _is_listed(version: str, header: str) -> bool:
    return matches_etag(header, version.removeprefix("W/"))


def _read_number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, "")
    if not text:
        return default
    if not (text.removeprefix("-").isascii() and text.removeprefix("-").isdecimal()):
        raise InvalidRequest("invalidValue", f"{name} must be a whole number.")
    return int(text[:12])
