"""What is kept for how long: one register of rules, the deleting by them, and the table of them."""

from controlplane.core.retention.deleting import forget, purge
from controlplane.core.retention.rules import Rule, lasting, rule

__all__ = ["Rule", "forget", "lasting", "purge", "rule"]
