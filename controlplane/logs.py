"""Logging of all processes: one JSON object per line, on stderr."""

import logging.config
from typing import Any

import structlog

_chain: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]
_processors: list[Any] = [*_chain, structlog.stdlib.ProcessorFormatter.wrap_for_formatter]
"""The one list of all cached loggers, also of those from before a second configuration."""


def _put_level_first(_logger: Any, _method: str, event: dict[str, Any]) -> dict[str, Any]:
    """Begin with level and event, which a reader then also finds in a line that was cut."""
    first = {name: event[name] for name in ("level", "event") if name in event}
    return first | event


LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "json": {
            "()": "structlog.stdlib.ProcessorFormatter",
            "foreign_pre_chain": _chain,
            "processors": [
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                _put_level_first,
                structlog.processors.JSONRenderer(),
            ],
        },
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        "django.request": {"level": "ERROR"},
        "django.security.DisallowedHost": {"level": "CRITICAL"},
        "axes": {"level": "WARNING"},
        # At level INFO, these loggers write four lines per second.
        "celery.app.trace": {"level": "WARNING"},
        "celery.worker.strategy": {"level": "WARNING"},
        "httpx": {"level": "WARNING"},
    },
}


def configure_logging() -> None:
    """Configure the logging of a process without Django."""
    logging.config.dictConfig(LOGGING)
    configure_structlog()


def configure_structlog() -> None:
    """Pass structlog's events to the standard library's loggers."""
    structlog.configure(
        processors=_processors,
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
