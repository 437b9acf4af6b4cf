"""Core's pages."""

from django.urls import path

from controlplane.core.approvals import urls as approvals
from controlplane.core.attention import urls as attention
from controlplane.core.audit import views as audit
from controlplane.core.entry import urls as entry
from controlplane.core.interactions import urls as interactions
from controlplane.core.jobs import urls as jobs
from controlplane.core.outbox import urls as outbox
from controlplane.core.palette import urls as palette
from controlplane.core.people import urls as people
from controlplane.core.runbooks import urls as runbooks
from controlplane.core.targets import urls as targets
from controlplane.core.tokens import urls as tokens

urlpatterns = [
    *entry.urlpatterns,
    path("audit/", audit.audit_page, name="audit_page"),
    path("audit/verify/", audit.verify, name="audit_verify"),
    *approvals.urlpatterns,
    *attention.urlpatterns,
    *interactions.urlpatterns,
    *jobs.urlpatterns,
    *outbox.urlpatterns,
    *people.urlpatterns,
    *palette.urlpatterns,
    *runbooks.urlpatterns,
    *targets.urlpatterns,
    *tokens.urlpatterns,
]
