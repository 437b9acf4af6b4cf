"""Ed25519 signatures: what is accepted, what is not, and while a key is being replaced."""

import pytest

from controlplane.core.signatures import (
    InvalidKey,
    InvalidSignature,
    PublicKey,
    SigningKey,
    read_public_keys,
    sign,
    verify,
)

OLD, NEW = SigningKey(bytes(range(32))), SigningKey(bytes(range(1, 33)))
CONTENT = "지금".encode()


def by_id(*keys: SigningKey) -> dict[str, PublicKey]:
    return {key.public.id: key.public for key in keys}


def test_a_signature_is_accepted_by_its_key_alone() -> None:
    header = sign(CONTENT, [OLD])

    assert verify(header, CONTENT, by_id(OLD)) == OLD.public
    assert header.startswith(f"keyid={OLD.public.id};sig=")
    with pytest.raises(InvalidSignature, match="unknown key"):
        verify(header, CONTENT, by_id(NEW))
    with pytest.raises(InvalidSignature, match="unknown key"):
        verify(header, CONTENT, {})


@pytest.mark.parametrize("content", [CONTENT + b" ", CONTENT[:-1], b""])
def test_other_content_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidSignature, match="wrong"):
        verify(sign(CONTENT, [OLD]), content, by_id(OLD))


@pytest.mark.parametrize("header", ["", "keyid=;sig=", "keyid=0011223344556677;sig=AAAA", "x" * 99])
def test_what_is_no_signature_is_refused(header: str) -> None:
    with pytest.raises(InvalidSignature):
        verify(header, CONTENT, by_id(OLD))


def test_while_a_key_is_replaced_both_are_accepted() -> None:
    header = sign(CONTENT, [NEW, OLD])

    assert verify(header, CONTENT, by_id(OLD)) == OLD.public
    assert verify(header, CONTENT, by_id(NEW, OLD)) == NEW.public


def test_one_wrong_signature_does_not_spoil_the_other() -> None:
    header = sign(b"other", [NEW]) + ", " + sign(CONTENT, [OLD])

    assert verify(header, CONTENT, by_id(NEW, OLD)) == OLD.public


def test_keys_are_read_and_never_shown() -> None:
    text = f"{OLD.public}, {NEW.public}"

    assert read_public_keys(text) == by_id(OLD, NEW)
    assert SigningKey.parse(OLD.secret_text) == OLD
    assert OLD.secret_text not in repr(OLD)
    assert read_public_keys("") == {}


@pytest.mark.parametrize("text", ["x", "AAAA", str(OLD.public)[:-2], "키"])
def test_other_texts_are_no_keys(text: str) -> None:
    with pytest.raises(InvalidKey, match="32 bytes"):
        read_public_keys(text)
