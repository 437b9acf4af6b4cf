"""Responses to requests under `/docs/`: files of the built site, and nothing else."""

import asyncio
import gzip
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from django.template.loader import render_to_string

from controlplane.documentation import build_lock, serving
from controlplane.documentation.manifest import NAME, hash_scripts, read_manifest, write_manifest
from controlplane.documentation.serving import DocumentationSite

SCRIPT = "var a = 1;"
PAGE = f"<script>{SCRIPT}</script><p>Operate</p>"
LONG = "x" * 2000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    for name, text in {
        "index.html": "<p>Home</p>",
        "operate/index.html": PAGE,
        "404.html": "<p>Not found</p>",
        "search/search_index.json": json.dumps(LONG),
        "assets/app.12ab.js": "1;",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    write_manifest(folder, "sources")
    (tmp_path / "secret.txt").write_text("secret")
    return folder


class Response:
    """A response that the site sent."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body


def request(folder: Path, path: str, method: str = "GET", **headers: str) -> Response:
    """Send a request to the site; a path that isn't the site's gets status 299."""

    async def behind(_scope: dict, _receive: object, send: object) -> None:
        await send({"type": "http.response.start", "status": 299, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    pages = {True: "building", False: "run make docs"}
    site = DocumentationSite(behind, folder, pages.__getitem__)
    names = [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()]
    start, body = asyncio.run(send_request(site, path, method, names))
    found = {name.decode(): value.decode() for name, value in start["headers"]}
    return Response(start["status"], found, body["body"])


async def send_request(
    site: DocumentationSite,
    path: str,
    method: str = "GET",
    headers: Sequence[tuple[bytes, bytes]] = (),
) -> list[dict]:
    """Return the ASGI messages of the response."""
    sent: list[dict] = []

    async def send(message: dict) -> None:
        sent.append(message)

    async def receive() -> dict:
        return {"type": "http.request"}

    await site({"type": "http", "path": path, "method": method, "headers": headers}, receive, send)
    return sent


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/docs/", 200, "Home"),
        ("/docs/operate/", 200, "Operate"),
        ("/docs/operate/index.html", 200, "Operate"),
        ("/docs/missing/", 404, "Not found"),
        ("/docs/../secret.txt", 404, "Not found"),
        ("/docs//etc/passwd", 404, "Not found"),
        (f"/docs/{NAME}", 404, "Not found"),
        ("/docs/search/search_index.json.gz", 404, "Not found"),
    ],
)
def test_only_files_of_the_site_are_served(folder: Path, path: str, status: int, text: str) -> None:
    response = request(folder, path)

    assert response.status == status
    assert text in response.body.decode()


@pytest.mark.parametrize("path", ["/", "/docsx", "/api/docs/", "/switches/docs/"])
def test_other_paths_are_passed_on(folder: Path, path: str) -> None:
    assert request(folder, path).status == 299


@pytest.mark.parametrize(
    ("path", "location"), [("/docs", "/docs/"), ("/docs/operate", "/docs/operate/")]
)
def test_a_path_without_its_slash_is_redirected(folder: Path, path: str, location: str) -> None:
    response = request(folder, path)

    assert response.status == 308
    assert response.headers["location"] == location


def test_inline_scripts_of_the_site_are_allowed_and_no_others(folder: Path) -> None:
    policy = request(folder, "/docs/operate/").headers["content-security-policy"]

    (allowed,) = hash_scripts(PAGE)
    assert f"script-src 'self' '{allowed}';" in policy
    assert "unsafe" not in policy


def test_a_cached_page_is_not_sent_again(folder: Path) -> None:
    etag = request(folder, "/docs/").headers["etag"]

    response = request(folder, "/docs/", if_none_match=etag)

    assert response.status == 304
    assert response.body == b""


def test_a_large_file_is_compressed_for_those_who_accept_it(folder: Path) -> None:
    path = "/docs/search/search_index.json"
    plain = request(folder, path)
    compressed = request(folder, path, accept_encoding="gzip")

    assert json.loads(plain.body) == LONG
    assert compressed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(compressed.body) == plain.body
    assert compressed.headers["etag"] != plain.headers["etag"]
    again = request(folder, path, accept_encoding="gzip", if_none_match=compressed.headers["etag"])
    assert again.status == 304


@pytest.mark.parametrize(
    ("path", "cached"),
    [("/docs/", "no-cache"), ("/docs/assets/app.12ab.js", "public, max-age=31536000, immutable")],
)
def test_only_files_with_a_hash_in_their_name_are_kept_for_long(
    folder: Path, path: str, cached: str
) -> None:
    assert request(folder, path).headers["cache-control"] == cached


def test_head_gets_the_headers_alone(folder: Path) -> None:
    response = request(folder, "/docs/operate/", "HEAD")

    assert response.status == 200
    assert response.headers["content-length"] == str(len(PAGE))
    assert response.body == b""


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_the_site_is_read_only(folder: Path, method: str) -> None:
    response = request(folder, "/docs/", method)

    assert response.status == 405
    assert response.headers["allow"] == "GET, HEAD"


def test_a_site_that_was_not_built_says_how(tmp_path: Path) -> None:
    response = request(tmp_path / "docs", "/docs/operate/")

    assert response.status == 404
    assert response.body == b"run make docs"


def test_a_site_that_is_being_built_says_so(tmp_path: Path) -> None:
    with build_lock.hold_lock(tmp_path / "docs"):
        building = request(tmp_path / "docs", "/docs/operate/")
    ended = request(tmp_path / "docs", "/docs/operate/")

    assert building.status == 503
    assert building.body == b"building"
    assert building.headers["retry-after"] == str(serving.RETRY_AFTER_SECONDS)
    assert ended.status == 404


def test_page_is_sent_with_the_headers_of_its_own_build(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = tmp_path / "docs.new"
    draft.mkdir()
    (draft / "index.html").write_text("<p>New</p>")
    write_manifest(draft, "new sources")
    read_bytes = Path.read_bytes

    def replace_and_read(path: Path) -> bytes:
        if path.name == "index.html" and draft.exists():
            folder.rename(tmp_path / "docs.old")
            draft.rename(folder)
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", replace_and_read)

    response = request(folder, "/docs/")

    assert response.body == b"<p>New</p>"
    assert response.headers["etag"] == read_manifest(folder).files["index.html"].etag


def test_site_that_is_replaced_at_each_attempt_is_being_built(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_bytes = Path.read_bytes

    def read_and_replace(path: Path) -> bytes:
        content = read_bytes(path)
        if path.name == "index.html":
            stamp = time.time_ns()  # As if a build had written the manifest again.
            os.utime(folder / NAME, ns=(stamp, stamp))
        return content

    monkeypatch.setattr(Path, "read_bytes", read_and_replace)

    response = request(folder, "/docs/")

    assert (response.status, response.body) == (503, b"building")
    assert response.headers["retry-after"] == str(serving.RETRY_AFTER_SECONDS)


def test_site_is_not_missing_while_another_one_replaces_it(folder: Path, tmp_path: Path) -> None:
    async def never(*_arguments: object) -> None:
        raise AssertionError

    async def request_while_replacing() -> list[dict]:
        site = DocumentationSite(never, folder, lambda _is_building: "missing")
        await send_request(site, "/docs/")
        away = folder.rename(tmp_path / "docs.old")
        asking = asyncio.ensure_future(send_request(site, "/docs/"))
        await asyncio.sleep(0)
        away.rename(folder)
        return await asking

    start, _body = asyncio.run(request_while_replacing())

    assert start["status"] == 200


@pytest.mark.parametrize(("is_building", "state"), [(True, "being built"), (False, "not built")])
def test_title_and_heading_of_the_missing_site_agree(is_building, state):
    page = render_to_string("docs_missing.html", {"is_building": is_building})

    assert f"<title>Documentation {state} · Switchgear</title>" in page
    assert f"The documentation is {state}</h1>" in page
