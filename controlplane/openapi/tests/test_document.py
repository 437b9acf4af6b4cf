"""The OpenAPI document is prepared once, compressed, and revalidated by its ETag."""

import gzip
import threading

import orjson
import pytest
import yaml
from django.core.management import call_command

from controlplane.openapi import document

PATH = "/api/schema/"


def test_second_request_gets_the_bytes_of_the_first(client):
    first = client.get(PATH)
    second = client.get(PATH)

    assert document.get_representation("json") is document.get_representation("json")
    assert first.content == second.content
    assert first["ETag"] == second["ETag"]
    assert len(first.content) == len(orjson.dumps(first.json()))


def test_caller_that_accepts_gzip_gets_a_tenth(client):
    plain = client.get(PATH)
    compressed = client.get(PATH, headers={"accept-encoding": "br, gzip"})

    assert compressed["Content-Encoding"] == "gzip"
    assert gzip.decompress(compressed.content) == plain.content
    assert len(compressed.content) * 5 < len(plain.content)
    assert compressed["ETag"] != plain["ETag"]
    assert "Accept-Encoding" in plain["Vary"]


@pytest.mark.parametrize("coding", ["gzip", "identity"])
def test_caller_that_has_the_document_gets_304(client, coding):
    headers = {"accept-encoding": coding}
    etag = client.get(PATH, headers=headers)["ETag"]

    same = client.get(PATH, headers={**headers, "if-none-match": f'"other", W/{etag}'})
    other = client.get(PATH, headers={**headers, "if-none-match": '"other"'})

    assert (same.status_code, same.content, same["ETag"]) == (304, b"", etag)
    assert other.status_code == 200
    assert same["Cache-Control"] == other["Cache-Control"] == "public, max-age=60"


def test_yaml_says_what_json_says(client):
    as_json = client.get(PATH)
    as_yaml = client.get(PATH, headers={"accept": "application/yaml"})

    assert yaml.load(as_yaml.content, Loader=yaml.CSafeLoader) == as_json.json()
    assert as_yaml["ETag"] != as_json["ETag"]


def test_request_during_preparation_is_told_to_come_back(client, monkeypatch):
    monkeypatch.setattr(document, "_ready", {})
    holder = document._lock
    with holder:
        refused = client.get(PATH)

    assert refused.status_code == 503
    assert int(refused["Retry-After"]) > 0
    assert client.get(PATH).status_code == 200


def test_prepared_document_is_served_to_many_at_once():
    document.get_representation("json")
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(document.get_representation("json")))
        for _ in range(20)
    ]

    with document._lock:  # Another form is being prepared.
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert len(found) == 20


def test_collectstatic_writes_the_document_once(settings, tmp_path):
    settings.STATIC_ROOT = tmp_path
    settings.STATICFILES_FINDERS = []
    old = tmp_path / "openapi-0123.json"
    old.write_text("{}")

    call_command("collectstatic", interactive=False, verbosity=0)
    (file,) = tmp_path.glob("openapi-*")
    written = file.stat().st_mtime_ns
    call_command("collectstatic", interactive=False, verbosity=0)

    assert orjson.loads(file.read_bytes())["openapi"].startswith("3.1")
    assert file.stat().st_mtime_ns == written
