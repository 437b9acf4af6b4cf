"""A prepared run: its installation, lines to disturb, writers and readers."""

import contextlib
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg

from controlplane.dataplane.tests.lines import Line, background
from controlplane.dataplane.tests.processes import addresses, data_plane, web
from controlplane.dataplane.tests.test_faults_clock import Clock
from controlplane.notify.delivery.tests.fake_slack import FakeSlack
from controlplane.tests.chaos.faults import Stage
from controlplane.tests.chaos.readers import Reader, Service, Unread
from controlplane.tests.chaos.run import READY_SECONDS, Run
from controlplane.tests.chaos.writers import EXPERIMENTS, FEATURES, Writer, operator, prober
from controlplane.tests.installation import Installation, free_port

SCOPES = ("switches:read", "switches:write", "report:write")
WAYS = ("new", "known", "held", "stream", "check", "ofrep")
CONSOLE_WAYS = ("list", "socket")


@contextmanager
def prepared(
    seed: int, installation: Installation, slack: FakeSlack, folder: Path
) -> Iterator[Run]:
    """Yield a run whose writers and readers are at work; all of them end when the test leaves."""
    _announce_experiments_only(installation)
    token = installation.token(*SCOPES)
    clock = Clock(folder / "clock")
    found = addresses(installation)
    with background() as loop, contextlib.ExitStack() as ends:
        commits, database, redis = (
            Line(loop, "127.0.0.1", urlsplit(found[name]).port or 0)
            for name in ("DATABASE_URL", "DATABASE_URL", "REDIS_URL")
        )
        found["REDIS_URL"] = _through(found["REDIS_URL"], redis)
        places = {
            **_reroute_database(found, commits),
            "SWITCHGEAR_DATA_DIR": str(folder / "console"),
        }
        (folder / "console").mkdir()
        said = folder / "console-said.txt"
        console = ends.enter_context(web(places, free_port(), said, ready_within=READY_SECONDS))
        plane = ends.enter_context(
            data_plane(
                {**_reroute_database(found, database), **clock.variables()},
                folder / "plane",
                start=False,
            )
        )
        plane.start(ready_within=READY_SECONDS)
        run = Run(
            seed=seed,
            installation=installation,
            stage=Stage(installation, console, commits, plane, database, redis, clock),
            slack=slack,
            token=token,
            writers=_writers(seed, (installation.url, console.url), token),
            probe=Writer([installation.url], token, prober(), lambda: 0.25),
            readers=_readers(
                {"web": installation.url, "plane": plane.url}, console.url, token, folder
            ),
            unread=Unread(installation.port, token),
        )
        for one in (*run.readers, run.unread, *run.writers, run.probe):
            one.start()
            ends.callback(one.stop)
        yield run


def _reroute_database(found: Mapping[str, str], line: Line) -> dict[str, str]:
    """Return an environment that reaches PostgreSQL by the line."""
    names = ("DATABASE_URL", "DATABASE_OWNER_URL")
    return {**found, **{name: _through(found[name], line) for name in names}}


def _writers(seed: int, urls: Sequence[str], token: str) -> list[Writer]:
    paces = ((FEATURES, 0.2, 0.6), (FEATURES, 0.2, 0.6), (EXPERIMENTS, 2.0, 4.0))
    made = []
    for number, (switches, shortest, longest) in enumerate(paces):
        draw = random.Random(f"{seed}:{number}")
        pause = lambda d=draw, a=shortest, b=longest: d.uniform(a, b)  # noqa: E731
        made.append(Writer(urls, token, operator(draw, switches), pause))
    return made


def _readers(
    urls: Mapping[str, str], console_url: str, token: str, folder: Path
) -> list[Reader | Service]:
    made: list[Reader | Service] = []
    for name, url in urls.items():
        made += [Reader(name, url, token, way) for way in WAYS]
        made.append(Service(name, url, token, folder))
    for name, url in (("console", console_url), ("web", urls["web"])):
        made += [Reader(name, url, token, way) for way in CONSOLE_WAYS]
    made.append(Reader("console", console_url, token, "known"))
    return made


def _announce_experiments_only(installation: Installation) -> None:
    with psycopg.connect(installation.services()["database_owner_url"]) as database:
        database.execute("UPDATE core_route SET scope = 'experiment'")


def _through(url: str, line: Line) -> str:
    parts = urlsplit(url)
    login, at, _ = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{login}{at}127.0.0.1:{line.port}"))
