"""Secrets that an earlier release sealed."""

from controlplane.core import encryption

SEALED = (
    "gAAAAABrCBMeYBtMsZ2KTa_LueGeaS23-RReTEH6HI83JdQN3QEZCwMGeEmq-9s__FTCXknpsOMhk2pZ2o-5mk4-"
    "TXDYPV6vL2G-JGvxtGgSJFZO9q3HeCg="
)


def test_secret_of_an_earlier_release_stays_readable(settings):
    settings.SECRET_KEY = "k" * 50

    assert encryption.decrypt(SEALED, encryption.SECOND_FACTORS) == "a secret of an earlier release"
