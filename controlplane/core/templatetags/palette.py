"""Template tags of the palette."""

from django import template

from controlplane.core.palette.registry import PALETTE_COMMANDS, PaletteCommand
from controlplane.core.palette.search import is_allowed

register = template.Library()


@register.simple_tag(takes_context=True)
def commands_with_keys(context: template.Context) -> list[PaletteCommand]:
    """Return the commands with keyboard shortcuts that this user may run, single keys first."""
    user = context["user"]
    if not user.is_authenticated:
        return []
    commands = [one for one in PALETTE_COMMANDS.values() if one.keys and is_allowed(one, user)]
    return sorted(commands, key=lambda one: len(one.keys))
