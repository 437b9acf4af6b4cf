"""Emergency codes: their form, tolerant reading, and hash."""

import hashlib

import pytest

from controlplane.accounts.emergency_codes import codes

CODE = "ABCDO-BIL22-34567-MNOPQ-RSTUV"
SALT = bytes(range(16))


def test_generated_code_has_five_groups_of_five_characters_of_the_alphabet():
    groups = codes.generate_code().split("-")

    assert [len(group) for group in groups] == [5] * 5
    assert set("".join(groups)) <= set(codes.ALPHABET)


def test_generated_codes_and_salts_differ():
    assert len({codes.generate_code() for _ in range(50)}) == 50
    assert len({codes.generate_salt() for _ in range(50)}) == 50


@pytest.mark.parametrize(
    "typed",
    [
        CODE,
        CODE.lower(),
        CODE.replace("-", ""),
        CODE.replace("-", " "),
        f"  {CODE}\n",
        CODE.replace("-", "–"),
        "ABCD0-8il22-34567-MNOPQ-RSTUV",
        "ABCDO-B1122-34567-MNOPQ-RSTUV",
    ],
)
def test_code_is_correct_however_a_person_types_it(typed):
    assert codes.is_correct(typed, SALT, codes.hash_code(CODE, SALT))


@pytest.mark.parametrize(
    "typed", ["", "-", CODE[:-1], CODE + "A", CODE[:-1] + "W", "\x00", "ß" * 5000, CODE * 2000]
)
def test_other_text_is_not_correct(typed):
    assert not codes.is_correct(typed, SALT, codes.hash_code(CODE, SALT))


def test_code_is_not_correct_with_another_salt():
    assert not codes.is_correct(CODE, bytes(16), codes.hash_code(CODE, SALT))


def test_nothing_is_correct_for_an_unknown_person():
    assert not codes.is_correct("", codes.DUMMY_SALT, codes.DUMMY_DIGEST)
    assert not codes.is_correct(CODE, codes.DUMMY_SALT, codes.DUMMY_DIGEST)


def test_hash_is_scrypt_of_the_normalized_code():
    expected = hashlib.scrypt(
        b"ABCDOBII2234567MNOPQRSTUV", salt=SALT, n=16384, r=8, p=1, maxmem=2**26, dklen=32
    )

    assert codes.hash_code(CODE, SALT) == expected
