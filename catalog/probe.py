"""Says of each function that Python kinds name whether an interpreter can import and call it, and
which tasks a module has.

A standard-library script that the interpreter in question runs, because it imports the user's code:
that may print, exit, crash or hang. It reads one JSON request from stdin: {"package": musterd's
folder, "path": folders to search first, "own_path": what follows, or null for the interpreter's
own, "wanted": [[module, function, isolation], ...], "modules": [module, ...]}. It answers on
stdout, one JSON line each: its version, then for each function null or what is wrong, then for each
module its file and tasks, or its fault.
"""

import difflib
import importlib
import importlib.util
import inspect
import json
import os
import sys
import traceback

REASON_LENGTH_MAX = 600


def main() -> None:
    request = json.load(sys.stdin)
    answers = os.dup(1)
    answer(answers, list(sys.version_info[:2]))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for theirs in (0, 1, 2):
        os.dup2(nowhere, theirs)
    load_package(request["package"])
    own_path = sys.path if request["own_path"] is None else request["own_path"]
    sys.path[:] = [*request["path"], *own_path]
    looked = "looked in {}, then on the interpreter's own path".format(", ".join(request["path"]))
    for module, function, isolation in request["wanted"]:
        answer(answers, why_broken(module, function, isolation, looked))
    for module in request["modules"]:
        answer(answers, tasks_in(module, looked))
    os._exit(0)  # whatever threads and exit handlers the modules have brought


def tasks_in(name: str, looked: str) -> "dict[str, object]":
    """The tasks that the module itself defines, each under the name that leads to it."""
    try:
        module = importlib.import_module(name)
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - it is the user's
        own = users_frames(error)
        is_missing = isinstance(error, ModuleNotFoundError) and not own
        where = f" ({looked})" if is_missing else ""
        fault = cut(f"cannot import {name}: {error_text(error)}{where}")
        last = (own[-1].filename, own[-1].lineno) if own else (None, None)
        if isinstance(error, SyntaxError) and error.filename:
            last = (error.filename, error.lineno)
        return {"fault": fault, "file": last[0], "line": last[1]}
    sort = getattr(sys.modules.get("musterd.tasks"), "Task", None)
    found = {} if sort is None else {
        id(value): (attribute, value)
        for attribute, value in list(vars(module).items())
        if isinstance(value, sort) and value.__module__ == name
    }  # fmt: skip
    file = getattr(module, "__file__", None)
    if not found:
        return {"fault": f"module {name} has no function with @task", "file": file, "line": None}
    tasks = [
        {"kind": one.kind, "function": attribute, "keys": one.keys, "line": one.line}
        for attribute, one in found.values()
    ]
    return {"file": file, "is_package": hasattr(module, "__path__"), "tasks": tasks}


def answer(answers: int, value: object) -> None:
    line = json.dumps(value, ensure_ascii=False, default=repr).encode("utf-8", "backslashreplace")
    os.write(answers, line + b"\n")  # whole, whatever happens next: a pipe takes it at once


def load_package(folder: str) -> None:
    """Makes `import musterd` work in any interpreter, but nothing beside it."""
    place = os.path.join(folder, "__init__.py")  # noqa: PTH118 - pathlib is not loaded for this
    spec = importlib.util.spec_from_file_location(
        "musterd", place, submodule_search_locations=[folder]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"{folder} is no package")
    sys.modules["musterd"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["musterd"])


def why_broken(module: str, function: str, isolation: str, looked: str) -> "str | None":
    try:
        loaded = importlib.import_module(module)
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - it is the user's
        is_missing = isinstance(error, ModuleNotFoundError) and not users_frames(error)
        where = f" ({looked})" if is_missing else ""
        return cut(f"cannot import {module}: {error_text(error)}{where}")
    try:
        found = getattr(loaded, function)
    except Exception:  # noqa: BLE001 - a module may have a __getattr__ of its own
        return cut(no_function(loaded, module, function))
    problem = why_not_callable(found, isolation)
    return cut(f"{module}:{function} {problem}") if problem else None


def why_not_callable(found: object, isolation: str) -> str:
    """Why the function cannot be a handler in this isolation; "" if it can."""
    if not callable(found):
        return f"is no function but of type {type(found).__name__}"
    looks = (found, type(found).__call__)  # an object may be called by a method
    if any(map(inspect.isgeneratorfunction, looks)) or any(map(inspect.isasyncgenfunction, looks)):
        return "is a generator: a handler returns its result, it does not yield"
    is_async = any(map(inspect.iscoroutinefunction, looks))
    if isolation == "task" and not is_async:
        return 'is a plain def, isolation "task" needs an async def ("thread" takes a def)'
    if isolation == "thread" and is_async:
        return 'is an async def, isolation "thread" needs a def ("task" takes an async def)'
    return "" if takes_a_job(found) else "does not take one argument, the job"


def takes_a_job(found: object) -> bool:
    try:
        signature = inspect.signature(found)  # type: ignore[arg-type]  # it is callable
    except (TypeError, ValueError):
        return True  # written in C, with no signature to look at
    try:
        signature.bind(None)
    except TypeError:
        return False
    return True


def no_function(loaded: object, module: str, function: str) -> str:
    names = [name for name in dir(loaded) if callable(getattr(loaded, name, None))]
    close = difflib.get_close_matches(function, names, n=1)
    hint = f" - did you mean {module}:{close[0]}?" if close else ""
    return f"{module} ({getattr(loaded, '__file__', 'built in')}) has no {function}{hint}"


def error_text(error: BaseException) -> str:
    """The error, and where in the user's code it occurred."""
    said = " ".join(str(error).split())
    name = type(error).__name__
    own = users_frames(error)
    if isinstance(error, SyntaxError) and error.filename:
        return f"{name}: {error.msg} ({error.filename}:{error.lineno})"
    place = f" ({own[-1].filename}:{own[-1].lineno})" if own else ""
    return f"{name}: {said}{place}" if said else f"{name}{place}"


def users_frames(error: BaseException) -> "list[traceback.FrameSummary]":
    tasks = sys.modules.get("musterd.tasks")
    ours = (__file__, importlib.__file__, getattr(tasks, "__file__", None))
    frames = traceback.extract_tb(error.__traceback__)
    return [each for each in frames if each.filename not in ours and each.filename[:1] != "<"]


def cut(reason: str) -> str:
    if len(reason) <= REASON_LENGTH_MAX:
        return reason
    return reason[: REASON_LENGTH_MAX - 3] + "..."


if __name__ == "__main__":
    main()
