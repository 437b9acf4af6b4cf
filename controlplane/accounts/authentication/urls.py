"""URLs for signing in, and for a person's own sign-in settings."""

from django.urls import path

from .views import by_provider, confirm, resetting, security, sign_in

urlpatterns = [
    path("sign-in/", sign_in.SignIn.as_view(), name="login"),
    path("sign-in/second/", sign_in.second_factor, name="second_factor"),
    path("sign-in/passkey/", sign_in.sign_in_by_passkey, name="sign_in_by_passkey"),
    path("sign-in/again/", sign_in.cancel, name="sign_in_again"),
    path("sign-in/provider/", by_provider.leave, name="sign_in_provider"),
    path("sign-in/provider/callback/", by_provider.arrive, name="provider_callback"),
    path("sign-in/forgotten/", resetting.forgotten, name="password_forgotten"),
    path("sign-in/reset/<str:uid>/<str:token>/", resetting.reset, name="password_reset"),
    path("sign-out/", sign_in.sign_out, name="logout"),
    path("confirm/", confirm.confirm, name="confirm"),
    path("confirm/provider/", by_provider.leave_to_confirm, name="confirm_by_provider"),
    path("preferences/security/", security.security_page, name="security_page"),
    path("preferences/security/app/", security.add_app, name="security_app"),
    path("preferences/security/passkey/", security.add_passkey, name="security_passkey"),
    path("preferences/security/remove/", security.remove, name="security_remove"),
    path("preferences/security/codes/", security.new_codes, name="security_codes"),
]
