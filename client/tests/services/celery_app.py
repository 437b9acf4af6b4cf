"""A Celery worker with one task, which writes a digest unless its kill switch is engaged.

SWITCHGEAR_URL=… SWITCHGEAR_TOKEN=… REDIS_URL=… celery -A celery_app worker
"""

import os

from celery import Celery, Task

from switchgear import SwitchEngaged, Switchgear

REDIS_URL = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")
WAIT_SECONDS = float(os.environ.get("WAIT_SECONDS", "60"))

app = Celery("digests", broker=REDIS_URL, backend=REDIS_URL)
app.conf.task_default_queue = os.environ.get("QUEUE", "digests")

gear = Switchgear.from_env(service="digests")  # Works in each forked process.


@app.task(bind=True, max_retries=None)
def digest(self: "Task[..., str]", user: str) -> str:
    """Write a digest. While its switch is engaged, the task is retried later."""
    try:
        return write(user)
    except SwitchEngaged as stopped:
        raise self.retry(exc=stopped, countdown=WAIT_SECONDS) from stopped


@gear.guard(feature="digest", targeting_key=lambda user: user)
def write(user: str) -> str:
    return f"Digest for {user} by {os.getpid()}"
