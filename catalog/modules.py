"""The kinds of `[catalog] modules`: those of the functions with `@task` in them.

Modules are imported by a child with a time limit, never here: they may print, exit, crash or hang.
What is found is read as a catalog file is, so it has the same rules, and its faults have lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from musterd.catalog.checking import Surroundings, ask, surroundings_of, whom_to_ask, why_unusable
from musterd.config.children import children_environment, secrets_of
from musterd.config.document import Document, KeyPath
from musterd.config.faults import Fault
from musterd.config.load import module_folders
from musterd.config.settings import Settings
from musterd.config.toml_text import key_text

KEY = "catalog.modules"


def documents_of_modules(
    settings: Settings, environ: Mapping[str, str], faults: list[Fault]
) -> list[Document]:
    """One for each module; appends the faults of those that cannot be imported."""
    modules = settings.catalog.modules
    if not modules:
        return []
    theirs = children_environment(environ, secrets_of(settings))
    around = surroundings_of(settings, environ, theirs)
    found = _asked(modules, module_folders(settings.catalog, environ), around)
    documents: list[Document] = []
    for module, said in zip(modules, found, strict=True):
        if "fault" in said:
            source = said.get("file") or module
            faults.append(Fault(source, said.get("line"), KEY, said["fault"]))
        else:
            documents.append(_document(module, said, faults))
    return documents


def _asked(
    modules: Sequence[str], folders: tuple[Path, ...], around: Surroundings
) -> list[Mapping[str, Any]]:
    """What was said of each. One child imports them all; after one that ends it or takes too long,
    another child imports the rest.
    """
    asked = whom_to_ask(True, folders, around)
    if isinstance(asked, str):
        return [{"fault": asked}] * len(modules)
    said: list[Mapping[str, Any]] = []
    while rest := modules[len(said) :]:
        answers = ask(asked, modules=rest)
        if problem := why_unusable(asked, answers):
            return [*said, *([{"fault": problem}] * len(rest))]
        said += answers.said
        if len(answers.said) < len(rest):
            culprit = rest[len(answers.said)]
            said.append({"fault": f"cannot import {culprit}: the interpreter {answers.ending}"})
    return said


def _document(module: str, said: Mapping[str, Any], faults: list[Fault]) -> Document:
    file = Path(said["file"] or module)
    kinds: dict[str, object] = {}
    lines: dict[KeyPath, int] = {}
    for one in said["tasks"]:
        name, function, line = one["kind"], one["function"], one["line"]
        if name in kinds:
            hint = f"the first is at {file}:{lines[('kinds', name)]}"
            key = key_text(("kinds", name))
            faults.append(Fault(str(file), line, key, "a second kind of this name", hint=hint))
            continue
        kinds[name] = {**one["keys"], "python": f"{module}:{function}"}
        lines |= {("kinds", name): line, ("kinds", name, "python"): line}
        lines |= {("kinds", name, key): line for key in one["keys"]}
    return Document(str(file), {"kinds": kinds}, _root(file, module, said), lines)


def _root(file: Path, module: str, said: Mapping[str, Any]) -> Path:
    """The folder from which the module was imported: there its jobs look first, too."""
    up = module.count(".") + (1 if said["is_package"] else 0)
    return file.parents[min(up, len(file.parents) - 1)]
