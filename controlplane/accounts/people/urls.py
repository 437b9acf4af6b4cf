from django.urls import URLPattern

from controlplane.core.http.routes import both_forms

from . import api, session_api

api_urlpatterns: list[URLPattern] = [
    *both_forms("users/", api.UserList.as_view(), name="api-users"),
    *both_forms("users/<int:user_id>/", api.UserDetail.as_view(), name="api-user"),
    *both_forms("sessions/", session_api.SessionList.as_view(), name="api-sessions"),
    *both_forms("sessions/end", session_api.EndSessions.as_view(), name="api-sessions-end"),
    *both_forms(
        "sessions/<str:session_id>/", session_api.SessionView.as_view(), name="api-session"
    ),
]
