"""A plane with known content, and requests to it as a server would send them."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from uuid import UUID

import httpx

from controlplane.dataplane.application import Application
from controlplane.dataplane.memory.credentials import Credential
from controlplane.dataplane.memory.served_copy import Copy
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.serving.call import ASGIApplication
from switches.snapshot import SnapshotVersion
from switches.tests.snapshots import make_entry

EPOCH = UUID("8b4ccf29-2b0e-4b5c-9c69-1d5f2f3a7a11")
ETAG = f'"{EPOCH}.17"'
READER = "sg_reader0001_a-secret_with-an-underscore"
REPORTER = "sg_reporter01_another-secret"
EXPIRED = "sg_expired001_a-third-secret"
SCRAPER = "sg_scraper001_a-fourth-secret"
BEARER = {"Authorization": f"Bearer {READER}"}


def copy(version: int, *switch_ids: str, epoch: UUID = EPOCH) -> Copy:
    publication = SnapshotVersion(epoch, version, datetime(2026, 11, 21, 3, 0, tzinfo=UTC))
    return Copy.render(publication, [make_entry(switch_id) for switch_id in switch_ids])


def credential(token: str, *scopes: str, expires_at: datetime | None = None) -> Credential:
    secret = token.split("_", 2)[2]
    return Credential(
        token_id=sum(token.encode()),
        name=token.split("_")[1],
        digest=sha256(secret.encode()).digest(),
        scopes=frozenset(scopes),
        expires_at=None if expires_at is None else expires_at.timestamp(),
    )


def plane(*switch_ids: str) -> Plane:
    """Return a plane at version 17 with four tokens, one of them expired."""
    made = Plane()
    made.state.install_copy(copy(17, *switch_ids), confirmed_at=made.state.now())
    yesterday = datetime.now(UTC) - timedelta(days=1)
    made.state.install_tokens(
        1,
        {
            b"reader0001": credential(READER, "switches:read"),
            b"reporter01": credential(REPORTER, "report:write"),
            b"scraper001": credential(SCRAPER, "metrics:read"),
            b"expired001": credential(EXPIRED, "switches:read", expires_at=yesterday),
        },
    )
    return made


def ask(
    served: Plane,
    method: str,
    path: str,
    headers: Mapping[str, str] | None = None,
    *,
    content: bytes | None = None,
    behind: ASGIApplication | None = None,
) -> httpx.Response:
    """Send a request to the application over `served`, without following redirects."""

    async def requested() -> httpx.Response:
        transport = httpx.ASGITransport(Application(served, behind))
        async with httpx.AsyncClient(transport=transport, base_url="http://plane") as client:
            return await client.request(method, path, headers=headers, content=content)

    return asyncio.run(requested())
