"""Imports by the previous names of modules still work."""

from switchgear.failing.classes import Catastrophic, classify
from switchgear.failing.responses import respond
from switchgear.failures import classification, responses
from switchgear.patterns import deadline


def test_previous_names_are_the_same_objects():
    assert Catastrophic is classification.Catastrophic
    assert classify is classification.classify
    assert respond is responses.respond
    assert deadline.left is deadline.remaining_seconds
