"""The Celery app: beat sends a message for each due periodic task, and workers run them.

Lost messages do no harm, because the watchdog runs overdue tasks. So messages are never retried or
delayed (no ETA), and results are not kept.
"""

import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import django
import kombu
import structlog
from celery import Celery, beat, bootsteps, schedules, signals
from celery.app.amqp import AMQP
from celery.exceptions import SecurityWarning

from controlplane.core.environment_variables import WrongVariable

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
if "worker" in sys.argv:  # Without a pool, each tick would open a new connection.
    os.environ.setdefault("DATABASE_POOL", "6")
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")  # Checks would load all views at every start.
try:
    django.setup()
except WrongVariable as error:
    print(error, file=sys.stderr)  # noqa: T201
    sys.exit(2)

from django.conf import settings

from controlplane.core import broker, heartbeats, ticks
from controlplane.core.tasks import run_ticks

from .core.liveness import Crew, Loop
from .notify.delivery import sender, wakeups
from .processes import health_server
from .processes.schedule import Batch, IdleTicks, Schedule

THREADS = 4
CHECK_CERTIFICATE = {"ssl_cert_reqs": "required"}
MAX_WAITING = 100
LAST_SENDS_SECONDS = 3.0
MUST_END_SECONDS = 4.5
RECONNECT_EVERY_SECONDS = 2.0
LOOP_MAY_REST_SECONDS = 30.0
TASK_MAY_TAKE_SECONDS = 900.0

# Celery warns about root because of pickled messages; ours are JSON.
warnings.filterwarnings("ignore", category=SecurityWarning)
log = structlog.get_logger(__name__)
_loop = Loop(may_rest_seconds=LOOP_MAY_REST_SECONDS)
_crew = Crew(THREADS, task_may_take_seconds=TASK_MAY_TAKE_SECONDS)


def broker_url(redis_url: str) -> str:
    """Return the Redis URL in kombu's format, which differs for Unix sockets."""
    parts = urlsplit(redis_url)
    if parts.scheme != "unix":
        return redis_url
    query = parse_qs(parts.query)
    password = parts.password or quote(query.get("password", [""])[0], safe="")
    login = f"{parts.username or ''}:{password}@" if password else ""
    return f"redis+socket://{login}{parts.path}?virtual_host={query.get('db', ['0'])[0]}"


class PromptConnection(kombu.Connection):
    """A broker connection that reconnects within seconds once Redis is back."""

    def ensure_connection(self, *args: Any, **options: Any) -> Any:
        options.setdefault("interval_max", RECONNECT_EVERY_SECONDS)
        others: Callable[[], Any] | None = options.get("callback")

        def report_progress() -> None:
            if threading.current_thread() is threading.main_thread():
                _loop.record_turn()
            if others is not None:
                others()

        options["callback"] = report_progress
        return super().ensure_connection(*args, **options)


class PromptAMQP(AMQP):
    Connection = PromptConnection


_began, _began_monotonic = datetime.now(UTC), time.monotonic()


def monotonic_now() -> datetime:
    """Return a time that advances steadily, even if the local clock is changed."""
    return _began + timedelta(seconds=time.monotonic() - _began_monotonic)


class Scheduler(beat.Scheduler):
    """Celery beat's scheduler, without a state file; sends the due periodic tasks each second."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._pulse = heartbeats.Pulse("beat")
        self._reaches_broker = True
        self._idle = IdleTicks()
        self._due = Schedule(ticks.list_ticks(), self._idle.find)
        self._started_at = time.monotonic()
        super().__init__(*args, **options)

    def setup_schedule(self) -> None:
        super().setup_schedule()
        self._pulse.start()
        self._idle.start()

    def tick(self, *args: Any, **options: Any) -> float:
        _loop.record_turn()
        return float(super().tick(*args, **options))

    def apply_entry(self, entry: beat.ScheduleEntry, producer: Any = None) -> None:
        try:
            for batch in self._due.take(int(time.monotonic() - self._started_at)):
                self._send(batch, producer)
                self._reaches_broker = True
        except self._send_errors as error:
            if self._reaches_broker:
                log.warning("beat.cut_off", error=str(error))
            self._reaches_broker = False
        if self._reaches_broker:
            self._pulse.record_turn()

    def _send(self, batch: Batch, producer: Any) -> None:
        # Without workers, even expired messages would pile up.
        declared = producer.channel.queue_declare(queue=batch.queue)
        if int(declared.message_count) < MAX_WAITING:
            run_ticks.apply_async(
                (list(batch.names),), producer=producer, queue=batch.queue, expires=batch.seconds
            )

    @property
    def _send_errors(self) -> tuple[type[BaseException], ...]:
        return (kombu.exceptions.OperationalError, *self.connection.recoverable_connection_errors)


class ConsumerPulse(bootsteps.StartStopStep):
    """A worker bootstep that records the worker's heartbeat while it consumes messages."""

    requires = ("celery.worker.consumer.tasks:Tasks",)
    _pulse = heartbeats.Pulse("worker")

    def start(self, consumer: Any) -> None:
        self._pulse.start()
        self._timer = consumer.timer.call_repeatedly(1.0, self._record_turn)

    def _record_turn(self) -> None:
        self._pulse.record_turn()
        _loop.record_turn()

    def stop(self, consumer: Any) -> None:
        timer, self._timer = getattr(self, "_timer", None), None
        if timer is not None:
            timer.cancel()


QUEUES = broker.queue_names()

app = Celery("switchgear", amqp=PromptAMQP)
app.set_default()  # Otherwise tasks found in another thread belong to an app without a broker.
app.steps["consumer"].add(ConsumerPulse)
app.conf.update(
    broker_url=broker_url(settings.REDIS_URL),
    broker_transport="controlplane.broker_transport:LenientTransport",
    broker_use_ssl=CHECK_CERTIFICATE if settings.REDIS_URL.startswith("rediss:") else None,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_transport_options={
        "global_keyprefix": broker.KEY_PREFIX,
        "priority_steps": [0],  # One Redis list per queue instead of four.
        "visibility_timeout": 3600,  # Longer than any task, which would be delivered twice.
        "polling_interval": 4,  # Seconds of one BRPOP, which returns at once for a message.
        "socket_connect_timeout": 2,
        "socket_timeout": 3,
        "health_check_interval": 5,
        "interval_max": RECONNECT_EVERY_SECONDS,
    },
    task_publish_retry=False,
    task_ignore_result=True,
    task_queues=[kombu.Queue(queue) for queue in QUEUES],
    task_default_queue="housekeeping",
    task_create_missing_queues=False,
    worker_pool="threads",
    worker_concurrency=THREADS,
    worker_prefetch_multiplier=1,
    worker_enable_remote_control=False,
    worker_cancel_long_running_tasks_on_connection_loss=True,
    beat_scheduler=Scheduler,
    beat_max_loop_interval=1,
    # Early acknowledgement, the default, is right: a lost tick is followed by the next.
    beat_schedule={
        "ticks": {
            "task": run_ticks.name,
            "schedule": schedules.schedule(timedelta(seconds=1), nowfun=monotonic_now),
        }
    },
)


@signals.setup_logging.connect
def _disable_logging_setup(**_: Any) -> None:
    pass  # Celery configures logging only if this signal has no receivers.


@signals.worker_init.connect
def _serve_worker_probes(**_: Any) -> None:
    health_server.serve_probes(settings.HEALTH_PORT, loop=_loop, crew=_crew, needs_redis=True)


@signals.beat_init.connect
def _serve_beat_probes(**_: Any) -> None:
    health_server.serve_probes(settings.HEALTH_PORT, loop=_loop, needs_redis=True)


@signals.task_prerun.connect
def _record_task_start(task_id: str, **_: Any) -> None:
    _crew.begins(task_id)


@signals.task_postrun.connect
def _record_task_end(task_id: str, **_: Any) -> None:
    _crew.ends(task_id)


@signals.worker_ready.connect
def _listen(**_: Any) -> None:
    wakeups.start_listening()


@signals.worker_shutting_down.connect
def _shut_down(**_: Any) -> None:
    """At shutdown, finish sending outbox messages; exit after a time limit even if a task hangs."""
    forced = threading.Timer(MUST_END_SECONDS, os._exit, [0])
    forced.daemon = True
    forced.start()
    sender.stop_sending(LAST_SENDS_SECONDS)
