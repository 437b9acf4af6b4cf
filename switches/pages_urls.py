"""URLs of the switch pages."""

from django.urls import path

from switches.drills import urls as drills
from switches.environments.views import environments_page
from switches.ramps import views as ramps
from switches.report import urls as report
from switches.rules import views as rules
from switches.trips import views as trips
from switches.views import actions, board, effect, engage, lost_changes, release, switch_page

urlpatterns = [
    path("", board.switchboard, name="switchboard"),
    path("switchboard/rows/", board.switchboard_rows, name="switchboard_rows"),
    path("alarm/", board.alarm_bar, name="alarm"),
    path("switches/engage/", engage.engage_page, name="engage"),
    path("switches/engage/preview/", engage.engage_preview, name="engage_preview"),
    path("lost-changes/", lost_changes.lost_changes_page, name="lost_changes"),
    path(
        "environments/",
        environments_page,
        {"template": "switches/environments.html"},
        "environments_page",
    ),
    path(
        "environments/rows/",
        environments_page,
        {"template": "switches/_environments.html"},
        "environments_rows",
    ),
    path("rules/", rules.rules_page, name="rules_page"),
    path("rules/new/", rules.edit_rule, name="new_rule"),
    path("rules/<int:rule_id>/change/", rules.edit_rule, name="change_rule"),
    path("rules/<int:rule_id>/remove/", rules.remove_rule, name="remove_rule"),
    path("trips/", trips.trips_page, name="trips_page"),
    path("trips/<int:trip_id>/dismiss/", trips.dismiss_trip, name="dismiss_trip"),
    path("trips/policies/new/", trips.new_policy, name="new_trip_policy"),
    path("trips/policies/<slug:trigger>/", trips.change_policy, name="change_trip_policy"),
    path("trips/policies/<slug:trigger>/remove/", trips.remove_policy, name="remove_trip_policy"),
    *report.urlpatterns,
    *drills.urlpatterns,
    path("ramps/", ramps.ramps_page, name="ramps_page"),
    path("ramps/<int:ramp_id>/", ramps.ramp_page, name="ramp_page"),
    path(
        "ramps/<int:ramp_id>/part/",
        ramps.ramp_page,
        {"template": "switches/_ramp.html"},
        "ramp_part",
    ),
    path("ramps/<int:ramp_id>/abort/", ramps.abort, name="ramp_abort"),
    path("ramps/<int:ramp_id>/pause/", ramps.intervene, {"verb": "pause"}, "ramp_pause"),
    path("ramps/<int:ramp_id>/resume/", ramps.intervene, {"verb": "resume"}, "ramp_resume"),
    path("ramps/<int:ramp_id>/advance/", ramps.intervene, {"verb": "advance"}, "ramp_advance"),
    path("switches/<str:scope>/<str:key>/", switch_page.switch_page, name="switch_page"),
    path("switches/<str:scope>/<str:key>/effect/", effect.effect_panel, name="switch_effect"),
    path("switches/<str:scope>/<str:key>/callers/", effect.callers_panel, name="switch_callers"),
    path("switches/<str:scope>/<str:key>/calls/", effect.calls_panel, name="switch_calls"),
    path("switches/<str:scope>/<str:key>/extend/", actions.extend, name="extend"),
    path("switches/<str:scope>/<str:key>/release/", release.release_page, name="release"),
    path("switches/<str:scope>/<str:key>/acknowledge/", actions.acknowledge, name="acknowledge"),
    path("switches/<str:scope>/<str:key>/reconfirm/", actions.reconfirm, name="reconfirm"),
    path("switches/<str:scope>/<str:key>/undo/", actions.undo, name="undo"),
    path("switches/<str:scope>/<str:key>/describe/", actions.describe, name="describe"),
]
