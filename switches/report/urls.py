"""Page and API routes of weekly reports."""

from django.urls import URLPattern, path

from controlplane.core.http.routes import both_forms
from switches.report import api, views

ONE = "reports/weekly/<str:week>/"

api_urlpatterns: list[URLPattern] = [
    *both_forms("reports/weekly/", api.ReportList.as_view(), name="api-reports"),
    *both_forms(ONE, api.ReportDetail.as_view(), name="api-report"),
    *both_forms(f"{ONE}sign", api.SignView.as_view(), name="api-report-sign"),
]
urlpatterns: list[URLPattern] = [
    path("reports/weekly/", views.reports_page, name="reports_page"),
    path(ONE, views.report_page, name="report_page"),
    path(f"{ONE}sign/", views.sign, name="report_sign"),
]
