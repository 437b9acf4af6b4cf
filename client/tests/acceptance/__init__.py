"""Behaviors that the test suites of resilience4j, Polly, stamina and Finagle assert, tested here of
this library.

The docstring of each test, or the id of its case, names the origin. "Differs" marks what this
library does otherwise on purpose: such a test asserts the behavior that its documentation states.
"""
