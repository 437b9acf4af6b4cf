"""Page and API routes of safety rules."""

from django.urls import URLPattern, path

from controlplane.core.http.routes import both_forms
from switches.rules import api, views

api_urlpatterns: list[URLPattern] = [
    *both_forms("rules/", api.RuleList.as_view(), name="api-rules"),
    *both_forms("rules/<int:rule_id>/", api.RuleDetail.as_view(), name="api-rule"),
]
urlpatterns: list[URLPattern] = [
    path("rules/", views.rules_page, name="rules_page"),
    path("rules/new/", views.new_rule, name="new_rule"),
    path("rules/<int:rule_id>/change/", views.change_rule, name="change_rule"),
    path("rules/<int:rule_id>/remove/", views.remove_rule, name="remove_rule"),
]
