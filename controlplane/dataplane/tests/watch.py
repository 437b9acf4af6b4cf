"""Continuous pollers, and invariants that every answer must satisfy whatever fails."""

import asyncio
import contextlib
import itertools
import re
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

import httpx

from controlplane.dataplane.tests.lines import Background, wait_until

WAIT_SECONDS = 2.0
SLOWEST_SECONDS = 1.5
"""Longest response time: responses come from memory, the rest is for a busy test machine."""
FRESH_SECONDS = 2.5
"""Maximum of `Switchgear-Age` while the database responds."""
ROUNDING_SECONDS = 0.1

Mark = tuple[str, int]
"""Epoch and version."""


@dataclass(frozen=True)
class Answer:
    """An answer, or with status 0 a broken connection. Times are monotonic seconds."""

    way: str
    url: str
    began: float
    ended: float
    status: int
    mark: Mark | None
    """The poller's mark after the response."""
    age: float | None = None
    retry_after: str = ""
    may_take: float = SLOWEST_SECONDS

    def __str__(self) -> str:
        took = self.ended - self.began
        return f"{self.way} {self.url}: {self.status} {self.mark} age {self.age} in {took:.2f} s"


class Watch:
    """Background pollers of every supported kind, with a check of all responses at the end.

    Each of `targets` has its own pollers; a target with several addresses represents a service
    behind a load balancer, whose requests reach them in turn.
    """

    def __init__(self, loop: Background, token: Mapping[str, str], *targets: Sequence[str]) -> None:
        self.answers: list[Answer] = []
        self.has: dict[tuple[str, str], Mark] = {}
        """The mark of each poller, by way and target."""
        self._loop = loop
        self._token = dict(token)
        self._targets = targets
        self._is_database_away: list[tuple[float, float, frozenset[str]]] = []
        self._may_break: list[tuple[float, float]] = []
        self._may_refuse: list[tuple[float, float]] = []
        self._work: list[Future[None]] = []

    def start(self) -> None:
        for target in self._targets:
            work = [self._poll("known", target), self._poll("held", target), self._stream(target)]
            if len(target) == 1:  # Polls without a known version must all reach the same process.
                work.append(self._poll("new", target))
            self._work += [asyncio.run_coroutine_threadsafe(each, self._loop.loop) for each in work]

    def stop(self) -> None:
        """End polling; fail if a poller failed before."""
        failed = [each.exception() for each in self._work if each.done() and not each.cancelled()]
        self.cancel()
        assert not failed, repr(failed)

    def cancel(self) -> None:
        for each in self._work:
            each.cancel()

    @contextlib.contextmanager
    def database_away(self, *urls: str, since: float | None = None) -> Iterator[None]:
        """Mark the database as unavailable to these targets (all by default) within the context.

        `since` (monotonic) is when that began, if it was earlier.
        """
        began = time.monotonic() if since is None else since
        yield
        of = frozenset(urls or itertools.chain(*self._targets))
        self._is_database_away.append((began, time.monotonic(), of))

    @contextlib.contextmanager
    def may_break(self, seconds_after: float = 0) -> Iterator[None]:
        """Allow broken connections within the context, because a process ends."""
        with _noted(self._may_break, seconds_after):
            yield

    @contextlib.contextmanager
    def may_refuse(self, seconds_after: float = 0) -> Iterator[None]:
        """Allow 503 with `Retry-After` within the context."""
        with _noted(self._may_refuse, seconds_after):
            yield

    def until_all_have(self, version: int, seconds: float) -> float:
        """Wait until each poller has `version` or a later one; return the seconds it took."""
        pollers = sum(4 if len(target) == 1 else 3 for target in self._targets)

        def have_all_applied() -> bool:
            marks = list(self.has.values())
            return len(marks) == pollers and all(mark[1] >= version for mark in marks)

        try:
            return wait_until(have_all_applied, seconds)
        except AssertionError:
            raise AssertionError(f"not all have {version} in {seconds} s: {self.has}") from None

    def judge(self, *, recovers_within: float, at_least: int = 20) -> None:
        """Fail with all violations found.

        An age may be that of the outage until `recovers_within` seconds after it.
        """
        self.stop()
        found = self.answers
        for way in ("known", "held", "stream"):
            assert [each for each in found if each.way == way and each.status], f"{way}: silence"
        assert len(found) >= at_least, f"{len(found)} answers are too few to tell anything"
        wrong = [
            *(f"slow: {each}" for each in found if each.ended - each.began > each.may_take),
            *(f"refused: {each}" for each in found if not self.is_allowed(each)),
            *self._find_set_backs(),
            *(
                f"age: {each}: {why}"
                for each in found
                if (why := self._find_wrong_age(each, recovers_within))
            ),
        ]
        assert not wrong, "\n".join([f"{len(wrong)} of {len(found)} are wrong", *wrong[:12]])

    def judge_versions(self) -> None:
        """Fail if a poller went back to an older version, or to an epoch that it had left."""
        self.stop()
        wrong = [*self._find_set_backs()]
        assert not wrong, "\n".join(wrong[:12])

    def is_allowed(self, response: Answer) -> bool:
        """Return True if pollers may get this answer at that time."""
        if response.status in (200, 304):
            return True
        if response.status == 0:
            return _is_within(response, self._may_break)
        retries = response.status == 503 and re.fullmatch(r"[1-9]\d?", response.retry_after)
        return bool(retries) and _is_within(response, self._may_refuse)

    def _find_set_backs(self) -> Iterator[str]:
        """Yield violations: a version of an epoch that decreased, or a return to a former epoch."""
        by_poller: dict[tuple[str, str], list[Answer]] = defaultdict(list)
        for response in self.answers:
            target = next(target for target in self._targets if response.url in target)
            by_poller[response.way, target[0]].append(response)
        for responses in by_poller.values():
            left: set[str] = set()
            before: Mark | None = None
            for response in responses:
                mark = response.mark
                if mark is None or mark == before:
                    continue
                if before is not None and mark[0] != before[0]:
                    left.add(before[0])
                elif before is not None and mark[1] < before[1]:
                    yield f"set back from {before}: {response}"
                if mark[0] in left:
                    yield f"back in an epoch it left: {response}"
                before = mark

    def _find_wrong_age(self, response: Answer, recovers_within: float) -> str:
        """Return what is wrong with the answer's age, if anything."""
        if response.age is None:
            return ""
        most = FRESH_SECONDS
        for began, ended, urls in self._is_database_away:
            if response.url not in urls or response.ended < began:
                continue
            if response.began > began and response.ended < ended:
                least = response.began - began - ROUNDING_SECONDS
                if response.age < least:
                    return f"at least {least:.1f} s are true"
            if response.began < ended + recovers_within:
                most = max(most, response.ended - began + FRESH_SECONDS)
        return f"at most {most:.1f} s are true" if response.age > most else ""

    async def _poll(self, way: str, target: Sequence[str]) -> None:
        wait = f"?wait={WAIT_SECONDS:g}" if way == "held" else ""
        tag = ""
        async with httpx.AsyncClient(headers=self._token, timeout=10) as client:
            for url in itertools.cycle(target):
                known = {"If-None-Match": tag} if tag and way != "new" else {}
                began = time.monotonic()
                try:
                    response = await client.get(f"{url}/api/v1/snapshot{wait}", headers=known)
                except httpx.TransportError:
                    self._note(way, target, url, began, 0)
                else:
                    if response.status_code == 200:
                        tag = response.headers["ETag"]
                        mark = tag.strip('"').removesuffix("-gzip")
                        self._accept(way, target, mark, response.json())
                    self._note(way, target, url, began, response.status_code, response.headers)
                await asyncio.sleep(0.05)

    async def _stream(self, target: Sequence[str]) -> None:
        """Listens; behind a load balancer it comes back every second, to the next one."""
        last = ""
        async with httpx.AsyncClient(headers=self._token, timeout=20) as client:
            for url in itertools.cycle(target):
                began, status = time.monotonic(), 0
                headers: Mapping[str, str] = {"Last-Event-ID": last} if last else {}
                with contextlib.suppress(TimeoutError, httpx.TransportError):
                    async with (
                        asyncio.timeout(1.0 if len(target) > 1 else None),
                        client.stream(
                            "GET", f"{url}/api/v1/snapshot/stream", headers=headers
                        ) as got,
                    ):
                        status = got.status_code
                        self._note("stream", target, url, began, status, got.headers)
                        async for last, data in _events(got):
                            self._accept(
                                "stream", target, last, httpx.Response(200, text=data).json()
                            )
                            self._note("stream", target, url, time.monotonic(), 200)
                if status in (0, 200) and len(target) == 1:
                    self._note("stream", target, url, time.monotonic(), 0)
                await asyncio.sleep(0.1)

    def _accept(
        self, way: str, target: Sequence[str], mark: str, document: Mapping[str, int]
    ) -> None:
        """Accept a document if it is the one that was announced."""
        assert mark == f"{document['epoch']}.{document['version']}"
        self.has[way, target[0]] = (str(document["epoch"]), document["version"])

    def _note(
        self,
        way: str,
        target: Sequence[str],
        url: str,
        began: float,
        status: int,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        received = headers or {}
        age = received.get("Switchgear-Age")
        self.answers.append(
            Answer(
                way=way,
                url=url,
                began=began,
                ended=time.monotonic(),
                status=status,
                mark=self.has.get((way, target[0])),
                age=None if age is None else float(age),
                retry_after=received.get("Retry-After", ""),
                may_take=SLOWEST_SECONDS + (WAIT_SECONDS if way == "held" else 0),
            )
        )


@contextlib.contextmanager
def watching(
    loop: Background, token: Mapping[str, str], *targets: Sequence[str]
) -> Iterator[Watch]:
    """A running watch that ends with the test."""
    watch = Watch(loop, token, *targets)
    watch.start()
    try:
        yield watch
    finally:
        watch.cancel()


async def _events(response: httpx.Response) -> AsyncIterator[tuple[str, str]]:
    """Return id and data of each event."""
    event = {"id": "", "data": ""}
    async for line in response.aiter_lines():
        name, _, value = line.partition(": ")
        if line == "" and event["data"]:
            yield event["id"], event["data"]
            event["data"] = ""
        elif name in event:
            event[name] = value


@contextlib.contextmanager
def _noted(into: list[tuple[float, float]], seconds_after: float) -> Iterator[None]:
    began = time.monotonic()
    try:
        yield
    finally:
        into.append((began, time.monotonic() + seconds_after))


def _is_within(response: Answer, spans: Sequence[tuple[float, float]]) -> bool:
    return any(began <= response.ended and response.began <= ended for began, ended in spans)
