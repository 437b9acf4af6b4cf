"""URL paths of the accounts' API."""

from django.urls import URLPattern

from controlplane.core.http.routes import both_forms

from .people import api, session_api
from .teams import api as teams
from .teams import grant_api as grants
from .tokens import api as tokens

api_urlpatterns: list[URLPattern] = [
    *both_forms("users/", api.UserList.as_view(), name="api-users"),
    *both_forms("users/<int:user_id>/", api.UserDetail.as_view(), name="api-user"),
    *both_forms("sessions/", session_api.SessionList.as_view(), name="api-sessions"),
    *both_forms("sessions/end", session_api.EndSessions.as_view(), name="api-sessions-end"),
    *both_forms(
        "sessions/<str:session_id>/", session_api.SessionView.as_view(), name="api-session"
    ),
    *both_forms("teams/", teams.TeamList.as_view(), name="api-teams"),
    *both_forms("teams/<slug:slug>/", teams.TeamView.as_view(), name="api-team"),
    *both_forms("authority/", teams.AuthorityRuleList.as_view(), name="api-authority"),
    *both_forms("authority/decision", teams.DecisionView.as_view(), name="api-decision"),
    *both_forms(
        "authority/<slug:action>/<slug:kind>/",
        teams.AuthorityRuleView.as_view(),
        name="api-authority-rule",
    ),
    *both_forms("authority/ask", grants.AskView.as_view(), name="api-authority-ask"),
    *both_forms("tokens/", tokens.TokenList.as_view(), name="api-tokens"),
    *both_forms(
        "tokens/<int:token_id>/revoke", tokens.RevokeTokenView.as_view(), name="api-revoke"
    ),
    *both_forms(
        "tokens/<int:token_id>/rotate", tokens.RotateTokenView.as_view(), name="api-rotate"
    ),
    *both_forms(
        "tokens/<int:token_id>/hand-over", tokens.HandOverView.as_view(), name="api-hand-over"
    ),
]
