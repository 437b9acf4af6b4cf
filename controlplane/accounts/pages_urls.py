"""URL paths of the accounts' pages."""

from django.urls import path

from .authentication.views import (
    confirm,
    emergency_code,
    password_reset,
    security,
    sign_in,
    single_sign_on,
)
from .pages import people, preferences, sessions
from .teams import grant_views as grants
from .teams import rule_views as rules
from .teams import views as teams
from .tokens import views as tokens

urlpatterns = [
    path("sign-in/", sign_in.SignIn.as_view(), name="login"),
    path("sign-in/second/", sign_in.second_factor, name="second_factor"),
    path("sign-in/passkey/", sign_in.sign_in_by_passkey, name="sign_in_by_passkey"),
    path("sign-in/again/", sign_in.cancel_sign_in, name="sign_in_again"),
    path("sign-in/provider/", single_sign_on.redirect_to_provider, name="sign_in_provider"),
    path("sign-in/provider/callback/", single_sign_on.handle_callback, name="provider_callback"),
    path("sign-in/forgotten/", password_reset.request_link, name="password_forgotten"),
    path(
        "sign-in/reset/<str:uid>/<str:token>/", password_reset.reset_password, name="password_reset"
    ),
    path("sign-out/", sign_in.sign_out, name="logout"),
    path("confirm/", confirm.confirm, name="confirm"),
    path("confirm/provider/", single_sign_on.redirect_to_confirm, name="confirm_by_provider"),
    path("preferences/security/", security.security_page, name="security_page"),
    path("preferences/security/app/", security.add_app, name="security_app"),
    path("preferences/security/passkey/", security.add_passkey, name="security_passkey"),
    path("preferences/security/remove/", security.remove, name="security_remove"),
    path("preferences/security/codes/", security.new_codes, name="security_codes"),
    # Not below the security page, which people reach before they set up a required second factor.
    path("preferences/emergency-code/", emergency_code.create_code, name="emergency_code"),
    path(
        "preferences/emergency-code/revoke/",
        emergency_code.revoke_code,
        name="emergency_code_revoke",
    ),
    path("preferences/", preferences.preferences_page, name="preferences"),
    path("preferences/new-password/", password_reset.choose_password, name="password_new"),
    path("preferences/sessions/", sessions.sessions_page, name="sessions_page"),
    path("preferences/sessions/end/", sessions.end_session, name="session_end"),
    path("ask/", grants.ask_page, name="ask_page"),
    path("theme/", preferences.set_theme, name="theme"),
    path("people/", people.people_page, name="people_page"),
    path("people/new/", people.create_person, name="person_new"),
    path("people/<int:user_id>/", people.person_page, name="person_page"),
    path("people/<int:user_id>/change/", people.change_person, name="person_change"),
    path("people/<int:user_id>/deactivate/", people.deactivate_person, name="person_deactivate"),
    path("people/<int:user_id>/activate/", people.activate_person, name="person_activate"),
    path("people/<int:user_id>/sessions/", people.end_sessions, name="person_sessions"),
    path("people/<int:user_id>/factors/", people.reset_factors, name="person_factors"),
    path(
        "people/<int:user_id>/emergency-code/revoke/",
        people.revoke_emergency_code,
        name="person_emergency_code_revoke",
    ),
    path("people/<int:user_id>/link/", people.reset_link, name="person_link"),
    path("teams/", teams.teams_page, name="teams_page"),
    path("teams/new/", teams.new_team, name="team_new"),
    path("teams/unowned/", teams.unowned_page, name="teams_unowned"),
    path("teams/authority/", rules.rules_page, name="authority_page"),
    path("teams/authority/new/", rules.new_rule, name="authority_new"),
    path("teams/authority/<slug:action>/<slug:kind>/", rules.change_rule, name="authority_change"),
    path("teams/<slug:slug>/", teams.team_page, name="team_page"),
    path("teams/<slug:slug>/change/", teams.change_team, name="team_change"),
    path("teams/<slug:slug>/members/", teams.add_members, name="team_members"),
    path("teams/<slug:slug>/members/<int:user_id>/", teams.change_member, name="team_member"),
    path("teams/<slug:slug>/owns/", teams.change_patterns, name="team_patterns"),
    path("teams/<slug:slug>/delete/", teams.delete_team, name="team_delete"),
    path("tokens/", tokens.tokens_page, name="tokens_page"),
    path("tokens/new/", tokens.create_token, name="token_new"),
    path("tokens/<int:token_id>/revoke/", tokens.revoke_token, name="token_revoke"),
    path("tokens/<int:token_id>/rotate/", tokens.rotate_token, name="token_rotate"),
    path("tokens/<int:token_id>/hand-over/", tokens.hand_over_token, name="token_hand_over"),
]
