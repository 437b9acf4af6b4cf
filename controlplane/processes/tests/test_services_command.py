"""`manage.py services`."""

from io import StringIO

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command


def printed(*arguments: str) -> str:
    out = StringIO()
    call_command("services", *arguments, stdout=out)
    return out.getvalue()


def test_a_named_url_is_printed_alone() -> None:
    assert printed("redis_url") == f"{settings.ENV.redis_url}\n"


def test_without_a_name_all_urls_are_listed() -> None:
    lines = printed().splitlines()

    assert f"redis_url  {settings.ENV.redis_url}" in lines
    assert f"database_url  {settings.ENV.database.url}" in lines


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(CommandError):
        printed("kafka_url")
