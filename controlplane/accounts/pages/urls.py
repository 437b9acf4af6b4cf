from django.urls import URLPattern, path

from . import people, preferences, sessions

urlpatterns: list[URLPattern] = [
    path("preferences/", preferences.preferences_page, name="preferences"),
    path("preferences/sessions/", sessions.sessions_page, name="sessions_page"),
    path("preferences/sessions/end/", sessions.end_session, name="session_end"),
    path("theme/", preferences.set_theme, name="theme"),
    path("people/", people.people_page, name="people_page"),
    path("people/new/", people.create_person, name="person_new"),
    path("people/<int:user_id>/", people.person_page, name="person_page"),
    path("people/<int:user_id>/change/", people.change_person, name="person_change"),
    path("people/<int:user_id>/deactivate/", people.deactivate_person, name="person_deactivate"),
    path("people/<int:user_id>/activate/", people.activate_person, name="person_activate"),
    path("people/<int:user_id>/sessions/", people.end_sessions, name="person_sessions"),
    path("people/<int:user_id>/factors/", people.reset_factors, name="person_factors"),
    path("people/<int:user_id>/link/", people.reset_link, name="person_link"),
]
