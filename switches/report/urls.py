"""Page and API routes of weekly reports."""

from django.urls import URLPattern, path

from controlplane.core.http.routes import both_forms
from switches.report import api, views

ONE = "reports/weekly/<str:week>/"
OF_TEAM = f"{ONE}<slug:team>/"

api_urlpatterns: list[URLPattern] = [
    *both_forms("reports/weekly/", api.ReportList.as_view(), name="api-reports"),
    *both_forms(ONE, api.ReportDetail.as_view(), name="api-report"),
    *both_forms(f"{ONE}sign", api.SignView.as_view(), name="api-report-sign"),
    *both_forms(OF_TEAM, api.TeamReportDetail.as_view(), name="api-team-report"),
    *both_forms(f"{OF_TEAM}sign", api.TeamSignView.as_view(), name="api-team-report-sign"),
]
urlpatterns: list[URLPattern] = [
    path("reports/weekly/", views.reports_page, name="reports_page"),
    path(ONE, views.report_page, name="report_page"),
    path(f"{ONE}sign/", views.sign, name="report_sign"),
    path(OF_TEAM, views.report_page, name="team_report_page"),
    path(f"{OF_TEAM}sign/", views.sign, name="team_report_sign"),
]
