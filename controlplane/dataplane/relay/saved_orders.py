"""The emergency orders on a relay's disk, for a person at its machine."""

from controlplane.dataplane.config import RelayConfig
from controlplane.dataplane.emergency.order_list import read_journal
from controlplane.dataplane.memory.order_set import OrderSet

from .bundle_disk import BundleDisk
from .trusted_keys import TrustedKeys


def read_relay_orders(config: RelayConfig) -> OrderSet:
    """Return the orders on disk, with those that are closed in the last bundle. Blocking.

    Raise OSError if the folder can't be read.
    """
    if config.folder is None:
        return OrderSet()
    trusted = TrustedKeys(config.secrets, config.public_keys)
    trusted.load()
    saved = BundleDisk(config.folder, config.signing_key, lambda: trusted.keys).load()
    return read_journal(config, config.folder, saved)
