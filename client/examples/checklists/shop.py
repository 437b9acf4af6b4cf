"""The policies of an example service that meets all items of the checklists."""

from switchgear import BulkheadParameters, Fallback, RetryParameters, Switchgear

gear = Switchgear(None, service="shop")  # A real service calls Switchgear.from_env().

stock = gear.policy(
    "shop->stock",
    feature="stock",
    timeout_seconds=2,
    deadline_seconds=5,
    retry=RetryParameters(attempts=3),
    bulkhead=BulkheadParameters(limit=20, queue=20, queue_seconds=1),
    fallback=Fallback("shop->stock", default="availability unknown"),
)
payments = gear.policy(
    "shop->payments",
    feature="payments",
    timeout_seconds=10,
    deadline_seconds=10,
    bulkhead=BulkheadParameters(limit=10),
    fallback=None,  # Nothing stands in for a payment.
)
policies = [stock, payments]
