"""E-mail rendering, and injection attempts by user texts."""

from dataclasses import replace
from email import message_from_bytes, policy

import pytest

from controlplane.notify.transports import destinations
from controlplane.notify.transports.email import transport as email
from controlplane.notify.transports.failures import PermanentFailure

from .fake_smtp import fake_smtp
from .messages import message

OPS = "email:ops@example.org"


@pytest.fixture
def server(settings):
    with fake_smtp() as fake:
        settings.PUBLIC_URL = "https://switchgear.example.org"
        settings.ENVIRONMENT_NAME = "production"
        settings.EMAIL = replace(
            settings.EMAIL,
            host="127.0.0.1",
            port=fake.port,
            user="",
            password="",
            security="",
            sender="switchgear@example.org",
        )
        yield fake


def sent(server, given):
    email.send(given)
    return message_from_bytes(server.accepted[-1].content, policy=policy.default)


def texts(mail):
    return [mail.get_body([kind]).get_content() for kind in ("plain", "html")]


def test_a_mail_says_what_happened_where_and_leads_to_its_page(server):
    mail = sent(server, message(OPS))

    assert mail["Subject"].startswith("[PRODUCTION] 🛑 segment:finance ENGAGED")
    assert (mail["From"], mail["To"]) == ("Switchgear <switchgear@example.org>", "ops@example.org")
    for text in texts(mail):
        assert "결제 이중 청구" in text
        assert "https://switchgear.example.org/switches/segment/finance/" in text
    assert mail["Auto-Submitted"] == "auto-generated"
    assert server.accepted[0].recipient == "<ops@example.org>"


def test_without_a_public_url_there_is_no_link(server, settings):
    settings.PUBLIC_URL = ""

    assert all("/switches/" not in text for text in texts(sent(server, message(OPS))))


@pytest.mark.parametrize("path", ["//evil.example/", "https://evil.example/", "javascript:x", ""])
def test_a_link_leads_to_the_console_and_nowhere_else(server, path):
    mail = sent(server, message(OPS, facts={"path": path}))

    for text in texts(mail):
        assert "https://switchgear.example.org/" in text
        assert "evil" not in text
        assert "javascript:" not in text


def test_a_repeat_has_the_same_id_and_another_message_another(server):
    first = sent(server, message(OPS))
    again = sent(server, message(OPS, attempts=5))
    other = sent(server, message(OPS, pk=8, event_key="audit:8"))
    elsewhere = sent(server, message("email:lead@example.org"))

    assert first["Message-ID"] == again["Message-ID"]
    assert len({mail["Message-ID"] for mail in (first, other, elsewhere)}) == 3


def test_messages_about_one_subject_are_one_thread(server):
    engaged = sent(server, message(OPS))
    released = sent(server, message(OPS, "switch.released", pk=8))
    another = sent(server, message(OPS, pk=9, subject="episode:13"))
    alone = sent(server, message(OPS, pk=10, subject=""))

    assert engaged["References"] == released["References"] == released["In-Reply-To"]
    assert another["References"] != engaged["References"]
    assert alone["References"] is None


def test_an_approval_is_decided_behind_the_sign_in(server):
    facts = {"summary": "Release global:all", "path": "/approvals/", "approval": 5}
    mail = sent(server, message(OPS, "approval.requested", facts=facts))

    for text in texts(mail):
        assert "https://switchgear.example.org/approvals/" in text
        assert "Open the console to decide" in text
        assert "approve/" not in text


@pytest.mark.parametrize("ending", ["\r\n", "\n", "\r", "\x0b", "\u2028", "\x85", "\x00"])
def test_no_text_can_add_a_header_or_a_recipient(server, ending):
    nasty = f"segment:x{ending}Bcc: everybody@example.org{ending}{ending}Hello"
    mail = sent(server, message(OPS, facts={"switch": nasty, "reason": nasty}))

    assert mail["Bcc"] is None
    assert mail["To"] == "ops@example.org"
    assert "Bcc: everybody@example.org" in mail["Subject"]
    assert len(server.accepted) == 1


@pytest.mark.parametrize(
    "address",
    [
        "",
        "nobody",
        "a@b@c",
        "a b@example.org",
        "a@example.org, b@example.org",
        "a@example.org\r\nRCPT TO:<b@example.org>",
        "<a@example.org>",
        "a@example.org>",
        '"a"@example.org',
        "a@[127.0.0.1]",
        f"{'a' * 65}@example.org",
    ],
)
def test_what_is_no_plain_address_is_not_reached(server, address):
    assert not email.reaches(f"email:{address}")
    with pytest.raises(PermanentFailure):
        email.send(message(f"email:{address}"))
    assert server.accepted == []


def test_without_a_mail_server_nobody_is_reached(settings):
    settings.EMAIL = replace(settings.EMAIL, host="")

    assert not destinations.transport_for(OPS).reaches(OPS)


def test_markup_in_a_reason_stays_text(server):
    mail = sent(server, message(OPS, facts={"reason": "<script>alert(1)</script><b>x</b>"}))
    plain, html = texts(mail)

    assert "<script>alert(1)</script>" in plain
    assert "<script" not in html
    assert "&lt;script&gt;" in html


def test_a_line_that_is_a_dot_does_not_end_the_mail(server):
    facts = {"reason": "one\n.\nRSET\n..\ntwo", "switch": "segment:x"}
    mail = sent(server, message(OPS, facts=facts))

    assert "\n.\nRSET\n..\ntwo" in texts(mail)[0].replace("\r\n", "\n")


def test_addresses_beyond_ascii_are_written_as_servers_take_them(server):
    sent(server, message("email:ops@bücher.example"))
    sent(server, message("email:운영@example.org"))

    by_domain, by_name = server.accepted
    assert by_domain.recipient == "<ops@xn--bcher-kva.example>"
    assert by_name.recipient == "<운영@example.org>"
    assert "SMTPUTF8" in by_name.options.upper()
    assert "SMTPUTF8" not in by_domain.options.upper()


def test_a_server_without_international_addresses_is_a_final_answer(server):
    server.extensions = []

    with pytest.raises(PermanentFailure, match="ASCII"):
        email.send(message("email:운영@example.org"))


def test_very_long_texts_make_a_mail_with_lines_that_servers_take(server):
    facts = {"switch": "segment:" + "가" * 400, "reason": "나" * 5000, "said": "x" * 5000}
    mail = sent(server, message(OPS, facts=facts))

    assert len(mail["Subject"]) <= email.MAX_SUBJECT_LENGTH
    assert max(len(line) for line in server.accepted[0].content.splitlines()) <= 998
