"""Behaviors asserted by the test suites of resilience4j, Polly, stamina and Finagle.

The docstring of each test, or the id of its case, names the origin. "Differs" marks intentional
differences of this library: such a test asserts the documented behavior.
"""
