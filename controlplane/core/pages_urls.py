"""URL paths of core's pages."""

from django.urls import path

from controlplane.core.approvals import views as approvals
from controlplane.core.attention.views import acknowledge, attention_page
from controlplane.core.audit import views as audit
from controlplane.core.audit.who_could import who_could_page
from controlplane.core.comments.views import comment_page
from controlplane.core.configuration import views as configuration
from controlplane.core.favorites.converters import PATH as FAVORITE
from controlplane.core.favorites.views import favorite
from controlplane.core.first_steps import views as first_steps
from controlplane.core.fleet.views import fleet_page
from controlplane.core.jobs import views as jobs
from controlplane.core.palette import views as palette
from controlplane.core.runbooks import views as runbooks

APPROVAL = "approvals/<int:approval_id>"

urlpatterns = [
    path("audit/", audit.audit_page, name="audit_page"),
    path("audit/who-could/", who_could_page, name="who_could"),
    path("audit/verify/", audit.verify, name="audit_verify"),
    path("approvals/", approvals.approvals_page, name="approvals_page"),
    path(f"{APPROVAL}/", approvals.decide, name="decide_approval"),
    path(f"{APPROVAL}/approve/", approvals.approve, name="approve"),
    path(f"{APPROVAL}/deny/", approvals.deny, name="deny"),
    path(f"{APPROVAL}/edit/", approvals.edit, name="edit_approval"),
    path("reviews/<int:approval_id>/sign/", approvals.sign, name="sign_review"),
    path("attention/", attention_page, {"template": "core/attention.html"}, "attention_page"),
    path("attention/rows/", attention_page, {"template": "core/_attention.html"}, "attention_rows"),
    path(
        "escalations/<int:escalation_id>/acknowledge/", acknowledge, name="escalation_acknowledge"
    ),
    path("comments/<slug:kind>/<str:key>/", comment_page, name="comment"),
    path(FAVORITE, favorite, name="favorite"),
    path("fleet/", fleet_page, {"template": "core/fleet.html"}, name="fleet_page"),
    path("fleet/rows/", fleet_page, {"template": "core/_fleet.html"}, name="fleet_rows"),
    path("jobs/", jobs.jobs_page, {"template": "core/jobs.html"}, name="jobs_page"),
    path("jobs/rows/", jobs.jobs_page, {"template": "core/_jobs.html"}, name="jobs_rows"),
    *(
        path(f"jobs/<int:job_id>/{verb}/", jobs.intervene, {"verb": verb}, name=f"job_{verb}")
        for verb in ("pause", "resume", "cancel")
    ),
    path("first-steps/", first_steps.first_steps_page, name="first_steps_page"),
    path("first-steps/part/", first_steps.first_steps_part, name="first_steps_part"),
    path("first-steps/hide/", first_steps.hide, name="first_steps_hide"),
    path("first-steps/show/", first_steps.show, name="first_steps_show"),
    path("samples/clear/", configuration.clear_samples, name="samples_clear"),
    path("samples/load/", configuration.load_samples, name="samples_load"),
    path("find/", palette.find_page, {"template": "core/palette.html"}, name="find_page"),
    path("find/part/", palette.find_page, {"template": "_palette_results.html"}, name="find_part"),
    path("runbooks/", runbooks.runbooks_page, name="runbooks_page"),
    path("runbooks/<slug:slug>/", runbooks.runbook_page, name="runbook_page"),
]
