"""The OpenAPI document, made from the table of routes and from nothing else."""

from __future__ import annotations

import re
from typing import Any

from learngraph_server.routes import NAMES, ROUTES, Route

ERROR: dict[str, Any] = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "code": {"type": "string"},
                "reason": {"type": "string"},
                "place": {"type": ["string", "null"]},
                "remedy": {"type": ["string", "null"]},
                "details": {"type": "object"},
            },
            "required": ["code", "reason"],
        }
    },
    "required": ["error"],
}
BESIDE = {
    "/attachments": ("attach", "A file that is to go with a question (its bytes are the body; `name` in the query)"),
    "/sessions/{session}/events": ("events", "The events of a conversation as SSE (Last-Event-ID resumes)"),
    "/runs/{run}/report": ("report", "The page of one of your runs"),
    "/sessions/{session}/artifacts/{sha256}": ("artifact", "Something a conversation refers to, as a download"),
    "/openapi.json": ("openapi", "This document"),
}
"""What is no JSON call: streams and files."""


def document() -> dict[str, Any]:
    """OpenAPI 3.1."""
    from learngraph_kernel import __version__

    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    for path, (name, summary) in BESIDE.items():
        answers = {"200": {"description": summary}, "default": _error()}
        paths[path] = {
            "post" if name == "attach" else "get": {
                "operationId": name,
                "summary": summary,
                "parameters": _names(path),
                "responses": answers,
            }
        }
    return {
        "openapi": "3.1.0",
        "info": {"title": "LearnGraph", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {"Error": ERROR},
            "securitySchemes": {"token": {"type": "apiKey", "in": "header", "name": "Authorization"}},
        },
        "security": [{"token": []}],
    }


def _operation(route: Route) -> dict[str, Any]:
    query = [{"name": name, "in": "query", "schema": schema} for name, schema in route.query.items()]
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "parameters": [*_names(route.path), *query],
        "responses": {
            "200": {"description": "done", "content": {"application/json": {"schema": {"type": "object"}}}},
            "default": _error(),
        },
    }
    if route.body is not None:
        operation["requestBody"] = {"content": {"application/json": {"schema": route.body}}}
    return operation


def _names(path: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "pattern": f"^{NAMES[name]}$"}}
        for name in re.findall(r"\{(\w+)\}", path)
    ]


def _error() -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Error"}
    return {"description": "why not", "content": {"application/json": {"schema": schema}}}
