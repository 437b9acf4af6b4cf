"""Calls that fail."""


class Down(ConnectionError):
    pass


def fails(*_args, **_kwargs):
    raise Down("no route to host")
