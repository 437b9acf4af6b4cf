"""A Celery service with a client that is made before its pool is forked."""

import os
import time

from celery import Celery
from celery.signals import worker_process_shutdown

from switchgear import from_env

app = Celery("tasks", broker=os.environ["REDIS_URL"], backend=os.environ["REDIS_URL"])
app.conf.task_default_queue = os.environ["QUEUE"]
app.conf.broker_connection_retry_on_startup = True
app.conf.result_expires = 60
gear = from_env()


@worker_process_shutdown.connect
def end(**_kwargs):
    gear.close()


@app.task
def ask():
    allowed = gear.allowed(feature="chat")
    time.sleep(0.05)  # So that two at once are for two processes.
    return {"pid": os.getpid(), "allowed": allowed, "instance": gear.status().instance}
