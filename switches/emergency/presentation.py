"""Emergency orders on the page of a switch."""

from collections.abc import Collection

from django.db.models import Q

from switches.models import EmergencyOrder, Episode


def load_orders(switch_id: str, episodes: Collection[Episode]) -> list[EmergencyOrder]:
    """Set `orders` of these episodes of a switch, and return its open orders.

    Open orders block the switch on data planes and are no engagement yet.
    """
    is_open = Q(switch=switch_id, action=EmergencyOrder.Action.ENGAGE, closed_at__isnull=True)
    its_own = Q(episode__in=[episode.pk for episode in episodes])
    rows = list(EmergencyOrder.objects.filter(is_open | its_own).order_by("at", "pk"))
    for episode in episodes:
        episode.orders = [row for row in rows if row.episode_id == episode.pk]
    return [row for row in rows if row.closed_at is None]
