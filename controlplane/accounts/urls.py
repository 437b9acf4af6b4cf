"""URL paths of the accounts' API."""

from django.urls import URLPattern

from controlplane.core.http.routes import both_forms

from .people import api, session_api
from .tokens import api as tokens

api_urlpatterns: list[URLPattern] = [
    *both_forms("users/", api.UserList.as_view(), name="api-users"),
    *both_forms("users/<int:user_id>/", api.UserDetail.as_view(), name="api-user"),
    *both_forms("sessions/", session_api.SessionList.as_view(), name="api-sessions"),
    *both_forms("sessions/end", session_api.EndSessions.as_view(), name="api-sessions-end"),
    *both_forms(
        "sessions/<str:session_id>/", session_api.SessionView.as_view(), name="api-session"
    ),
    *both_forms("tokens/", tokens.TokenList.as_view(), name="api-tokens"),
    *both_forms(
        "tokens/<int:token_id>/revoke", tokens.RevokeTokenView.as_view(), name="api-revoke"
    ),
    *both_forms(
        "tokens/<int:token_id>/hand-over", tokens.HandOverView.as_view(), name="api-hand-over"
    ),
]
