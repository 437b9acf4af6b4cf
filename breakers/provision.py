"""What a new installation begins with: the services and dependencies of `config/`."""

from datetime import datetime
from pathlib import Path

import structlog
from django.conf import settings

from breakers.services import loading
from controlplane.core import provision

FOLDER = "config"

log = structlog.get_logger(__name__)


@provision.at_first
def load_once(now: datetime) -> None:
    """Load the shipped folder if nothing was ever registered here."""
    folder = Path(settings.BASE_DIR) / FOLDER
    if not folder.is_dir() or not loading.nothing_yet():
        return
    loaded = loading.load_folder(folder, actor=provision.ACTOR, now=now)
    log.info("config.loaded", folder=FOLDER, entries=len(loaded.changes))
