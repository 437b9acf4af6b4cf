"""A WSGI service that is made when it is imported: before the fork, if it is preloaded."""

import json
import os

from switchgear import from_env

gear = from_env()


def app(environ, start_response):
    allowed = gear.allowed(feature="chat")
    body = json.dumps({"pid": os.getpid(), "allowed": allowed, "instance": gear.status().instance})
    start_response("200 OK", [("Content-Type", "application/json")])
    return [body.encode()]
