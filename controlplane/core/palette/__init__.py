"""Where one types what one wants: pages, actions and things, found by their words.

Each app says what it has in a module named `palette`, core in `house`; nobody is asked by name.
"""

# What core has is there as soon as anybody comes in here.
from . import palette_entries as _house  # noqa: F401
