# Runs one program and writes what it left behind; started with the directory of its request as the only argument.
# It shares its interpreter with the program, so nothing here is a boundary: the boundary is the sandbox around both.
import sys


def main(home):
    import json
    import os

    if home == "-":
        # Standard error is the way back; what is printed to it joins standard output.
        write = os.fdopen(os.dup(2), "w", encoding="utf-8")
        request = json.load(sys.stdin)
        os.dup2(1, 2)
        sys.stdin = open(os.devnull)
    else:
        with open(home + "/request.json", encoding="utf-8") as file:
            request = json.load(file)
        write = open(home + "/outcome.json", "w", encoding="utf-8")
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure:
        # Line by line, so that what goes to standard error stands between.
        reconfigure(line_buffering=True, errors="backslashreplace")
    close_calls()
    if request["strict"]:
        close_modules()
    else:
        import random

        random.seed(request["seed"])
        close_network()
        if request["packages"]:
            import site

            for folder in request["packages"]:
                site.addsitedir(folder)
    outcome = run(request)
    try:
        if outcome.pop("is_cut", False):
            print("The result is cut off after", request["limits"]["values"], "values.")
        sys.stdout.flush()
    except Exception:
        pass
    if home == "-":
        outcome["files"] = files(request["limits"])
    json.dump(outcome, write, allow_nan=False)
    write.flush()
    write.close()


def files(limits):
    import base64
    import os

    found = []
    room = limits["file_bytes_shown"]
    for folder, folders, names in os.walk("."):
        if folder == "." and TEMPORARY in folders:
            folders.remove(TEMPORARY)
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            if len(found) >= limits["files"] or os.path.islink(path) or not os.path.isfile(path):
                continue
            file = {"path": os.path.relpath(path), "size": os.path.getsize(path), "text": None, "base64": None}
            if file["size"] <= min(room, limits["file_shown"]):
                with open(path, "rb") as opened:
                    content = opened.read()
                room -= len(content)
                try:
                    file["text"] = content.decode("utf-8")
                except UnicodeDecodeError:
                    file["base64"] = base64.b64encode(content).decode("ascii")
            found.append(file)
    return found


# Lies in the working directory so that one bound counts for both; what is left there is no result.
TEMPORARY = ".tmp"


class SandboxViolation(PermissionError):
    pass


class MissingModule(ImportError):
    pass


DENIED_MODULES = {
    "_socket", "socket", "ssl", "_ssl", "ctypes", "_ctypes", "cffi", "multiprocessing", "requests", "httpx", "httpx2",
    "urllib3", "aiohttp", "_bashkit", "_bashkit_http", "_bashkit_webcore", "mmap", "resource", "pty", "fcntl",
}
DENIED_CALLS = (
    "system", "popen", "fork", "forkpty", "kill", "killpg", "posix_spawn", "posix_spawnp", "startfile",
    "execl", "execle", "execlp", "execlpe", "execv", "execve", "execvp", "execvpe",
    "spawnl", "spawnle", "spawnlp", "spawnlpe", "spawnv", "spawnve", "spawnvp", "spawnvpe",
    "setuid", "setgid", "chroot", "mount",
)


CLOSED_EVENTS = ("socket.connect", "socket.bind", "socket.send", "socket.getaddrinfo", "socket.gethostby", "socket.getnameinfo")


class Doorkeeper:
    # Answers with a reason where an import would fail with less of one.
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in DENIED_MODULES:
            raise MissingModule("the sandbox has no network, no processes and no native code: " + name, name=name)
        return None


def close_modules():
    for name in [name for name in sys.modules if name.partition(".")[0] in DENIED_MODULES]:
        del sys.modules[name]
    sys.meta_path.insert(0, Doorkeeper)


def close_network():
    import errno

    def audit(event, args):
        if event == "socket.__new__":
            # A pair of sockets is a pipe.
            closed = args[1] != 1 and args[1] != -1
        else:
            closed = event.startswith(CLOSED_EVENTS)
        if closed:
            raise SandboxViolation(errno.EACCES, "the sandbox has no network: " + event)

    sys.addaudithook(audit)


def close_calls():
    import os

    def denied(name):
        def call(*args, **kwargs):
            raise SandboxViolation("the sandbox starts no processes: " + name)

        call.__name__ = name
        return call

    for name in DENIED_CALLS:
        setattr(os, name, denied("os." + name))
    subprocess = sys.modules.get("subprocess")
    if subprocess is not None:
        subprocess.Popen = denied("subprocess.Popen")
        subprocess.run = subprocess.call = subprocess.check_call = subprocess.check_output = denied("subprocess.run")
        subprocess.getoutput = subprocess.getstatusoutput = denied("subprocess.getoutput")


def run(request):
    import ast
    import types

    limits = request["limits"]
    inputs = request["inputs"]
    module = types.ModuleType("__main__")
    scope = module.__dict__
    scope["inputs"] = inputs
    for name, value in inputs.items():
        if name.isidentifier():
            scope[name] = value
    given = {name: id(value) for name, value in scope.items()}
    sys.modules["__main__"] = module
    sys.argv = ["program"]
    outcome = {"result": None, "locals": {}, "table": None, "error": None, "denied": False}
    value = None
    source = request["code"]
    try:
        tree = ast.parse(source, "<program>")
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        import linecache

        linecache.cache["<program>"] = (len(source), None, source.splitlines(True), "<program>")
        exec(compile(tree, "<program>", "exec", dont_inherit=True), scope)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "<program>", "eval", dont_inherit=True), scope)
        elif "result" in scope and given.get("result") != id(scope["result"]):
            value = scope["result"]
    except SystemExit as error:
        if error.code not in (None, 0):
            failed(outcome, error)
    except BaseException as error:
        failed(outcome, error)
    try:
        collect(outcome, scope, given, value, limits)
    except BaseException as error:
        outcome.update(result=None, table=None, locals={})
        if outcome["error"] is None:
            failed(outcome, error)
    return outcome


def failed(outcome, error):
    line = None
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == "<program>":
            line = step.tb_lineno
        step = step.tb_next
    if isinstance(error, SyntaxError) and error.filename == "<program>":
        line = error.lineno
    kind = "PythonError"
    refusal = ""
    try:
        for cause in causes(error):
            if isinstance(cause, SandboxViolation) and cause is not error:
                refusal = cause.strerror or str(cause)
            if isinstance(cause, (PermissionError, MissingModule)) or is_outside(cause):
                kind = "SandboxViolation"
            elif isinstance(cause, OSError):
                outcome["denied"] = True
            elif isinstance(cause, MemoryError):
                kind = "MemoryLimit"
    except Exception:
        # The program's own exceptions may have attributes that raise.
        pass
    # On a machine of 32 bits a size past its addresses is no memory error yet.
    is_memory = isinstance(error, MemoryError) or (isinstance(error, OverflowError) and "index-sized" in str(error))
    if is_memory:
        kind = "MemoryLimit"
    if isinstance(error, SyntaxError):
        text = str(error.msg)
    else:
        try:
            text = str(error)
        except BaseException:
            text = ""
    name = type(error).__name__
    if isinstance(error, SandboxViolation):
        message = error.strerror or text
    elif isinstance(error, MissingModule):
        message = text
    elif is_memory:
        message = "the program needs more memory than the sandbox grants"
    else:
        message = name + ": " + text if text else name
    if isinstance(error, ModuleNotFoundError) and not isinstance(error, MissingModule):
        message += present(error.name or "")
    if refusal not in message:
        message = message[:3000] + " (" + refusal + ")"
    outcome["error"] = {"type": kind, "message": message[:4000], "line": line}


def causes(error):
    # Libraries wrap what the sandbox refused: as a cause, in a group, or as an argument.
    found = []
    waiting = [error]
    while waiting and len(found) < 50:
        cause = waiting.pop()
        if not isinstance(cause, BaseException) or any(cause is known for known in found):
            continue
        found.append(cause)
        inner = getattr(cause, "exceptions", ())
        waiting += [cause.__cause__, cause.__context__, getattr(cause, "reason", None), *cause.args]
        waiting += inner if isinstance(inner, (list, tuple)) else ()
    return found


def is_outside(cause):
    import errno
    import os

    if not isinstance(cause, OSError):
        return False
    if cause.errno == errno.EROFS:
        return True
    # The host's files are not there at all, so that opening one says no more than that.
    path = cause.filename
    known = (os.getcwd() + "/", "/tmp/", "/packages/")
    return isinstance(cause, FileNotFoundError) and isinstance(path, str) and path.startswith("/") and not path.startswith(known)


def present(name):
    # Says what can be imported where a module cannot.
    import difflib
    import pkgutil

    top = name.partition(".")[0]
    known = {module.name for module in pkgutil.iter_modules()} | set(sys.builtin_module_names)
    if not top or top in known:
        return ""
    own = set(getattr(sys, "stdlib_module_names", ())) | {"driver"}
    packages = sorted(package for package in known - own if package.isidentifier() and not package.startswith("_"))
    near = difflib.get_close_matches(top, [module for module in known if not module.startswith("_")], 1, 0.8)
    text = "; did you mean " + near[0] + "? The sandbox has " if near else "; the sandbox has "
    if not packages:
        return text + "the standard library and no other package"
    more = " and " + str(len(packages) - 60) + " more" if len(packages) > 60 else ""
    return text + "the standard library and these packages: " + ", ".join(packages[:60]) + more


def collect(outcome, scope, given, value, limits):
    import types

    budget = [limits["values"]]
    outcome["result"] = plain(value, budget, 0)
    outcome["is_cut"] = len(budget) > 1
    table = None
    if "table" in scope and given.get("table") != id(scope["table"]):
        table = tabular(scope["table"], limits)
    if table is None:
        table = tabular(value, limits)
    outcome["table"] = table
    hidden = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type)
    names = {}
    for name, item in list(scope.items()):
        if name.startswith("_") or given.get(name) == id(item) or isinstance(item, hidden):
            continue
        if len(names) >= limits["locals"]:
            break
        names[name] = shortened(item)
    outcome["locals"] = names


def shortened(item):
    import json

    budget = [200]
    made = plain(item, budget, 0)
    if budget[0] >= 0 and len(json.dumps(made, allow_nan=False)) <= 2000:
        return made
    try:
        text = repr(item)
    except Exception:
        text = "<" + type(item).__name__ + ">"
    return text[:500] + "…" if len(text) > 500 else text


def is_spent(budget):
    # Remembers that there was more.
    if budget[0] < 0:
        budget[1:] = [True]
    return budget[0] < 0


def plain(value, budget, depth):
    # Returns a JSON value that says the same; what has none becomes its text.
    budget[0] -= 1
    if value is None or value is True or value is False:
        return value
    kind = type(value)
    if kind is str:
        budget[0] -= len(value) // 64
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, int) and kind.__module__ == "builtins":
        return int(value) if -(2**63) <= value < 2**64 else text_of(value)
    if isinstance(value, float):
        value = float(value)
        return value if value - value == 0 else repr(value)
    name = kind.__name__
    if budget[0] < 0 or depth > 24:
        if isinstance(value, (dict, list, tuple, set, frozenset)) or name in ("DataFrame", "Series", "ndarray"):
            budget[1:] = [True]
        return text_of(value)
    if isinstance(value, dict):
        made = {}
        for key, item in value.items():
            if is_spent(budget):
                break
            key = key if type(key) is str else key.isoformat() if hasattr(key, "isoformat") else str(key)
            made[key.encode("utf-8", "replace").decode("utf-8")] = plain(item, budget, depth + 1)
        return made
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return plain(value._asdict(), budget, depth + 1)
    if isinstance(value, (set, frozenset)):
        value = sorted(value, key=lambda item: (type(item).__name__, repr(item)))
    if isinstance(value, (list, tuple)) or name in ("dict_keys", "dict_values", "dict_items", "range", "deque", "map", "filter", "zip", "generator"):
        made = []
        for item in value:
            if is_spent(budget):
                break
            made.append(plain(item, budget, depth + 1))
        return made
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        return {field: plain(getattr(value, field), budget, depth + 1) for field in value.__dataclass_fields__}
    if name == "DataFrame":
        columns, rows = framed(value)
        return plain([dict(zip(columns, row)) for row in rows], budget, depth + 1)
    if name == "Series" and not only_counts(value.index):
        # Keys become texts.
        if len({str(key) for key in value.index}) < len(value.index):
            return plain(value.to_frame(), budget, depth)
        return plain(dict(zip(value.index, value.tolist())), budget, depth + 1)
    if name == "Series" or name == "ndarray":
        return plain(value.tolist(), budget, depth + 1)
    if hasattr(value, "item") and hasattr(value, "dtype"):
        return plain(value.item(), budget, depth + 1)
    return text_of(value)


def only_counts(index):
    # An index without a name whose numbers are those of rows; others have the names of groups.
    return all(name is None for name in index.names) and getattr(index.dtype, "kind", "O") in "iu"


def framed(frame):
    columns = [str(name) for name in frame.columns]
    # The frame's own array has one type for all columns, which turns large integers into other numbers.
    rows = list(frame.itertuples(index=False, name=None))
    if only_counts(frame.index):
        return columns, rows
    names = []
    for name in frame.index.names:
        name = "index" if name is None else str(name)
        while name in columns or name in names:
            name += "_index"
        names.append(name)
    keys = [key if len(names) > 1 else (key,) for key in frame.index]
    return names + columns, [(*key, *row) for key, row in zip(keys, rows)]


def text_of(value):
    if isinstance(value, int) and value.bit_length() > 12000:
        return "an integer of " + str(value.bit_length()) + " bits"
    kind = type(value).__name__
    text = str(value) if kind in ("Decimal", "Fraction", "UUID", "PosixPath", "int", "timedelta", "complex") else repr(value)
    return text[:2000] + "…" if len(text) > 2000 else text


def tabular(value, limits):
    kind = type(value).__name__
    if kind == "DataFrame":
        columns, rows = framed(value)
    elif isinstance(value, dict) and isinstance(value.get("columns"), (list, tuple)) and isinstance(value.get("rows"), (list, tuple)):
        columns = [str(name) for name in value["columns"]]
        rows = [[row.get(name) for name in columns] if isinstance(row, dict) else row for row in value["rows"]]
    elif isinstance(value, (list, tuple)) and value and all(isinstance(row, dict) for row in value):
        columns = []
        for row in value:
            for name in row:
                if str(name) not in columns:
                    columns.append(str(name))
        rows = [[row.get(name) for name in columns] for row in [{str(k): v for k, v in row.items()} for row in value]]
    else:
        return None
    if not all(isinstance(row, (list, tuple)) and len(row) == len(columns) for row in rows):
        return None
    budget = [limits["values"]]
    kept = []
    for row in rows[: limits["rows"]]:
        kept.append([plain(cell, budget, 1) for cell in row])
        if budget[0] < 0:
            break
    return {"columns": columns, "rows": kept, "row_count": len(rows), "truncated": len(kept) < len(rows)}


main(sys.argv[1])
