"""The data plane: a thin ASGI application that answers services from memory.

`app` is the standalone application of `manage.py dataplane`; the web process runs another instance
in front of Django. Each instance follows the database by itself.
"""

from controlplane.dataplane.application import Application
from controlplane.dataplane.plane import Plane

app = Application(Plane())
