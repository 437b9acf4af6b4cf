from django.urls import path

from .views import confirm, password_reset, security, sign_in, single_sign_on

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
]
