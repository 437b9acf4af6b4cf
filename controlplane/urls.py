"""The root URL configuration."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

from breakers.dead_letters.urls import api_urlpatterns as dead_letters_api
from breakers.urls import api_urlpatterns as breakers_api
from controlplane.accounts.scim.urls import scim_urlpatterns
from controlplane.accounts.urls import api_urlpatterns as accounts_api
from controlplane.core.urls import api_urlpatterns as core_api
from controlplane.notify.urls import api_urlpatterns as notify_api
from controlplane.openapi.views import SchemaView, reference_index, reference_section
from slo.urls import api_urlpatterns as slo_api
from switches.urls import api_urlpatterns as switches_api

handler400 = "controlplane.core.http.pages.bad_request"
handler403 = "controlplane.core.http.pages.permission_denied"
handler404 = "controlplane.core.http.pages.page_not_found"
handler500 = "controlplane.core.http.pages.server_error"

admin.autodiscover()

urlpatterns: list[URLPattern | URLResolver] = [
    path(
        "api/v1/",
        include(
            [
                *switches_api,
                *breakers_api,
                *dead_letters_api,
                *slo_api,
                *core_api,
                *notify_api,
                *accounts_api,
            ]
        ),
    ),
    path("scim/v2/", include(scim_urlpatterns)),
    path("api/schema/", SchemaView.as_view(), name="schema"),
    path("api/docs/", reference_index, name="docs"),
    path("api/docs/<slug:slug>/", reference_section, name="docs_section"),
    path("admin/", admin.site.urls),
    path("", include("controlplane.core.ops_urls")),
    path("", include("controlplane.accounts.pages_urls")),
    path("", include("controlplane.core.pages_urls")),
    path("", include("controlplane.notify.urls")),
    path("", include("breakers.pages_urls")),
    path("", include("breakers.dead_letters.pages_urls")),
    path("", include("slo.pages_urls")),
    path("", include("switches.pages_urls")),
]
