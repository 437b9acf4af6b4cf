"""URL paths of core's API."""

from django.urls import URLPattern

from controlplane.core import ops_api
from controlplane.core.approvals import urls as approvals
from controlplane.core.attention import urls as attention
from controlplane.core.audit import api as audit
from controlplane.core.gates import api as gates
from controlplane.core.http.routes import both_forms
from controlplane.core.jobs import urls as jobs

api_urlpatterns: list[URLPattern] = [
    *approvals.api_urlpatterns,
    *both_forms("audit/", audit.AuditList.as_view(), name="api-audit"),
    *both_forms("audit/export", audit.AuditExport.as_view(), name="api-audit-export"),
    *attention.api_urlpatterns,
    *jobs.api_urlpatterns,
    *both_forms("gates/", gates.GateList.as_view(), name="api-gates"),
    *both_forms("gates/<str:name>", gates.GateView.as_view(), name="api-gate"),
    *both_forms("degradation", ops_api.DegradationView.as_view(), name="api-degradation"),
]
