"""URL paths of core's pages."""

from django.urls import path

from controlplane.core.approvals import urls as approvals
from controlplane.core.attention import urls as attention
from controlplane.core.audit import views as audit
from controlplane.core.jobs import urls as jobs
from controlplane.core.palette import urls as palette
from controlplane.core.runbooks import urls as runbooks

urlpatterns = [
    path("audit/", audit.audit_page, name="audit_page"),
    path("audit/verify/", audit.verify, name="audit_verify"),
    *approvals.urlpatterns,
    *attention.urlpatterns,
    *jobs.urlpatterns,
    *palette.urlpatterns,
    *runbooks.urlpatterns,
]
