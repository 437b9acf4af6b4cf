"""URLs of the switch pages."""

from django.urls import path

from switches.drills import urls as drills
from switches.report import urls as report
from switches.rules import urls as rules
from switches.trips import urls as trips
from switches.views import actions, switch_page

from .ramps import views
from .views import board, effect, engage, release

urlpatterns = [
    path("", board.switchboard, name="switchboard"),
    path("switchboard/rows/", board.switchboard_rows, name="switchboard_rows"),
    path("alarm/", board.alarm_bar, name="alarm"),
    path("switches/engage/", engage.engage_page, name="engage"),
    path("switches/engage/preview/", engage.engage_preview, name="engage_preview"),
    *rules.urlpatterns,
    *trips.urlpatterns,
    *report.urlpatterns,
    *drills.urlpatterns,
    path("ramps/", views.ramps_page, name="ramps_page"),
    path("ramps/<int:ramp_id>/", views.ramp_page, name="ramp_page"),
    path("ramps/<int:ramp_id>/part/", views.ramp_part, name="ramp_part"),
    path("ramps/<int:ramp_id>/abort/", views.abort, name="ramp_abort"),
    path("ramps/<int:ramp_id>/pause/", views.pause, name="ramp_pause"),
    path("ramps/<int:ramp_id>/resume/", views.resume, name="ramp_resume"),
    path("ramps/<int:ramp_id>/advance/", views.advance, name="ramp_advance"),
    path("switches/<str:scope>/<str:key>/", switch_page.switch_page, name="switch_page"),
    path("switches/<str:scope>/<str:key>/effect/", effect.effect_panel, name="switch_effect"),
    path("switches/<str:scope>/<str:key>/callers/", effect.callers_panel, name="switch_callers"),
    path("switches/<str:scope>/<str:key>/extend/", actions.extend, name="extend"),
    path("switches/<str:scope>/<str:key>/release/", release.release_page, name="release"),
    path("switches/<str:scope>/<str:key>/acknowledge/", actions.acknowledge, name="acknowledge"),
    path("switches/<str:scope>/<str:key>/reconfirm/", actions.reconfirm, name="reconfirm"),
    path("switches/<str:scope>/<str:key>/undo/", actions.undo, name="undo"),
    path("switches/<str:scope>/<str:key>/describe/", actions.describe, name="describe"),
]
