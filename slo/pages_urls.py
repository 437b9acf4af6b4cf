"""URLs of the SLO pages."""

from django.urls import URLPattern, path

from slo.views import alerts, board, exclusions, slo_detail, slo_edit, thresholds

urlpatterns: list[URLPattern] = [
    path("slos/", board.slos_page, name="slos_page"),
    path("slos/thresholds/", thresholds.thresholds_page, name="thresholds_page"),
    path("slos/thresholds/new/", thresholds.create_page, name="threshold_new"),
    path("slos/thresholds/<str:name>/edit/", thresholds.edit_page, name="threshold_edit"),
    path("slos/thresholds/<str:name>/remove/", thresholds.remove_page, name="threshold_remove"),
    path("slos/new/", slo_edit.create_page, name="slo_new"),
    path("alerts/", alerts.alerts_page, name="alerts_page"),
    path("alerts/<int:alert_id>/", alerts.alert_page, name="alert_page"),
    path("alerts/<int:alert_id>/acknowledge/", alerts.acknowledge_page, name="alert_acknowledge"),
    path(
        "alerts/groups/<int:group_id>/acknowledge/",
        alerts.acknowledge_group_page,
        name="alert_group_acknowledge",
    ),
    path("alerts/<int:alert_id>/postmortem/", alerts.postmortem_page, name="alert_postmortem"),
    # Last, after fixed pages with this prefix; their names are reserved.
    path("slos/<str:name>/", slo_detail.slo_page, name="slo_page"),
    path("slos/<str:name>/series/", slo_detail.slo_series, name="slo_series"),
    path("slos/<str:name>/edit/", slo_edit.edit_page, name="slo_edit"),
    path("slos/<str:name>/remove/", slo_edit.remove_page, name="slo_remove"),
    path("slos/<str:name>/backtest/", slo_edit.backtest_page, name="slo_backtest"),
    path("slos/<str:name>/exclusions/new/", exclusions.exclude_page, name="slo_exclude"),
    path(
        "slos/<str:name>/exclusions/<int:exclusion_id>/remove/",
        exclusions.remove_exclusion_page,
        name="slo_exclusion_remove",
    ),
]
