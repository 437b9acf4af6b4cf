from django.urls import URLPattern, path

from controlplane.core.approvals import api, views
from controlplane.core.http.routes import both_forms

api_urlpatterns: list[URLPattern] = [
    *both_forms("approvals/", api.ApprovalList.as_view(), name="api-approvals"),
    *both_forms("approvals/<int:approval_id>/", api.ApprovalView.as_view(), name="api-approval"),
    *both_forms(
        "approvals/<int:approval_id>/approve", api.ApproveView.as_view(), name="api-approve"
    ),
    *both_forms("approvals/<int:approval_id>/deny", api.DenyView.as_view(), name="api-deny"),
    *both_forms(
        "reviews/<int:review_id>/sign", api.SignReviewView.as_view(), name="api-sign-review"
    ),
]
urlpatterns: list[URLPattern] = [
    path("approvals/", views.approvals_page, name="approvals_page"),
    path("approvals/<int:approval_id>/approve/", views.approve, name="approve"),
    path("approvals/<int:approval_id>/deny/", views.deny, name="deny"),
    path("approvals/<int:approval_id>/edit/", views.edit, name="edit_approval"),
    path("reviews/<int:approval_id>/sign/", views.sign, name="sign_review"),
]
