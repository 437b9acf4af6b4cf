"""The first steps with switches: the first engaged switch, and the first drill."""

from datetime import datetime

from django.urls import reverse

from controlplane.core.actors import label_of
from controlplane.core.page_registry import FIRST_STEPS, FirstStep, FirstStepEvidence
from switches.episodes import live_drills
from switches.models import Drill, Episode


def find_first_switch(_now: datetime) -> FirstStepEvidence | None:
    """Return the switch that was engaged first."""
    episode = Episode.objects.order_by("id").first()
    if episode is None:
        return None
    who = label_of(episode.engaged_by_type, episode.engaged_by_name)
    text = f"{episode.switch_id} was engaged by {who}"
    path = reverse("switch_page", args=episode.switch_id.split(":", 1))
    return FirstStepEvidence(text, episode.engaged_at, path)


def find_passed_drill(_now: datetime) -> FirstStepEvidence | None:
    """Return the last live drill whose instances blocked traffic and let it flow again."""
    passed = Drill.objects.filter(passed=True, mode=live_drills.LIVE)
    drill = passed.select_related("job").order_by("-job_id").first()
    if drill is None or drill.job.finished_at is None:
        return None
    count = drill.measured.get("engage", {}).get("instances", 0)
    instances = "1 instance" if count == 1 else f"{count:,} instances"
    text = f"The drill of {drill.switch_id} passed on {instances}"
    return FirstStepEvidence(text, drill.job.finished_at, reverse("drills_page"))


FIRST_STEPS.register(
    FirstStep(
        name="switch",
        title="Engage a switch",
        summary="An engaged switch blocks one feature, segment or experiment until you release it.",
        missing="No switch has been engaged.",
        template="switches/_first_step_switch.html",
        position=20,
        find_evidence=find_first_switch,
    ),
    FirstStep(
        name="drill",
        title="Run a drill",
        summary="A drill engages a switch on a few instances, and measures how fast they block.",
        missing="No drill has passed.",
        template="switches/_first_step_drill.html",
        position=40,
        find_evidence=find_passed_drill,
    ),
)
