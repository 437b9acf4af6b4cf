"""Page and API routes of drills."""

from django.urls import URLPattern, path

from controlplane.core.http.routes import both_forms
from switches.drills import api, views

api_urlpatterns: list[URLPattern] = [
    *both_forms("drills/", api.DrillList.as_view(), name="api-drills"),
    *both_forms("drills/instances/", api.MarkList.as_view(), name="api-drill-instances"),
    *both_forms("drills/schedules/", api.ScheduleList.as_view(), name="api-drill-schedules"),
    *both_forms(
        "drills/schedules/<str:scope>/<str:key>/",
        api.ScheduleDetail.as_view(),
        name="api-drill-schedule",
    ),
    *both_forms("drills/<int:drill_id>/", api.DrillDetail.as_view(), name="api-drill"),
]
urlpatterns: list[URLPattern] = [
    path("drills/", views.drills_page, name="drills_page"),
    path("drills/new/", views.new_drill, name="new_drill"),
    path("drills/instances/new/", views.new_mark, name="new_drill_mark"),
    path("drills/instances/remove/", views.remove_mark, name="remove_drill_mark"),
    path("drills/schedules/remove/", views.remove_schedule, name="remove_drill_schedule"),
    path("drills/<int:drill_id>/cancel/", views.cancel_drill, name="cancel_drill"),
]
