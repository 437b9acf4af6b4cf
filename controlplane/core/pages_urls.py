"""URL paths of core's pages."""

from django.urls import path

from controlplane.core.approvals import urls as approvals
from controlplane.core.attention import urls as attention
from controlplane.core.audit import views as audit
from controlplane.core.jobs import urls as jobs
from controlplane.core.palette import views as palette
from controlplane.core.runbooks import views as runbooks

urlpatterns = [
    path("audit/", audit.audit_page, name="audit_page"),
    path("audit/verify/", audit.verify, name="audit_verify"),
    *approvals.urlpatterns,
    *attention.urlpatterns,
    *jobs.urlpatterns,
    path("find/", palette.find_page, {"template": "core/palette.html"}, name="find_page"),
    path("find/part/", palette.find_page, {"template": "_palette_found.html"}, name="find_part"),
    path("runbooks/", runbooks.runbooks_page, name="runbooks_page"),
    path("runbooks/<slug:slug>/", runbooks.runbook_page, name="runbook_page"),
]
