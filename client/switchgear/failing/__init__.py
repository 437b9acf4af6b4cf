"""The former name of :mod:`switchgear.failures`; services may still import it."""
