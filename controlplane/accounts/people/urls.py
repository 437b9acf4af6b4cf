"""Paths of people and of their sessions."""

from django.urls import URLPattern, path

from controlplane.core.http.routes import both_forms

from . import admin_views, api, session_api, session_views, views

api_urlpatterns: list[URLPattern] = [
    *both_forms("users/", api.UserList.as_view(), name="api-users"),
    *both_forms("users/<int:user_id>/", api.UserDetail.as_view(), name="api-user"),
    *both_forms("sessions/", session_api.SessionList.as_view(), name="api-sessions"),
    *both_forms("sessions/end", session_api.EndSessions.as_view(), name="api-sessions-end"),
    *both_forms(
        "sessions/<str:session_id>/", session_api.SessionView.as_view(), name="api-session"
    ),
]
urlpatterns: list[URLPattern] = [
    path("preferences/", views.preferences, name="preferences"),
    path("preferences/sessions/", session_views.sessions_page, name="sessions_page"),
    path("preferences/sessions/end/", session_views.end, name="session_end"),
    path("theme/", views.theme, name="theme"),
    path("people/", admin_views.people_page, name="people_page"),
    path("people/new/", admin_views.new, name="person_new"),
    path("people/<int:user_id>/", admin_views.person_page, name="person_page"),
    path("people/<int:user_id>/change/", admin_views.change, name="person_change"),
    path("people/<int:user_id>/deactivate/", admin_views.deactivate, name="person_deactivate"),
    path("people/<int:user_id>/activate/", admin_views.activate, name="person_activate"),
    path("people/<int:user_id>/sessions/", admin_views.end_sessions, name="person_sessions"),
    path("people/<int:user_id>/factors/", admin_views.reset_factors, name="person_factors"),
    path("people/<int:user_id>/link/", admin_views.reset_link, name="person_link"),
]
