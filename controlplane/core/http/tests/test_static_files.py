"""Static files are sent in one piece: under ASGI, Django warns about a file that is streamed."""

from pathlib import Path

import pytest
from django.http import HttpResponse
from django.test import RequestFactory

from controlplane.core.http.static_files import StaticFilesMiddleware


@pytest.fixture
def middleware(tmp_path: Path, settings) -> StaticFilesMiddleware:
    (tmp_path / "app.js").write_text("0123456789")
    settings.STATIC_ROOT = tmp_path
    return StaticFilesMiddleware(lambda _request: HttpResponse("no file"))


def test_a_static_file_is_not_streamed(middleware, rf: RequestFactory) -> None:
    found = middleware(rf.get("/static/app.js"))

    assert not found.streaming
    assert (found.status_code, found.content) == (200, b"0123456789")
    assert found["Content-Length"] == "10"
    assert found["Content-Type"].startswith("text/javascript")


def test_ranges_and_headers_of_a_static_file(middleware, rf: RequestFactory) -> None:
    whole = middleware(rf.get("/static/app.js"))

    part = middleware(rf.get("/static/app.js", headers={"Range": "bytes=2-5"}))
    head = middleware(rf.head("/static/app.js"))
    same = middleware(rf.get("/static/app.js", headers={"If-None-Match": whole["ETag"]}))

    assert (part.status_code, part.content) == (206, b"2345")
    assert (head.content, head["Content-Length"]) == (b"", "10")
    assert (same.status_code, same.content) == (304, b"")
    assert "Content-Type" not in same


def test_other_paths_are_passed_on(middleware, rf: RequestFactory) -> None:
    assert middleware(rf.get("/switches/")).content == b"no file"
