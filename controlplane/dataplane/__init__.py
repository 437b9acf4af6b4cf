"""The data plane: a thin ASGI application that serves services from memory.

`app` is the standalone application of `manage.py dataplane`. The web process runs another instance
in front of Django. Each instance follows the database by itself.
"""

from controlplane.dataplane.application import Application
from controlplane.dataplane.plane import Plane

app = Application(Plane())
