"""URL paths of core's API."""

from django.urls import URLPattern, path

from controlplane.core import ops_api
from controlplane.core.approvals import api as approvals
from controlplane.core.attention.api import AttentionView
from controlplane.core.audit import api as audit
from controlplane.core.audit.who_could import WhoCouldView
from controlplane.core.configuration import api as configuration
from controlplane.core.configuration import loading_api as loading
from controlplane.core.favorites import api as favorites
from controlplane.core.favorites.converters import PATH as FAVORITE
from controlplane.core.fleet.api import FleetView
from controlplane.core.gates import api as gates
from controlplane.core.http.routes import both_forms
from controlplane.core.jobs import api as jobs

APPROVAL, JOB = "approvals/<int:approval_id>", "jobs/<int:job_id>"

api_urlpatterns: list[URLPattern] = [
    *both_forms("approvals/", approvals.ApprovalList.as_view(), name="api-approvals"),
    *both_forms(f"{APPROVAL}/", approvals.ApprovalView.as_view(), name="api-approval"),
    *both_forms(f"{APPROVAL}/approve", approvals.ApproveView.as_view(), name="api-approve"),
    *both_forms(f"{APPROVAL}/deny", approvals.DenyView.as_view(), name="api-deny"),
    *both_forms(
        "reviews/<int:review_id>/sign", approvals.SignReviewView.as_view(), name="api-sign-review"
    ),
    *both_forms("audit/", audit.AuditList.as_view(), name="api-audit"),
    *both_forms("audit/export", audit.AuditExport.as_view(), name="api-audit-export"),
    *both_forms("audit/who-could", WhoCouldView.as_view(), name="api-audit-who-could"),
    *both_forms("attention/", AttentionView.as_view(), name="api-attention"),
    *both_forms("favorites/", favorites.FavoriteList.as_view(), name="api-favorites"),
    path(FAVORITE, favorites.FavoriteView.as_view(), name="api-favorite"),
    *both_forms("fleet/", FleetView.as_view(), name="api-fleet"),
    *both_forms("jobs/", jobs.JobList.as_view(), name="api-jobs"),
    *both_forms(f"{JOB}/", jobs.JobView.as_view(), name="api-job"),
    *both_forms(f"{JOB}/pause", jobs.PauseView.as_view(), name="api-job-pause"),
    *both_forms(f"{JOB}/resume", jobs.ResumeView.as_view(), name="api-job-resume"),
    *both_forms(f"{JOB}/cancel", jobs.CancelView.as_view(), name="api-job-cancel"),
    *both_forms("gates/", gates.GateList.as_view(), name="api-gates"),
    *both_forms("gates/<str:name>", gates.GateView.as_view(), name="api-gate"),
    *both_forms("configuration/", loading.ConfigurationView.as_view(), name="api-configuration"),
    *both_forms(
        "configuration/diff",
        loading.ConfigurationDiffView.as_view(),
        name="api-configuration-diff",
    ),
    *both_forms(
        "configuration/schemas",
        loading.ConfigurationSchemasView.as_view(),
        name="api-configuration-schemas",
    ),
    *both_forms("samples/", configuration.SamplesView.as_view(), name="api-samples"),
    *both_forms(
        "samples/clear", configuration.ClearSamplesView.as_view(), name="api-samples-clear"
    ),
    *both_forms("samples/load", configuration.LoadSamplesView.as_view(), name="api-samples-load"),
    *both_forms("degradation", ops_api.DegradationView.as_view(), name="api-degradation"),
]
