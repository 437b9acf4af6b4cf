"""URL paths of probes and metrics; a data plane in this process serves some of them itself."""

from django.urls import URLPattern

from controlplane.core import health
from controlplane.core.http.routes import both_forms
from controlplane.core.ops_views import MetricsView, make_probe_view

urlpatterns: list[URLPattern] = [
    *both_forms("health/startup", make_probe_view(health.report_startup), name="health-startup"),
    *both_forms("health/live", make_probe_view(health.report_liveness), name="health-live"),
    *both_forms("health/ready", make_probe_view(health.report_readiness), name="health-ready"),
    *both_forms(
        "health/ready/data",
        make_probe_view(health.report_data_plane_readiness),
        name="health-ready-data",
    ),
    *both_forms("metrics", MetricsView.as_view(), name="metrics"),
]
