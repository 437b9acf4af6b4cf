"""Page of a bulk job: progress, skipped letters and hold reason."""

from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_GET

from breakers import names
from breakers.dead_letters.bulk import replays, results
from breakers.dead_letters.letters import filters
from breakers.dead_letters.models import Departure, Replay
from breakers.dead_letters.monitoring import indexer
from breakers.dead_letters.redis_servers.servers import ServerRefused, ServerUnavailable
from breakers.dead_letters.removals import settlement
from breakers.views import live
from controlplane.core import authority
from controlplane.core.clock import db_now
from controlplane.core.http.permissions import actor_of
from controlplane.core.jobs import kinds, stuck_jobs
from controlplane.core.jobs.models import Job
from controlplane.core.jobs.resources import measure_rate
from controlplane.core.page_responses import PersonRequest, signed_in

from .stream import INDEXING_SECONDS

LATEST = 8
WATCHED_FOR = timedelta(minutes=5)
"""Time after the end of a job in which its page is refreshed often: letters may fail again."""
VERBS = {
    Job.State.RUNNING: ("pause", "cancel"),
    Job.State.HOLDING: ("pause", "cancel"),
    Job.State.PAUSED: ("resume", "cancel"),
    Job.State.PENDING: ("cancel",),
}


@signed_in
@require_GET
def replay_page(request: PersonRequest, job_id: int) -> HttpResponse:
    now = db_now()
    rows = Replay.objects.select_related("job", "stream")
    replay = rows.filter(pk=job_id).first() if job_id < 2**63 else None
    if replay is None:
        raise Http404
    with suppress(ServerUnavailable, ServerRefused):
        # Find the letters that have failed again since the last sample.
        indexer.catch_up(replay.stream, now, seconds=INDEXING_SECONDS)
        replay.refresh_from_db(fields=["failed_again"])
    return live.render_page(request, "dead_letters/replay", _page_context(request, replay, now))


def _authority_context(request: PersonRequest, replay: Replay) -> dict[str, Any]:
    """Return the stream's owner, what the person may do with the job, and why no more."""
    actor, job = actor_of(request), replay.job
    verbs = VERBS.get(Job.State(job.state), ()) if actor.may(settlement.SCOPE) else ()
    decisions = {verb: authority.decide(actor, *kinds.get_action(job, verb)) for verb in verbs}
    return {
        "team": authority.read_teams().owner_of(replay.stream.resource),
        "verbs": [verb for verb in verbs if decisions[verb].is_allowed],
        "refused": [one for one in decisions.values() if not one.is_allowed][:1],
    }


def _page_context(request: PersonRequest, replay: Replay, now: datetime) -> dict[str, Any]:
    job = replay.job
    counts = {**replays.NO_COUNTS, **replay.counts}
    departures = Departure.objects.without_payload().filter(job=job).order_by("-id")
    rate, left = measure_rate(job, now), None
    if rate and job.state == Job.State.RUNNING and job.total > job.done:
        left = timedelta(seconds=(job.total - job.done) / rate)
    return {
        "now": now,
        "replay": replay,
        "result": results.describe_result(replay),
        "is_watched": job.is_live or now - (job.finished_at or now) < WATCHED_FOR,
        "job": job,
        "stream": replay.stream,
        "counts": counts,
        "why": [(name, number) for name, number in counts["why"].items() if number],
        "rate": rate,
        "left": left,
        "is_stuck": stuck_jobs.is_stuck(job, now),
        **_authority_context(request, replay),
        "narrowed_by": filters.describe_criteria(replay.chosen),
        "edit": replays.redacted_edit(replay),
        "waits_for": [(one, names.split_name(one)) for one in replay.waits_for],
        "latest": list(departures[:LATEST]),
    }
