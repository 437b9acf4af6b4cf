"""The environment: a wrong value is one line that names the variable, and stops the start."""

import os
import re
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from controlplane import environment
from controlplane.core.environment_variables import WrongVariable
from controlplane.core.signatures import SigningKey
from controlplane.environment.databases import RUNTIME_ROLE
from controlplane.tests.installation import ROOT

PRINT_COOKIES = (
    "from django.conf import settings as s; print(s.SESSION_COOKIE_NAME, s.CSRF_COOKIE_NAME)"
)
KEYS = [SigningKey(bytes(range(start, start + 32))).secret_text for start in range(3)]


def read(tmp_path, **variables):
    return environment.read_environment({"SWITCHGEAR_DATA_DIR": str(tmp_path), **variables})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "eighty"),
        ("PORT", "0"),
        ("PORT", "65536"),
        pytest.param("PORT", "9" * 5000, id="PORT-of-5000-digits"),
        ("PORT", "８０００"),
        ("DATABASE_URL", "mysql://localhost/x"),
        ("DATABASE_URL", "postgresql://localhost:notaport/x"),
        ("DATABASE_URL", "postgresql://localhost/x?nonsense=1"),
        ("DATABASE_POOL", "-1"),
        ("ENVIRONMENT_NAME", "two\nlines"),
        ("REDIS_URL", "redis:nowhere"),
        ("REDIS_URL", "127.0.0.1:6379"),
        ("ALLOWED_HOSTS", " , "),
        ("ALLOWED_HOSTS", "https://example.org"),
        ("CORS_ORIGINS", "*"),
        ("CORS_ORIGINS", "shop.example.org"),
        ("CORS_ORIGINS", "https://*.example.org"),
        ("CORS_ORIGINS", "https://shop.example.org, https://shop.example.org/cart"),
        ("PLANE_NAME", "dp 1"),
        ("PLANE_NAME", "x" * 121),
        ("DATA_PLANES", "dp-1:8001"),
        ("DATA_PLANES", "http://dp-1:8001, http://dp-2:8001/api"),
        ("SIBLINGS", "https://staging.example.org"),
        ("SIBLINGS", "staging=https://staging.example.org/console"),
        ("SIBLINGS", "development=https://example.org"),
        ("SIBLING_TOKENS", "staging=sg_x"),
        ("HTTPS_ONLY", "maybe"),
        ("TIME_ZONE", "Mars/Olympus"),
        ("TIME_ZONE", "../../etc/passwd"),
        ("SLACK_WEBHOOK_URL", "not a url"),
        ("SLACK_API_URL", "ftp://slack"),
        ("PUBLIC_URL", "example.org"),
        ("EMAIL_URL", "mail.example.org"),
        ("EMAIL_URL", "smtp://"),
        ("EMAIL_URL", "smtp://mail.example.org?from=nobody"),
        ("WEBHOOK_ALLOW", "10.0.0.0/33"),
        ("WEBHOOK_ALLOW", "intranet"),
        ("PROMETHEUS_ALLOW", "prometheus"),
        ("SNAPSHOT_SIGNING_KEY", "c2hvcnQ="),
        ("SNAPSHOT_SIGNING_KEY", "not base64"),
        ("SNAPSHOT_SIGNING_KEY_FALLBACKS", KEYS[0]),
        ("SNAPSHOT_PUBLISH_TO", "relative/folder"),
        ("SNAPSHOT_PUBLISH_TO", "ftp://bucket.example.org/snapshot.json"),
        ("SNAPSHOT_PUBLISH_TO", "https://kim:hunter2@bucket.example.org/snapshot.json"),
        ("SNAPSHOT_PUBLISH_TOKEN", "a-token"),
        ("SNAPSHOT_PUBLISH_ALLOW", "bucket"),
        ("KEPT_DAYS", "messages"),
        ("KEPT_DAYS", "messages=0"),
        ("KEPT_DAYS", "messages="),
        ("KEPT_DAYS", "messages=36501"),
        pytest.param("KEPT_DAYS", "messages=" + "9" * 5000, id="KEPT_DAYS-of-5000-digits"),
        ("KEPT_DAYS", "messages=30 messages=40"),
    ],
)
def test_a_wrong_value_names_its_variable(tmp_path, name, value):
    with pytest.raises(WrongVariable, match=f"^{name}: "):
        read(tmp_path, **{name: value})


def test_signing_keys_of_the_environment_replace_the_file(tmp_path):
    current, *older = KEYS
    fallbacks = " ".join(older)
    found = read(tmp_path, SNAPSHOT_SIGNING_KEY=current, SNAPSHOT_SIGNING_KEY_FALLBACKS=fallbacks)

    assert found.signing_keys is not None
    assert [key.secret_text for key in found.signing_keys.signing_keys] == KEYS
    assert read(tmp_path, SNAPSHOT_SIGNING_KEY="").signing_keys is None
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("fallbacks", [[KEYS[0]], ["c2hvcnQ="], KEYS[1:] * 4])
def test_wrong_fallbacks_of_the_signing_key_are_named(tmp_path, fallbacks):
    with pytest.raises(WrongVariable, match=r"^SNAPSHOT_SIGNING_KEY_FALLBACKS: "):
        read(
            tmp_path,
            SNAPSHOT_SIGNING_KEY=KEYS[0],
            SNAPSHOT_SIGNING_KEY_FALLBACKS=" ".join(fallbacks),
        )


def test_a_url_may_name_several_hosts(tmp_path):
    url = "postgresql://app@a:5432,b:5433/x"

    assert read(tmp_path, DATABASE_URL=url).database.url == url


def test_a_prometheus_may_stand_in_a_network_of_ones_own_unless_others_are_named(tmp_path):
    assert "127.0.0.0/8" in read(tmp_path).prometheus_allow
    assert read(tmp_path, PROMETHEUS_ALLOW="10.1.0.0/16").prometheus_allow == ("10.1.0.0/16",)
    assert read(tmp_path, PROMETHEUS_ALLOW="").prometheus_allow == ()


def test_snapshot_is_published_to_a_directory_or_a_url(tmp_path):
    url = "https://bucket.example.org/snapshot.json?key=a"

    by_url = read(
        tmp_path, SNAPSHOT_PUBLISH_TO=url, SNAPSHOT_PUBLISH_TOKEN="hunter2"
    ).published_file
    by_path = read(tmp_path, SNAPSHOT_PUBLISH_TO="/srv/snapshot").published_file

    assert (by_url.url, by_url.token, by_url.folder) == (url, "hunter2", None)
    assert "10.0.0.0/8" in by_url.networks
    assert "hunter2" not in repr(by_url)
    assert (by_path.folder, by_path.url) == (Path("/srv/snapshot"), "")
    assert read(tmp_path).published_file.folder is None


def test_origins_are_kept_as_browsers_send_them(tmp_path):
    origins = read(tmp_path, CORS_ORIGINS="https://Shop.example.org:443/, http://[::1]:5173")

    assert origins.cors_origins == ("https://shop.example.org", "http://[::1]:5173")


def test_siblings_have_a_url_and_a_token_each_which_no_text_shows(tmp_path):
    found = read(
        tmp_path,
        ENVIRONMENT_NAME="production",
        SIBLINGS="staging=https://staging.example.org/ test=http://127.0.0.1:8001",
        SIBLING_TOKENS="test=sg_test staging=sg_staging",
    ).siblings

    assert [(one.name, one.url, one.token) for one in found] == [
        ("staging", "https://staging.example.org", "sg_staging"),
        ("test", "http://127.0.0.1:8001", "sg_test"),
    ]
    assert "sg_" not in repr(found)


@pytest.mark.parametrize(
    ("siblings", "tokens", "problem"),
    [
        ("staging=https://a.example.org", "", "SIBLING_TOKENS: has no token for staging"),
        ("a=https://a.example.org a=https://b.example.org", "a=sg_1", "SIBLINGS: names a twice"),
        ("a=https://a.example.org", "a=hunter2", "SIBLING_TOKENS: must have an API token"),
        ("a=https://a.example.org", "hunter2", "SIBLING_TOKENS: must be entries name=value"),
    ],
)
def test_siblings_without_a_good_token_are_refused_without_showing_it(
    tmp_path, siblings, tokens, problem
):
    with pytest.raises(WrongVariable) as refused:
        read(tmp_path, SIBLINGS=siblings, SIBLING_TOKENS=tokens)

    assert problem in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_data_planes_are_urls_separated_by_commas_or_spaces(tmp_path):
    planes = read(tmp_path, DATA_PLANES="http://dp-1:8001/, https://dp-2 http://[::1]:8001")

    assert planes.data_planes == ("http://dp-1:8001", "https://dp-2", "http://[::1]:8001")


def test_a_plane_is_named_after_its_host_unless_another_name_is_given(tmp_path):
    assert read(tmp_path).plane_name == socket.gethostname()
    assert read(tmp_path, PLANE_NAME="dp-2").plane_name == "dp-2"


def test_without_a_mail_server_there_is_no_host(tmp_path):
    assert read(tmp_path).transport_settings["EMAIL"].host == ""


@pytest.mark.parametrize(
    ("url", "port", "security", "user", "sender"),
    [
        ("smtp://mail.example.org", 587, "starttls", "", "switchgear@mail.example.org"),
        ("smtp://mail.example.org?tls=off", 25, "", "", "switchgear@mail.example.org"),
        ("smtp://127.0.0.1:2525?from=a@b.org", 2525, "", "", "a@b.org"),
        ("smtps://kim%40b.org:p%3Aw@mail.b.org", 465, "tls", "kim@b.org", "switchgear@mail.b.org"),
    ],
)
def test_a_mail_url_says_how_to_connect(tmp_path, url, port, security, user, sender):
    email = read(tmp_path, EMAIL_URL=url).transport_settings["EMAIL"]

    assert (email.port, email.security, email.user, email.sender) == (port, security, user, sender)


def test_networks_for_webhooks_are_a_list(tmp_path):
    allowed = read(tmp_path, WEBHOOK_ALLOW="10.0.0.0/8, fd00::/8,").transport_settings[
        "WEBHOOK_ALLOW"
    ]

    assert allowed == ("10.0.0.0/8", "fd00::/8")


def test_a_bot_token_needs_a_channel(tmp_path):
    with pytest.raises(WrongVariable, match=r"^SLACK_CHANNEL: "):
        read(tmp_path, SLACK_BOT_TOKEN="x")


def test_a_command_with_a_wrong_value_ends_with_one_line():
    done = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=ROOT,
        env={**os.environ, "TIME_ZONE": "Mars/Olympus"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 2
    assert done.stderr.strip().splitlines() == ["TIME_ZONE: there is no time zone 'Mars/Olympus'"]


def test_cookies_of_consoles_that_have_siblings_differ_by_environment():
    names = set()
    for name in ("production", "staging", "운영 1"):
        printed = subprocess.run(
            [sys.executable, "-c", PRINT_COOKIES],
            cwd=ROOT,
            env={
                **os.environ,
                "DJANGO_SETTINGS_MODULE": "controlplane.settings",
                "ENVIRONMENT_NAME": name,
                "SIBLINGS": "other=https://other.example.org",
                "SIBLING_TOKENS": "other=sg_other",
            },
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        names |= set(printed.stdout.split())

    assert len(names) == 6
    assert all(re.fullmatch(r"(sessionid|csrftoken)_[0-9a-f]{8}", cookie) for cookie in names)


def test_one_login_for_all_steps_down_and_two_logins_do_not(tmp_path):
    one = read(tmp_path, DATABASE_URL="postgresql://a@h/x").database
    two = read(
        tmp_path,
        DATABASE_URL="postgresql://app@h/x",
        DATABASE_OWNER_URL="postgresql://owner@h/x",
    ).database

    assert one.assume_role == RUNTIME_ROLE
    assert two.assume_role is None
    assert two.owner_url.startswith("postgresql://owner")


def test_embedded_services_are_found_while_they_run(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "services.json").write_text(
        '{"database_url": "postgresql://app@127.0.0.1:1/x",'
        ' "database_owner_url": "postgresql://owner@127.0.0.1:1/x",'
        ' "redis_url": "redis://127.0.0.1:2/0", "supervisor_pid": 1}'
    )

    found = read(tmp_path)

    assert found.database.url == "postgresql://app@127.0.0.1:1/x"
    assert found.redis_url == "redis://127.0.0.1:2/0"


def test_the_generated_secret_is_kept_and_private(tmp_path):
    first, second = read(tmp_path).secret_key, read(tmp_path).secret_key

    path = tmp_path / "secrets" / "secret_key"
    assert first == second
    assert len(first) >= 64
    assert stat.S_IMODE(path.stat().st_mode) == 0o600

    path.chmod(0o644)
    with pytest.raises(WrongVariable, match=r"^SECRET_KEY: "):
        _ = read(tmp_path).secret_key
