"""Classification of a faulty mail server's replies (final, transient, in doubt), and deadlines."""

import ssl
import time
from contextlib import closing
from dataclasses import replace
from socket import create_server

import pytest

from controlplane.notify.transports import destinations
from controlplane.notify.transports.email import smtp
from controlplane.notify.transports.email.environment import EmailSettings
from controlplane.notify.transports.failures import PermanentFailure, TransientFailure

from .certificate import certificate
from .fake_smtp import fake_smtp

ENVELOPE = smtp.Envelope("switchgear@example.org", "ops@example.org", False)
MAIL = b"Subject: x\r\n\r\nhello\r\n"


@pytest.fixture
def server():
    with fake_smtp() as fake:
        yield fake


def hand_in(server, seconds=5.0, **more):
    given = EmailSettings("127.0.0.1", server.port, "", "", "", "switchgear@example.org")
    smtp.send_mail(replace(given, **more), ENVELOPE, MAIL, seconds=seconds)


def failure(server, kind, **more):
    with pytest.raises(kind) as caught:
        hand_in(server, **more)
    return caught.value


def test_a_mail_that_is_taken_arrives_once(server):
    hand_in(server)

    assert [mail.content for mail in server.accepted] == [MAIL]


@pytest.mark.parametrize("moment", ["CONNECT", "MAIL", "RCPT", "DATA", "END"])
@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ("451 later", TransientFailure),
        ("421 closing", TransientFailure),
        ("550 no such user", PermanentFailure),
        ("554 refused", PermanentFailure),
    ],
)
def test_the_first_digit_decides(server, moment, reply, kind):
    server.replies[moment] = [reply]

    refused = failure(server, kind)

    assert reply[:3] in refused.reason
    assert not getattr(refused, "in_doubt", False)
    assert server.accepted == []


@pytest.mark.parametrize("moment", ["CONNECT", "EHLO", "MAIL", "RCPT", "DATA"])
@pytest.mark.parametrize("how", ["drop", "hang", "drip"])
def test_before_the_mail_is_over_nothing_can_have_arrived(server, moment, how):
    server.replies[moment] = [how] * 2  # HELO follows a lost EHLO.
    before = time.monotonic()

    lost = failure(server, TransientFailure, seconds=0.4)

    assert not lost.in_doubt
    assert time.monotonic() - before < 2


@pytest.mark.parametrize("how", ["drop", "hang", "drip"])
def test_silence_after_the_mail_is_a_doubt(server, how):
    server.replies["END"] = [how]

    lost = failure(server, TransientFailure, seconds=0.4)

    assert lost.in_doubt
    assert len(server.accepted) == 1


def test_half_an_answer_after_the_mail_is_a_doubt(server):
    server.replies["END"] = ["half"]

    assert failure(server, TransientFailure).in_doubt


def test_trouble_after_the_mail_was_taken_is_none(server):
    server.replies["END"] = ["250 taken\r\n"]

    hand_in(server)

    assert len(server.accepted) == 1


def test_a_server_that_is_not_there_is_tried_again():
    with closing(create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]

    with pytest.raises(TransientFailure) as caught:
        smtp.send_mail(
            EmailSettings("127.0.0.1", port, "", "", "", "switchgear@example.org"), ENVELOPE, MAIL
        )

    assert not caught.value.in_doubt


def test_a_name_that_nobody_knows_is_tried_again():
    server = EmailSettings("mail.invalid", 25, "", "", "", "switchgear@example.org")

    with pytest.raises(TransientFailure, match=r"mail\.invalid"):
        smtp.send_mail(server, ENVELOPE, MAIL)


def test_a_reply_cannot_bring_control_characters_into_our_words(server):
    server.replies["RCPT"] = [f"550 no\x1b[31m\x07 {'x' * 400}"]

    reason = failure(server, PermanentFailure).reason

    assert reason.isprintable()
    assert len(reason) < 300


def test_upgrades_before_anything_is_said_in_the_clear(server, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate()))
    server.extensions = ["STARTTLS", "AUTH PLAIN"]

    hand_in(server, host="localhost", security="starttls", user="sg", password="hush")

    assert [(mail.encrypted, bool(mail.login)) for mail in server.accepted] == [(True, True)]


def test_tls_from_the_beginning(monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate()))
    with fake_smtp(tls=True) as server:
        hand_in(server, host="localhost", security="tls")

        assert [mail.encrypted for mail in server.accepted] == [True]


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_a_server_nobody_vouches_for_gets_neither_mail_nor_password(security):
    with fake_smtp(tls=security == "tls") as server:
        server.extensions = ["STARTTLS", "AUTH PLAIN"]

        refused = failure(
            server, TransientFailure, host="localhost", security=security, user="u", password="p"
        )

        assert "certificate" in refused.reason
        assert server.accepted == []


def test_a_certificate_for_another_name_is_refused(monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate()))
    with fake_smtp(tls=True) as server:
        refused = failure(server, TransientFailure, host="127.0.0.1", security="tls")

        assert "127.0.0.1" in refused.reason


def test_a_server_that_offers_no_upgrade_gets_nothing(server):
    refused = failure(server, PermanentFailure, security="starttls", user="u", password="p")

    assert "STARTTLS" in refused.reason
    assert server.accepted == []


@pytest.mark.parametrize(
    ("reply", "kind"),
    [("535 wrong", PermanentFailure), ("454 not now", TransientFailure)],
)
def test_a_refused_password_is_told_by_its_code_and_never_shown(server, reply, kind, settings):
    settings.EMAIL = replace(settings.EMAIL, password="hush-hush")
    server.extensions = ["AUTH PLAIN"]
    server.replies["AUTH"] = [f"{reply} hush-hush"]

    refused = failure(server, kind, user="sg", password="hush-hush")

    assert "hush-hush" not in destinations.redact_secrets(refused.reason)


def test_a_drip_during_the_handshake_ends_in_time():
    with fake_smtp() as server:  # Speaks in the clear where TLS is expected.
        server.replies["CONNECT"] = ["drip"]
        before = time.monotonic()

        failure(server, TransientFailure, host="localhost", security="tls", seconds=0.4)

        assert time.monotonic() - before < 2


def test_the_trust_is_the_systems_and_asks_for_names():
    assert smtp._tls_context().verify_mode == ssl.CERT_REQUIRED
    assert smtp._tls_context().check_hostname
