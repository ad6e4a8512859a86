"""The graphs that a `langgraph.json` names: imported, described, and given the server's database."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import importlib
import importlib.util
import inspect
import os
import sys
import traceback
import zlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from langgraph.pregel import Pregel

from perihelion.host._http import Http
from perihelion.saver import PerihelionSaver
from perihelion.store import PerihelionStore


class Project:
    """The graphs of a `langgraph.json`."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.root = Path(order["root"])
        self.specs: dict[str, str] = order["graphs"]
        version = "%d.%d" % sys.version_info[:2]
        if order.get("python_version") not in (None, version):
            raise RuntimeError(
                f"python_version is {order['python_version']}, and {sys.executable} is Python {version}; "
                "activate an environment of that version"
            )
        os.environ.update(order.get("env") or {})
        for place in reversed([self.root, *(self.root / path for path in order.get("dependencies", []))]):
            sys.path.insert(0, str(place))
            if (place / "src").is_dir():
                sys.path.insert(1, str(place / "src"))
        keys = [bytes.fromhex(key) for key in order.get("keys", [])] or None
        # First, so that no graph opens the file with another SQLite library unnoticed.
        serde = (order.get("checkpointer") or {}).get("serde") or {}
        for name in serde.keys() - {"allowed_msgpack_modules"}:
            raise ValueError(f"checkpointer.serde.{name} is not supported; list the types in checkpointer.serde.allowed_msgpack_modules")
        allowed = [tuple(one) for one in serde.get("allowed_msgpack_modules") or ()]
        self.saver = PerihelionSaver(order["database"], encryption_key=keys, allowed_types=allowed)
        settings = order.get("store") or {}
        index = settings.get("index")
        if index and ":" in str(index.get("embed", "")) and ".py:" in str(index["embed"]):
            index = {**index, "embed": self._load(index["embed"])}
        # As the store of the server's own threads: expired items are not seen, and reading does not extend a life.
        ttl: Any = {"omit_expired": True, "refresh_on_read": False, **(settings.get("ttl") or {})}
        self.store = PerihelionStore(order["database"], index=index, ttl=ttl, encryption_key=keys)
        self.store.start_ttl_sweeper()
        auth = order.get("auth")
        if auth and not auth.get("path"):
            raise ValueError('auth has no path in langgraph.json: name the handler, such as "./auth.py:auth"')
        self.auth: Any = self._load(auth["path"]) if auth else None
        self.http = Http(order.get("http") or {})
        self.made: dict[str, Any] = {name: self._load(spec) for name, spec in self.specs.items()}

    def store_of(self, tenant: str | None) -> PerihelionStore:
        """Returns the store of a tenant; the tenant `default` has the namespaces that programs without tenants have."""
        return self.store if tenant in (None, "default") else self.store._scoped(tenant)

    def _load(self, spec: str) -> Any:
        place, _, name = spec.rpartition(":")
        if not place:
            raise ValueError(f"a graph is named by FILE:VARIABLE or MODULE:VARIABLE, not by: {spec}")
        module = self._import(place)
        if not hasattr(module, name):
            raise ValueError(f"{place} has no variable: {name}")
        return getattr(module, name)

    def _import(self, place: str) -> ModuleType:
        if not place.endswith(".py"):
            return importlib.import_module(place)
        path = (self.root / place).resolve()
        for root in sys.path:
            # As a module of its package where it is in one, so that relative imports work.
            with contextlib.suppress(ValueError):
                parts = path.relative_to(Path(root).resolve()).with_suffix("").parts
                parents = [Path(root, *parts[: end + 1]) for end in range(len(parts) - 1)]
                if parents and all((parent / "__init__.py").exists() for parent in parents):
                    return importlib.import_module(".".join(parts))
        # The same in every process: stored objects name the modules of their classes.
        name = f"perihelion_graphs_{zlib.crc32(os.path.relpath(path, self.root).encode()):08x}_{path.stem}"
        if name in sys.modules:
            return sys.modules[name]
        found = importlib.util.spec_from_file_location(name, path)
        if found is None or found.loader is None or not path.exists():
            raise FileNotFoundError(f"there is no such file: {path}")
        sys.path.insert(0, str(path.parent))
        module = importlib.util.module_from_spec(found)
        sys.modules[name] = module
        try:
            found.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        return module

    @contextlib.asynccontextmanager
    async def graph(self, name: str, config: dict[str, Any], access: str, context: Any = None) -> AsyncIterator[Any]:
        """Gives a graph, from its factory where it has one, with the saver and the store of the server."""
        made = self.made[name]
        store = self.store_of(config["configurable"].get("perihelion_tenant"))
        async with contextlib.AsyncExitStack() as stack:
            if self.has_factory(name):
                made = made(*self._arguments(made, config, access, context))
                if hasattr(made, "__aenter__"):
                    made = await stack.enter_async_context(made)
                elif hasattr(made, "__enter__"):
                    made = stack.enter_context(made)
                elif inspect.isawaitable(made):
                    made = await made
            if not isinstance(made, Pregel) and hasattr(made, "compile"):
                made = made.compile()
            if not isinstance(made, Pregel):
                raise TypeError(f"{self.specs[name]} is no graph of LangGraph: {type(made).__name__}")
            # Its own saver and store are replaced: the server owns where state is kept.
            update = {"checkpointer": self.saver, "store": store, "config": copy.deepcopy(made.config)}
            if made.name == "LangGraph":
                update["name"] = name
            copied = made.copy(update=update)
            copied._serde_allowlist = made._serde_allowlist
            yield copied

    def has_factory(self, name: str) -> bool:
        made = self.made[name]
        return not isinstance(made, Pregel) and not hasattr(made, "compile") and callable(made)

    def _arguments(self, factory: Callable[..., Any], config: dict[str, Any], access: str, context: Any) -> list[Any]:
        arguments: list[Any] = []
        for parameter in inspect.signature(factory).parameters.values():
            if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                continue
            if "ServerRuntime" in str(parameter.annotation) or parameter.name == "runtime":
                arguments.append(self._runtime(config, access, context))
            elif parameter.default is parameter.empty or parameter.name == "config":
                arguments.append(config)
        return arguments

    def _runtime(self, config: dict[str, Any], access: str, context: Any) -> Any:
        from langgraph_sdk import runtime

        user = config.get("configurable", {}).get("langgraph_auth_user")
        store = self.store_of(config.get("configurable", {}).get("perihelion_tenant"))
        common = {"access_context": access, "user": user, "store": store}
        if access == "threads.create_run":
            return runtime._ExecutionRuntime(context=context, **common)
        return runtime._ReadRuntime(**common)

    def files(self) -> list[str]:
        """Names the files of the project that are loaded, for the server to watch."""
        roots = [self.root.resolve(), *(Path(path).resolve() for path in sys.path if path.startswith(str(self.root)))]
        found = set()
        for module in list(sys.modules.values()):
            path = getattr(module, "__file__", None)
            if path and "site-packages" not in path and any(Path(path).resolve().is_relative_to(r) for r in roots):
                found.add(str(Path(path).resolve()))
        return sorted(found)


async def described(graph: Any, xray: bool | int | None = False) -> dict[str, Any]:
    """Describes a graph: its schemas, and its drawing unless none is wanted."""
    drawing = None if xray is None else (await graph.aget_graph(xray=xray)).to_json()
    for node in drawing["nodes"] if drawing else ():
        if isinstance(node.get("data"), dict):
            node["data"].pop("id", None)  # The class of the node.
    context = _schema(graph.get_context_jsonschema)
    return {
        "input_schema": _schema(graph.get_input_jsonschema),
        "output_schema": _schema(graph.get_output_jsonschema),
        "state_schema": _schema((lambda: _state_schema(graph)) if hasattr(graph, "builder") else graph.get_output_jsonschema),
        "config_schema": context or {},
        "context_schema": context,
        "drawing": drawing,
    }


def _state_schema(graph: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(graph.builder.state_schema).json_schema()


def _schema(make: Callable[[], Any]) -> Any:
    """Returns a schema; none where the types of the graph have none."""
    try:
        return make()
    except Exception:
        return None


async def load(order: dict[str, Any]) -> tuple[Project, dict[str, Any]]:
    project = await asyncio.to_thread(Project, order)
    graphs: dict[str, dict[str, Any]] = {}
    for name in project.specs:
        try:
            async with project.graph(name, {"configurable": {}}, "assistants.read") as graph:
                graphs[name] = await described(graph)
        except Exception:
            if not project.has_factory(name):
                raise
            graphs[name] = {}
            why = "a factory makes no graph without a config, so the graph is described on request only"
            print(f"{why}: {name}\n{traceback.format_exc()}", file=sys.stderr, flush=True)
    return project, {"kind": "loaded", "graphs": graphs, "files": project.files()}
