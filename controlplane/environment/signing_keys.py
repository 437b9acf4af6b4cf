"""The keys that sign snapshots, if they are given in the environment."""

from collections.abc import Mapping

from controlplane.core.environment_variables import WrongVariable
from controlplane.core.signatures import MAX_SIGNATURES, InvalidKey, SigningKey
from controlplane.core.signing_keys import KeyRing, StoredKey

KEY = "SNAPSHOT_SIGNING_KEY"
FALLBACKS = "SNAPSHOT_SIGNING_KEY_FALLBACKS"


def read_signing_keys(variables: Mapping[str, str]) -> KeyRing | None:
    """Return the keys in the environment, which have no end; None without any.

    Raises :class:`WrongVariable`.
    """
    current = variables.get("SNAPSHOT_SIGNING_KEY", "").split()
    older = variables.get("SNAPSHOT_SIGNING_KEY_FALLBACKS", "").split()
    if not current:
        if older:
            raise WrongVariable(FALLBACKS, f"is set, but {KEY} is not")
        return None
    if len(current) > 1:
        raise WrongVariable(KEY, f"must be one key; set the others as {FALLBACKS}")
    if len(older) >= MAX_SIGNATURES:
        raise WrongVariable(FALLBACKS, f"must be at most {MAX_SIGNATURES - 1} keys")
    keys = (_parse_key(KEY, current[0]), *(_parse_key(FALLBACKS, text) for text in older))
    if len({key.raw for key in keys}) < len(keys):
        raise WrongVariable(FALLBACKS, "names a key twice")
    return KeyRing(tuple(map(StoredKey, keys)))


def _parse_key(name: str, text: str) -> SigningKey:
    try:
        return SigningKey.parse(text)
    except InvalidKey as error:
        raise WrongVariable(name, str(error)) from error
