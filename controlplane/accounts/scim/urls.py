"""URL paths of SCIM, below `/scim/v2/`."""

from django.urls import URLPattern

from controlplane.core.http.routes import both_forms

from . import views

scim_urlpatterns: list[URLPattern] = [
    *both_forms("Users", views.ScimUsers.as_view(), name="scim-users"),
    *both_forms("Users/<str:resource_id>", views.ScimUser.as_view(), name="scim-user"),
    *both_forms("Groups", views.ScimGroups.as_view(), name="scim-groups"),
    *both_forms("Groups/<str:resource_id>", views.ScimGroup.as_view(), name="scim-group"),
    *both_forms(
        "ServiceProviderConfig", views.ServiceProviderConfig.as_view(), name="scim-service"
    ),
    *both_forms("ResourceTypes", views.ResourceTypes.as_view(), name="scim-types"),
    *both_forms("ResourceTypes/<str:name>", views.ResourceTypes.as_view(), name="scim-type"),
    *both_forms("Schemas", views.Schemas.as_view(), name="scim-schemas"),
    *both_forms("Schemas/<str:name>", views.Schemas.as_view(), name="scim-schema"),
]
