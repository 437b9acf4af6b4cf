"""Registration of services and dependencies as resources that teams can own."""

from collections.abc import Collection, Iterable, Mapping
from urllib.parse import urlencode

from django.urls import reverse

from controlplane.core.owned_resources import OWNED_KINDS, OwnedKind

from .message_facts import dependency_path
from .models import Dependency, Service

ARROW = "->"


def list_services() -> Iterable[str]:
    """Return the registered services; no team can own stores and external services."""
    own = [Service.Kind.SERVICE, Service.Kind.WORKER, Service.Kind.CLIENT]
    slugs = Service.objects.filter(kind__in=own).order_by("slug").values_list("slug", flat=True)
    return [f"service:{slug}" for slug in slugs]


def find_service_paths(resources: Collection[str]) -> Mapping[str, str]:
    """Return the paths of the dependency map with each service in its center."""
    page = reverse("map_page")
    return {one: f"{page}?{urlencode({'service': one.partition(':')[2]})}" for one in resources}


def list_dependencies() -> Iterable[str]:
    rows = Dependency.objects.registered().order_by("caller", "callee")
    return [
        f"dependency:{caller}{ARROW}{callee}"
        for caller, callee in rows.values_list("caller", "callee")
    ]


def find_dependency_paths(resources: Collection[str]) -> Mapping[str, str]:
    return {one: dependency_path(*one.partition(":")[2].split(ARROW, 1)) for one in resources}


OWNED_KINDS.register(
    OwnedKind("service", "service", "services", 20, list_services, find_service_paths),
    OwnedKind(
        "dependency", "dependency", "dependencies", 30, list_dependencies, find_dependency_paths
    ),
)
