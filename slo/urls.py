"""URLs of the SLO API."""

from django.urls import URLPattern

from controlplane.core.http.routes import both_forms
from slo.api import alerts, openslo, sli, slos, thresholds

ONE = "slos/<str:name>"

api_urlpatterns: list[URLPattern] = [
    *both_forms("slos/", slos.SloList.as_view(), name="api-slos"),
    *both_forms(f"{ONE}/", slos.SloDetail.as_view(), name="api-slo"),
    *both_forms(f"{ONE}/status", slos.StatusView.as_view(), name="api-slo-status"),
    *both_forms(f"{ONE}/series", slos.SeriesView.as_view(), name="api-slo-series"),
    *both_forms(f"{ONE}/backtest", slos.BacktestView.as_view(), name="api-slo-backtest"),
    *both_forms(f"{ONE}/exclusions/", slos.ExclusionList.as_view(), name="api-slo-exclusions"),
    *both_forms(
        f"{ONE}/exclusions/<str:exclusion_id>/",
        slos.ExclusionDetail.as_view(),
        name="api-slo-exclusion",
    ),
    *both_forms("sli/", sli.SliView.as_view(), name="api-sli"),
    *both_forms("openslo/", openslo.OpenSloView.as_view(), name="api-openslo"),
    *both_forms("alerts/", alerts.AlertList.as_view(), name="api-alerts"),
    *both_forms("alerts/ack", alerts.AcknowledgeAlertsView.as_view(), name="api-alerts-ack"),
    *both_forms("alerts/<str:alert_id>/", alerts.AlertDetail.as_view(), name="api-alert"),
    *both_forms(
        "alerts/<str:alert_id>/ack", alerts.AcknowledgeAlertView.as_view(), name="api-alert-ack"
    ),
    *both_forms(
        "alerts/<str:alert_id>/comments/",
        alerts.AlertCommentsView.as_view(),
        name="api-alert-comments",
    ),
    *both_forms(
        "alerts/<str:alert_id>/postmortem",
        alerts.PostmortemView.as_view(),
        name="api-alert-postmortem",
    ),
    *both_forms("thresholds/", thresholds.ThresholdList.as_view(), name="api-thresholds"),
    *both_forms(
        "thresholds/<str:name>/", thresholds.ThresholdDetail.as_view(), name="api-threshold"
    ),
]
