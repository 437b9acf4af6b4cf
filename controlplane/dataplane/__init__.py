"""The data plane: a thin ASGI application that answers services from memory.

`app` is the standalone application of `manage.py dataplane`, and `relay_app` that of a relay; the
web process runs another instance in front of Django. Each instance follows the database, or its
upstream, by itself.
"""

from controlplane.dataplane.application import Application
from controlplane.dataplane.config import relay_from_environment
from controlplane.dataplane.plane import Plane

app = Application(Plane())
relay_app = Application(Plane(), read_config=relay_from_environment)
