"""The e-mail transport.

Mails contain no actions, only a link to a page behind the sign-in. Every attempt has the same
Message-ID, so that receivers can drop a repeat. All mails about a subject refer to the same
Message-ID, which was never sent, so that mail programs group them.
"""

import re
from email import policy
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime, parseaddr

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils.html import format_html, format_html_join

from controlplane.core.console_urls import console_url
from controlplane.core.outbox import renderer
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.outbox.renderer import RenderedMessage
from controlplane.core.rate_limiter import RateLimit
from controlplane.notify.transports.base import TRANSPORTS, DocsRow, Transport
from controlplane.notify.transports.failures import PermanentFailure
from controlplane.notify.transports.identity import environment_name, stable_id, subject_id

from . import smtp

MAX_SUBJECT_LENGTH = 150
MAX_ADDRESS_LENGTH = 254
TO_DECIDE = "Open the console to decide"
TO_OPEN = "Open the console"

_ADDRESS = re.compile(r"[^\s@<>\",;:\\()\[\]]{1,64}@[^\s@<>\",;:\\()\[\]]{1,190}")


def reaches(destination: str) -> bool:
    return is_configured() and _parse_address(destination) is not None


def is_configured() -> bool:
    return bool(settings.EMAIL.host)


def list_secrets() -> list[str]:
    return [settings.EMAIL.password] if settings.EMAIL.password else []


def send(message: OutboxMessage) -> None:
    recipient = _parse_address(message.destination)
    if recipient is None:
        raise PermanentFailure("not an e-mail address")
    sender = _to_ascii(parseaddr(settings.EMAIL.sender)[1])
    envelope = smtp.Envelope(sender, recipient, not (sender + recipient).isascii())
    chosen = policy.SMTPUTF8 if envelope.international else policy.SMTP
    try:
        mail = make_mail(message, recipient).as_bytes(policy=chosen)
    except (MessageError, ValueError, UnicodeError) as error:
        raise PermanentFailure(f"the mail can't be composed ({type(error).__name__})") from error
    smtp.send_mail(settings.EMAIL, envelope, mail)


def make_mail(message: OutboxMessage, recipient: str) -> EmailMessage:
    notice = renderer.render(message.event, renderer.load_facts(message))
    name, sender = parseaddr(settings.EMAIL.sender)
    host = _to_ascii(sender).rpartition("@")[2]
    mail = EmailMessage(policy=policy.SMTP)
    mail["Subject"] = _one_line(f"[{environment_name()}] {notice.icon} {notice.title}")
    mail["From"] = _make_address(_one_line(name) or "Switchgear", _to_ascii(sender))
    mail["To"] = _make_address("", recipient)
    mail["Date"] = format_datetime(message.created_at)
    mail["Message-ID"] = f"<{stable_id(message)}@{host}>"
    if about := subject_id(message):
        mail["In-Reply-To"] = mail["References"] = f"<{about}@{host}>"
    mail["Auto-Submitted"] = "auto-generated"  # Suppresses out-of-office replies.
    mail["X-Auto-Response-Suppress"] = "All"
    footer = f"Switchgear · {environment_name()} · {message.created_at:%Y-%m-%d %H:%M:%S} UTC"
    decides = {"approve", "sign"}.intersection(renderer.buttons_for(message.event, message.payload))
    link = TO_DECIDE if decides else TO_OPEN, console_url(notice.path)
    mail.set_content(_render_text(notice, footer, link))
    mail.add_alternative(_render_html(notice, footer, link), subtype="html")
    return mail


def _render_text(notice: RenderedMessage, small: str, link: tuple[str, str]) -> str:
    lines = [f"{notice.icon} {notice.title}", ""]
    lines += [f"{label}: {text}" for label, text in notice.lines]
    label, url = link
    if url:
        lines += ["", f"{label}:", url]
    return "\n".join([*lines, "", "-- ", small, ""])


def _render_html(notice: RenderedMessage, small: str, link: tuple[str, str]) -> str:
    rows = format_html_join(
        "",
        '<tr><th align="left" valign="top" style="padding:4px 16px 4px 0">{}</th>'
        '<td dir="auto" style="padding:4px 0">{}</td></tr>',
        notice.lines,
    )
    label, url = link
    button = format_html('<p><a href="{}">{}</a></p>', url, label) if url else ""
    return format_html(
        '<!doctype html><html lang="en"><body style="font-family:sans-serif;line-height:1.5">'
        '<h1 dir="auto" style="font-size:18px">{} {}</h1><table style="border-collapse:collapse">'
        '{}</table>{}<p style="font-size:13px;opacity:.75">{}</p></body></html>',
        notice.icon,
        notice.title,
        rows,
        button,
        small,
    )


def _make_address(name: str, address: str) -> Address:
    local, _, domain = address.rpartition("@")
    return Address(name, local, domain)


def _one_line(text: str) -> str:
    shown = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return shown if len(shown) <= MAX_SUBJECT_LENGTH else f"{shown[: MAX_SUBJECT_LENGTH - 1]}…"


def _parse_address(destination: str) -> str | None:
    """Return the address in a destination `email:…`, in ASCII form; None if it is invalid."""
    given = destination.removeprefix("email:")
    if given == destination or not given.isprintable() or len(given) > MAX_ADDRESS_LENGTH:
        return None
    return _to_ascii(given) if _ADDRESS.fullmatch(given) else None


def _to_ascii(address: str) -> str:
    """Return the address with its domain in ASCII (IDNA) and its local part unchanged."""
    local, _, domain = address.rpartition("@")
    try:
        return f"{local}@{domain.encode('idna').decode()}" if not domain.isascii() else address
    except UnicodeError:
        return address


def check_address(address: str) -> str:
    """Check and return a channel's address; raise :class:`ValueError` with a text for the user."""
    given = address.removeprefix("email:")
    if given == address or not given:
        raise ValueError
    check_person(given)
    return address


def check_person(address: str) -> str:
    """Check and return a person's address; raise :class:`ValueError` with a text for the user."""
    try:
        validate_email(address)
    except ValidationError as error:
        raise ValueError("Not an e-mail address.") from error
    return address


TRANSPORTS.register(
    Transport(
        key="email",
        label="e-mail",
        position=20,
        reaches=reaches,
        send=send,
        secrets=list_secrets,
        is_configured=is_configured,
        limit=RateLimit(1, 20),
        address_examples=("email:ops@example.org",),
        check_address=check_address,
        person_column="email",
        check_person=check_person,
        is_personal=lambda _: True,
        docs=(
            DocsRow(
                name="e-mail",
                needs="`EMAIL_URL`",
                threads="in one thread, by the mail client",
                in_doubt="is sent again with the same Message-ID",
            ),
        ),
    )
)
