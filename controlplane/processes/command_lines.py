"""Command lines of the processes of an installation, to be run by its Python interpreter."""

from functools import partial

from controlplane import asgi_server

_CELERY = ("-m", "controlplane.processes.celery_command", "--quiet", "--app", "controlplane.celery")
_LEVEL = ("--loglevel", "INFO")
_WORKER = ("--pool", "threads", "--without-gossip", "--without-mingle", "--without-heartbeat")


web = partial(asgi_server.server_arguments, "controlplane.asgi:application")
dataplane = partial(asgi_server.server_arguments, "controlplane.dataplane:app")
relay = partial(asgi_server.server_arguments, "controlplane.dataplane:relay_app")


def stand_in(*, host: str, port: int) -> list[str]:
    """Return the command line of a data plane that serves until the web process is ready."""
    return ["-m", "controlplane.stand_in", host, str(port)]


def worker(queues: str = "") -> list[str]:
    """Return the command line of a Celery worker for comma-separated `queues`, or for all."""
    chosen = ("--queues", queues) if queues else ()
    return [*_CELERY, "worker", *_WORKER, *chosen, *_LEVEL]


def beat() -> list[str]:
    return [*_CELERY, "beat", *_LEVEL]


def watchdog() -> list[str]:
    return ["manage.py", "watchdog"]
