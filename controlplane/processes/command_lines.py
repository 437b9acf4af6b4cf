"""The command line of each process, defined in this one place."""

from controlplane import asgi_server

_CELERY = ("-m", "controlplane.processes.celery_command", "--quiet", "--app", "controlplane.celery")
_LEVEL = ("--loglevel", "INFO")
_WORKER = (
    *("--pool", "threads"),
    *("--without-gossip", "--without-mingle", "--without-heartbeat"),
)


def web(*, host: str, port: int, workers: int) -> list[str]:
    return asgi_server.arguments(
        "controlplane.asgi:application", host=host, port=port, workers=workers
    )


def dataplane(*, host: str, port: int, workers: int) -> list[str]:
    return asgi_server.arguments(
        "controlplane.dataplane:app", host=host, port=port, workers=workers
    )


def stand_in(*, host: str, port: int) -> list[str]:
    """Return the command line of the data plane that answers while the web process starts."""
    return ["-m", "controlplane.dataplane.stand_in", host, str(port)]


def worker(queues: str = "") -> list[str]:
    """Return the command of a worker for these comma-separated queues, or all."""
    chosen = ("--queues", queues) if queues else ()
    return [*_CELERY, "worker", *_WORKER, *chosen, *_LEVEL]


def beat() -> list[str]:
    return [*_CELERY, "beat", *_LEVEL]


def watchdog() -> list[str]:
    return ["manage.py", "watchdog"]
