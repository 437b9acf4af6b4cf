"""The console serves the documentation while PostgreSQL and Redis are down."""

from pathlib import Path

import httpx
import pytest

from controlplane.documentation.manifest import write_manifest
from controlplane.tests.console_sockets import Console
from controlplane.tests.installation import wait_until

pytestmark = [pytest.mark.faults, pytest.mark.django_db(transaction=True)]


def test_pages_are_served_without_database_and_redis(console: Console) -> None:
    url = console.server.url
    missing = httpx.get(f"{url}/docs/")
    folder = Path(console.server.environment["SWITCHGEAR_DOCS_DIR"])
    folder.mkdir()
    (folder / "index.html").write_text("<p>Home</p>")
    write_manifest(folder, "sources")
    console.database.cut()
    console.redis.cut()
    try:
        wait_until(lambda: httpx.get(f"{url}/switches/").status_code == 503, 10)
        found = httpx.get(f"{url}/docs/")
    finally:
        console.database.mend()
        console.redis.mend()

    assert missing.status_code == 404
    assert "make docs" in missing.text
    assert found.status_code == 200
    assert found.text == "<p>Home</p>"
