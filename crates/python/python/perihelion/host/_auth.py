"""Decides by `auth` and `http` of `langgraph.json` who asks, and which request the server performs in its place."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode

from langgraph_sdk import Auth

from perihelion.host._http import Http
from perihelion.host._user import User

Check = dict[str, Any]
"""A filter that the metadata of a thread, an assistant or a cron must match."""


SHAPES = {
    **dict.fromkeys(("config", "configurable", "metadata", "params"), (dict, "an object")),
    **dict.fromkeys(("namespace", "namespace_prefix", "prefix", "thread_ids"), (list, "a list")),
    **dict.fromkeys(("assistant_id", "thread_id"), (str, "a string")),
}
"""The fields of bodies that are read here."""


class Refused(Exception):
    def __init__(self, status: int, detail: str) -> None:
        self.answer = {"status": status, "detail": detail}


async def authorize(auth: Auth | None, http: Http, order: dict[str, Any]) -> dict[str, Any]:
    """Returns the user with the request to perform, or a status and a detail if it is refused.

    There is no user for a request with a credential of the server, and without an auth handler.
    """
    user = None
    try:
        request = _Request(order)
        if http.is_off(request.parts):
            raise Refused(404, "Not Found")
        if "webhooks" in http.off and any(run.get("webhook") for run in request.runs()):
            raise Refused(422, "webhooks are off in the http settings of langgraph.json; follow the run instead")
        if auth is not None and not order.get("is_known"):
            user = await _authenticate(auth, order)
            await _Handled(auth, user, request).decide()
        request.show(http.headers(order["headers"]))
    except Refused as refused:
        return refused.answer
    except Auth.exceptions.HTTPException as error:
        return {"status": error.status_code, "detail": str(error.detail)}
    except AssertionError as error:
        return {"status": 403, "detail": str(error)}
    return {"user": user, "body": request.body, "query": request.query, "checks": request.checks}


async def _authenticate(auth: Auth, order: dict[str, Any]) -> User:
    if auth._authenticate_handler is None:
        raise RuntimeError("the auth object has no handler: add one with @auth.authenticate")
    headers = {name.encode(): value.encode() for name, value in order["headers"]}
    known = {
        "headers": headers,
        "authorization": headers.get(b"authorization", b"").decode() or None,
        "method": order["method"],
        "path": order["path"],
        "path_params": {},
        "query_params": dict(parse_qsl(order["query"] or "")),
        "body": order["body"],
        "scopes": [],
        "user": None,
    }
    scope_headers = list(headers.items())
    scope = {"type": "http", "method": order["method"], "path": order["path"], "headers": scope_headers}
    known["scope"] = {**scope, "query_string": (order["query"] or "").encode()}
    parameters = inspect.signature(auth._authenticate_handler).parameters
    if "request" in parameters:
        from starlette.requests import Request  # type: ignore[import-not-found]

        known["request"] = Request(known["scope"])
    found: Any = auth._authenticate_handler(**{name: known[name] for name in parameters if name in known})
    found = await found if inspect.isawaitable(found) else found
    permissions, user = found if isinstance(found, tuple) else (None, found)
    if isinstance(user, str):
        return User(user, permissions or [])
    fields = user if isinstance(user, dict) else _fields(user)
    permissions = permissions if permissions is not None else fields.get("permissions") or []
    return User(str(fields["identity"]), permissions, fields)


def _fields(user: Any) -> dict[str, Any]:
    names = ("identity", "display_name", "is_authenticated", "permissions")
    known = {name: getattr(user, name) for name in names if hasattr(user, name)}
    for way in ("model_dump", "dict", "to_dict"):
        if callable(getattr(user, way, None)):
            return dict(getattr(user, way)()) | known
    return getattr(user, "__dict__", {}) | known


class _Request:
    """A request, with the changes and the checks that the handlers want."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.method: str = order["method"]
        # As the routes read them: a part that is written in another way names the same thread.
        self.parts: list[str] = [unquote(part) for part in order["path"].split("/") if part]
        self.sent: Any = order["body"] if isinstance(order["body"], dict) else {}
        self.body: Any = order["body"]
        self.query: str | None = order["query"]
        self.checks: list[Check] = []

    def runs(self) -> list[dict[str, Any]]:
        """Returns the runs that it asks for, or the changes to those of a cron."""
        found = self.body if isinstance(self.body, list) else [self.body]
        if self.parts[2:] == ["commands"]:
            found = [self.body.get("params")] if _starts_run(self.body) else []
        elif "runs" not in self.parts or self.method not in ("POST", "PATCH"):
            found = []
        return [one for one in found if isinstance(one, dict)]

    def show(self, headers: dict[str, str]) -> None:
        """Adds headers to the config of the runs that it asks for, in place of what the client wrote there."""
        for run in self.runs() if headers and self.method == "POST" else ():
            if "assistant_id" in run or self.parts[2:] == ["commands"]:
                _check_shapes(run)
                run["config"] = {**(run.get("config") or {})}
                run["config"]["configurable"] = {**(run["config"].get("configurable") or {}), **headers}


class _Handled:
    """A request as the handlers decide about it."""

    def __init__(self, auth: Auth, user: User, request: _Request) -> None:
        self.auth, self.user, self.request = auth, user, request

    async def decide(self) -> None:
        is_batch = self.request.parts == ["runs", "batch"]
        if not is_batch and self.request.body is not None and not isinstance(self.request.body, dict):
            raise Refused(422, "the body must be an object")
        _check_shapes(self.request.sent)
        match self.request.parts:
            case ["threads"]:
                await self._create("threads")
            case ["threads", "search" | "count"]:
                await self._search("threads")
            case ["threads", "prune"]:
                for thread in self.request.sent.get("thread_ids") or ():
                    _check_shapes({"thread_id": thread})
                    await self._check("threads", "delete", thread)
            case ["threads", thread, "runs"] if self.request.method == "POST":
                self.request.body = await self._run(thread, self.request.sent)
            case ["threads", thread, "runs", "stream" | "wait"]:
                self.request.body = await self._run(thread, self.request.sent)
            case ["threads", thread, "runs", "crons"]:
                await self._cron(thread)
            case ["threads", thread, "commands"]:
                if _starts_run(self.request.sent):
                    params = self.request.sent.get("params") or {}
                    self.request.body = {**self.request.sent, "params": await self._run(thread, params)}
                else:
                    await self._check("threads", "update", thread)
            case ["threads", _, "stream", "events"] if self.request.method == "GET":
                # A socket carries commands, about which the handlers are not asked.
                raise Refused(403, "users of the auth handler have no sockets: send commands by POST")
            case ["threads", thread, *rest]:
                is_read = self.request.method == "GET" or rest in (["history"], ["state", "checkpoint"], ["copy"], ["stream", "events"])
                action = "read" if is_read else "delete" if self.request.method == "DELETE" else "update"
                await self._check("threads", action, thread, self.request.sent if action == "update" and not rest else {})
            case ["runs"] | ["runs", "stream" | "wait"]:
                self.request.body = await self._run(None, self.request.sent)
            case ["runs", "batch"]:
                if not isinstance(self.request.body, list) or not all(isinstance(one, dict) for one in self.request.body):
                    raise Refused(422, "the body must be a list of runs")
                self.request.body = [await self._run(one.get("thread_id"), one) for one in self.request.body]
            case ["runs", "cancel"] if self.request.sent.get("thread_id"):
                await self._check("threads", "update", self.request.sent["thread_id"])
            case ["runs", "crons"]:
                await self._cron(None)
            case ["runs", "crons", "search" | "count"]:
                await self._search("crons")
            case ["runs", "crons", cron] if self.request.method == "DELETE":
                await self._check("crons", "delete", cron)
            case ["runs", "crons", cron]:
                await self._change_cron(cron)
            case ["assistants"]:
                await self._create("assistants")
            case ["assistants", "search" | "count"]:
                await self._search("assistants")
            case ["assistants", assistant, *rest]:
                actions = {"DELETE": "delete", "PATCH": "update"}
                action = "update" if rest == ["latest"] else actions.get(self.request.method, "read")
                await self._check("assistants", action, assistant, self.request.sent if action == "update" else {})
            case ["store", *_]:
                await self._store()
            case ["ok"] | ["info"]:
                pass
            case _:
                raise Refused(404, "Not Found")

    async def _ask(self, resource: Any, action: Any, value: dict[str, Any]) -> dict[str, Any]:
        """Asks the most specific handler, and returns its filter."""
        handlers = self.auth._handlers
        found = [handlers[key] for key in ((resource, action), (resource, "*"), ("*", action), ("*", "*")) if key in handlers]
        handler = found[0][-1] if found else self.auth._global_handlers[-1] if self.auth._global_handlers else None
        if handler is None:
            return {}
        permissions = self.user["permissions"]
        context = Auth.types.AuthContext(user=self.user, permissions=permissions, resource=resource, action=action)
        answer = await handler(ctx=context, value=value)
        if answer is False:
            raise Refused(403, "Forbidden")
        if answer not in (None, True) and not isinstance(answer, dict):
            raise Refused(500, f"an auth handler returned neither a filter nor a boolean: {type(answer)}")
        return answer if isinstance(answer, dict) else {}

    async def _create(self, resource: str) -> None:
        self.request.body = {**self.request.sent, "metadata": dict(self.request.sent.get("metadata") or {})}
        wanted = await self._ask(resource, "create", self.request.body)
        name = f"{resource[:-1]}_id"
        if wanted and self.request.body.get(name) and self.request.body.get("if_exists") == "do_nothing":
            kind = "new_threads" if resource == "threads" else resource
            self.request.checks.append({"kind": kind, "id": self.request.body[name], "filter": wanted})

    async def _search(self, resource: str) -> None:
        self.request.body = {**self.request.sent, "metadata": dict(self.request.sent.get("metadata") or {})}
        self.request.body["metadata"].update(_plain(await self._ask(resource, "search", self.request.body)))

    async def _check(self, resource: str, action: str, id: str, value: dict[str, Any] | None = None) -> None:
        given = {**(value or {}), f"{resource[:-1]}_id": id}
        wanted = await self._ask(resource, action, given)
        if value:
            self.request.body = {name: field for name, field in given.items() if name != f"{resource[:-1]}_id"}
        if wanted:
            self.request.checks.append({"kind": resource, "id": id, "filter": wanted})

    async def _run(self, thread: str | None, sent: dict[str, Any]) -> dict[str, Any]:
        _check_shapes(sent)
        kwargs = {name: sent.get(name) for name in ("input", "command", "config", "context", "stream_mode")}
        same = {name: sent.get(name) for name in ("assistant_id", "multitask_strategy", "if_not_exists", "after_seconds")}
        metadata = dict(sent.get("metadata") or {})
        value: dict[str, Any] = {**same, "thread_id": thread, "run_id": None, "status": "pending", "metadata": metadata, "kwargs": kwargs}
        wanted = await self._ask("threads", "create_run", value)
        if wanted and thread:
            self.request.checks.append({"kind": "threads", "id": thread, "filter": wanted})
        await self._check("assistants", "read", sent.get("assistant_id") or "")
        given = {name: field for name, field in value["kwargs"].items() if field is not None}
        return {**sent, **given, "config": self._named(given.get("config")), "metadata": value["metadata"]}

    def _named(self, config: dict[str, Any] | None) -> dict[str, Any]:
        """Returns a config that names the user with all fields, for the nodes of a run."""
        given = config or {}
        return {**given, "configurable": {**(given.get("configurable") or {}), "langgraph_auth_user": self.user}}

    async def _cron(self, thread: str | None) -> None:
        payload = {**self.request.sent, "metadata": dict(self.request.sent.get("metadata") or {})}
        value: dict[str, Any] = {**payload, "payload": payload, "thread_id": thread}
        given = dict(value)
        await self._ask("crons", "create", value)
        # A handler changes a field of the value or of its payload.
        changed = {name: field for name, field in value.items() if name not in given or field is not given[name]}
        body = {**value["payload"], **changed}
        for name in ("payload", "thread_id"):
            body.pop(name, None)
        self.request.body = {**body, "config": self._named(body.get("config"))}
        await self._check("assistants", "read", body.get("assistant_id") or "")
        if thread:
            await self._check("threads", "update", thread)

    async def _change_cron(self, cron: str) -> None:
        await self._check("crons", "update", cron, self.request.sent)
        if self.request.sent.get("config"):
            self.request.body = {**self.request.body, "config": self._named(self.request.body.get("config"))}
        if assistant := self.request.sent.get("assistant_id"):
            await self._check("assistants", "read", assistant)

    async def _store(self) -> None:
        if self.request.method == "GET":
            query = dict(parse_qsl(self.request.query or ""))
            value: dict[str, Any] = {"namespace": tuple(part for part in query.get("namespace", "").split(".") if part), "key": query.get("key")}
            await self._ask("store", "get", value)
            _refuse_own(value["namespace"] or ())
            self.request.query = urlencode({"namespace": ".".join(value["namespace"] or ()), "key": value["key"] or ""})
            return
        actions = {"items": "delete" if self.request.method == "DELETE" else "put", "search": "search", "namespaces": "list_namespaces"}
        action = actions[self.request.parts[-1]]
        name = {"search": "namespace_prefix", "list_namespaces": "prefix"}.get(action, "namespace")
        value = {**self.request.sent, "namespace": tuple(self.request.sent.get(name) or ())}
        await self._ask("store", action, value)
        _refuse_own(value["namespace"])
        self.request.body = {**value, name: list(value["namespace"])}


def _starts_run(command: Any) -> bool:
    methods = ("run.start", "state.fork", "input.respond", "input.inject")
    return isinstance(command, dict) and command.get("method") in methods


def _check_shapes(fields: dict[str, Any]) -> None:
    for name in SHAPES.keys() & fields.keys():
        shape, wanted = SHAPES[name]
        if not isinstance(fields[name], (shape, type(None))):
            raise Refused(422, f"{name} must be {wanted}")
        if name == "config":
            _check_shapes(fields[name] or {})


def _refuse_own(namespace: tuple[str, ...]) -> None:
    if namespace and namespace[0] in ("evaluations", "evaluation_records"):
        raise Refused(403, "this namespace is the server's own")


def _plain(wanted: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Returns the fields of a filter as metadata to search for."""
    for name, value in wanted.items():
        is_equal = isinstance(value, dict) and set(value) == {"$eq"}
        if name.startswith("$") or isinstance(value, dict) and not is_equal:
            raise Refused(500, f"searches take filters of equal values only, not: {name}: {value}")
        yield name, value["$eq"] if is_equal else value
