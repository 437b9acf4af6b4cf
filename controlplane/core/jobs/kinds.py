"""Registry of job kinds."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.utils.module_loading import autodiscover_modules

from controlplane.core.actions import Action
from controlplane.core.actors import Actor
from controlplane.core.jobs.claims import LeasedJob
from controlplane.core.jobs.models import Job

MAX_AT_ONCE = 2000

Probe = Callable[[str], None]
"""Function that receives the name of each point where a worker may die; tests raise in it."""
Work = Callable[[Sequence[LeasedJob], datetime, Probe], int]
"""Function that runs leased jobs of a kind and returns the number of jobs that progressed."""
Intervention = Callable[[Job, str, Actor, datetime], None]
"""Function that pauses, resumes or cancels a job, with a reason; it takes its own locks."""


@dataclass(frozen=True)
class JobResult:
    """The result of a job, where its state alone would claim too much.

    `text` is short, such as `20 sent, 20 failed again`. `word`, with an icon and the tone of its
    color, replaces the state of a completed job.
    """

    text: str
    icon: str
    word: str
    tone: str

    @property
    def bar(self) -> str:
        """The tone of the job's progress bar."""
        return {"overdue": "failed", "pending": "holding"}.get(self.tone, "ramp")


Results = Callable[[Sequence[Job]], Mapping[int, JobResult]]
"""Function that returns the known results of jobs of one kind, by id."""


def no_results(_jobs: Sequence[Job]) -> Mapping[int, JobResult]:
    return {}


def no_probe(_point: str) -> None:
    pass


def _get_subject(job: Job) -> str:
    return job.subject


def _get_release(_job: Job) -> Action:
    return Action.RELEASE


@dataclass(frozen=True)
class JobKind:
    """A kind of job.

    The periodic task `tick` runs its jobs by the function `work`; `path` returns the URL path of a
    job's page, and `results` returns the results of its jobs. People need the token scope `scope`
    to intervene in a job. `resource` returns the resource that a job works on, and `resumption` the
    action that resuming the job is; pausing and cancelling are always :attr:`Action.ENGAGE`.
    `interventions` replace the default `pause`, `resume` and `cancel`. At most `most` jobs are
    leased at once, so that all can run within one lease. Finished jobs are deleted after
    `kept_days`; None keeps them forever. With `tells_failures` the kind announces its own failures.
    """

    name: str
    title: str
    tick: str
    work: Work
    path: Callable[[Job], str]
    results: Results = no_results
    scope: str = "switches:write"
    resource: Callable[[Job], str] = _get_subject
    resumption: Callable[[Job], Action] = _get_release
    interventions: Mapping[str, Intervention] = field(default_factory=dict)
    most: int = MAX_AT_ONCE
    kept_days: int | None = None
    tells_failures: bool = False


_registered: dict[str, JobKind] = {}


def register(kind: JobKind) -> JobKind:
    """Register a job kind. Each app does so in its module `jobs`."""
    _registered[kind.name] = kind
    return kind


def get_kinds() -> Mapping[str, JobKind]:
    _import_jobs_modules()
    return _registered


# Cached: the search takes milliseconds, and ticks look kinds up often.
@functools.cache
def _import_jobs_modules() -> None:
    autodiscover_modules("jobs")


def get_title(job: Job) -> str:
    """Return the title of the job's kind; its name if no installed app has the kind."""
    kind = get_kinds().get(job.kind)
    return kind.title if kind else job.kind


def get_path(job: Job) -> str:
    """Return the path of the job's page; the list of jobs if no installed app has its kind."""
    kind = get_kinds().get(job.kind)
    return kind.path(job) if kind else "/jobs/"


def load_results(jobs: Sequence[Job]) -> Mapping[int, JobResult]:
    """Return the known results of jobs by id, in at most one query for each kind."""
    found: dict[int, JobResult] = {}
    for name in {job.kind for job in jobs} & get_kinds().keys():
        found |= get_kinds()[name].results([job for job in jobs if job.kind == name])
    return found


def get_scope(job: Job | None) -> str:
    """Return the token scope required to intervene in a job; without a job, the default scope."""
    kind = get_kinds().get(job.kind) if job else None
    return kind.scope if kind else "switches:write"


def get_resource(job: Job) -> str:
    """Return the resource that a job works on."""
    kind = get_kinds().get(job.kind)
    return kind.resource(job) if kind else _get_subject(job)


def get_action(job: Job, verb: str) -> tuple[Action, str]:
    """Return the action that an intervention is, and the resource that it concerns."""
    kind = get_kinds().get(job.kind)
    resource = get_resource(job)
    if verb != "resume":
        return Action.ENGAGE, resource
    return kind.resumption(job) if kind else _get_release(job), resource


def get_kinds_of_tick(tick: str) -> list[JobKind]:
    return [kind for kind in get_kinds().values() if kind.tick == tick]
