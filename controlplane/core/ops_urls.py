"""The paths of operations: probes and metrics.

The data plane answers `/health/live` and `/health/ready/data` itself where it runs in the same
process; these serve where it does not.
"""

from django.urls import URLPattern

from controlplane.core import health
from controlplane.core.http.routes import both_forms
from controlplane.core.ops_views import MetricsView, probe

urlpatterns: list[URLPattern] = [
    *both_forms("health/startup", probe(health.started), name="health-startup"),
    *both_forms("health/live", probe(health.live), name="health-live"),
    *both_forms("health/ready", probe(health.ready), name="health-ready"),
    *both_forms("health/ready/data", probe(health.ready_data), name="health-ready-data"),
    *both_forms("metrics", MetricsView.as_view(), name="metrics"),
]
