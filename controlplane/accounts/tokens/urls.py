from django.urls import URLPattern, path

from controlplane.core.http.routes import both_forms

from . import api, views

api_urlpatterns: list[URLPattern] = [
    *both_forms("tokens/", api.TokenList.as_view(), name="api-tokens"),
    *both_forms("tokens/<int:token_id>/revoke", api.RevokeTokenView.as_view(), name="api-revoke"),
    *both_forms(
        "tokens/<int:token_id>/hand-over", api.HandOverView.as_view(), name="api-hand-over"
    ),
]
urlpatterns: list[URLPattern] = [
    path("tokens/", views.tokens_page, name="tokens_page"),
    path("tokens/new/", views.create_token, name="token_new"),
    path("tokens/<int:token_id>/revoke/", views.revoke_token, name="token_revoke"),
    path("tokens/<int:token_id>/hand-over/", views.hand_over_token, name="token_hand_over"),
]
