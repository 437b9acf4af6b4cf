"""API reads by token, without session middleware and without a new thread for each request."""

import asyncio
import io
from collections.abc import Callable, Iterator
from contextvars import copy_context

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.core.handlers.asgi import ASGIRequest, get_script_prefix
from django.core.handlers.base import BaseHandler
from django.core.handlers.exception import convert_exception_to_response
from django.core.signals import request_finished, request_started
from django.db import connections
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.urls import set_script_prefix
from django.utils.module_loading import import_string

from .dataplane.serving.call import ASGIApplication, Receive, Scope, Send

EXECUTOR = "switchgear.executor"
"""Key in the ASGI scope of the executor that runs the request."""
API = "/api/v1/"
METHODS = ("GET", "HEAD")
MIDDLEWARE = (
    "controlplane.core.http.middleware.RequestContextMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "controlplane.core.http.compression.CompressionMiddleware",
    "csp.middleware.CSPMiddleware",
    "controlplane.core.http.middleware.NamedHostMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
)
"""The part of `settings.MIDDLEWARE` that applies to API tokens, in the same order."""


class TokenReads(BaseHandler):
    """An ASGI application that handles API reads by token; `others` gets all other requests."""

    def __init__(self, others: ASGIApplication) -> None:
        super().__init__()
        self._others = others
        self._view_middleware: list[Callable[..., HttpResponseBase]] = []
        self._template_response_middleware: list[Callable[..., HttpResponseBase]] = []
        self._exception_middleware: list[Callable[..., HttpResponseBase]] = []
        handler = convert_exception_to_response(self._get_response)  # type: ignore[attr-defined]
        for name in reversed(MIDDLEWARE):
            handler = convert_exception_to_response(import_string(name)(handler))
        self._middleware_chain = handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not is_token_read(scope):
            await self._others(scope, receive, send)
            return
        loop = asyncio.get_running_loop()
        run_in_context = copy_context().run
        response = await loop.run_in_executor(
            scope.get(EXECUTOR), run_in_context, self._respond, scope
        )
        await send(
            {
                "type": "http.response.start",
                "status": response.status_code,
                "headers": [*_encode_headers(response)],
            }
        )
        if response.streaming:
            await _send_stream(response, send)
            return
        assert isinstance(response, HttpResponse)  # noqa: S101 - the other kind streams
        await send({"type": "http.response.body", "body": response.content})

    def _respond(self, scope: Scope) -> HttpResponseBase:
        """Return the response to an API read; runs middleware and view in the current thread."""
        set_script_prefix(get_script_prefix(scope))
        request_started.send(sender=type(self), scope=scope)
        try:
            try:
                request = ASGIRequest(scope, io.BytesIO())
            except UnicodeDecodeError:
                return HttpResponse(status=400)
            response = self.get_response(request)
            if response.streaming:
                connections.close_all()  # Streams are read in other threads.
            else:
                response.close()  # Also sends `request_finished`.
            return response
        except BaseException:
            request_finished.send(sender=type(self))
            raise


def is_token_read(scope: Scope) -> bool:
    """Return True for a GET or HEAD of the API by token, without body or second `Authorization`."""
    if scope["method"] not in METHODS or not scope["path"].startswith(API):
        return False
    has_token = has_authorization = False
    for name, value in scope["headers"]:
        if name == b"authorization":
            if has_authorization:
                return False
            has_authorization = True
            has_token = has_token or value[:7].lower() == b"bearer "
        elif name == b"x-api-key":
            has_token = True
        elif name in (b"content-length", b"transfer-encoding") and value != b"0":
            return False
    return has_token


def _encode_headers(response: HttpResponseBase) -> Iterator[tuple[bytes, bytes]]:
    for name, value in response.items():
        yield name.encode("ascii"), value.encode("latin-1")
    for cookie in response.cookies.values():
        yield b"Set-Cookie", cookie.OutputString().encode("ascii")


async def _send_stream(response: HttpResponseBase, send: Send) -> None:
    async with ThreadSensitiveContext():
        try:
            async for part in response:  # type: ignore[attr-defined]
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body"})
        finally:
            await sync_to_async(response.close)()
