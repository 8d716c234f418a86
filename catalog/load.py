"""The catalog from its files, with every fault of every file found in one run."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from musterd.catalog.kinds import Catalog, KindDefaults
from musterd.catalog.reading import kind_tables, read_kinds
from musterd.config.document import Document, read_document
from musterd.config.faults import ConfigError, Fault
from musterd.config.settings import Retry, Settings
from musterd.config.toml_text import key_text

SHIPPED_FILE = Path(__file__).with_name("default.toml")


def catalog_of(settings: Settings) -> Catalog:
    """Reads the catalog that the settings name; raises ConfigError with all faults."""
    grace_seconds, python_path = settings.executor.grace_seconds, settings.catalog.python_path
    policy = settings.webhooks.policy
    defaults = KindDefaults(settings.retry, grace_seconds, python_path, policy)
    return load_catalog(settings.catalog.paths, defaults)


def load_catalog(paths: Iterable[Path], defaults: KindDefaults | Retry) -> Catalog:
    """Reads the shipped catalog and the user's files, whose kinds replace shipped ones.

    A path is a file, or a folder whose `*.toml` are read in the order of their names. Raises
    ConfigError with all faults; the same kind twice among the user's files is one.
    """
    if isinstance(defaults, Retry):
        defaults = KindDefaults(defaults)
    faults: list[Fault] = []
    users = list(_documents(paths, faults))
    documents = [read_document(SHIPPED_FILE), *users]
    kinds = [kind for each in documents for kind in read_kinds(each, defaults, faults)]
    faults.extend(_doubles(users))
    if faults:
        raise ConfigError(faults)
    return Catalog(kinds)


def _documents(paths: Iterable[Path], faults: list[Fault]) -> Iterator[Document]:
    for path in paths:
        for file in _files(path, faults):
            try:
                yield read_document(file)
            except ConfigError as error:
                faults.extend(error.faults)


def _files(path: Path, faults: list[Fault]) -> list[Path]:
    try:
        if not path.is_dir():
            return [path]
        found = sorted(each for each in path.iterdir() if each.suffix == ".toml")
    except OSError as error:
        faults.append(Fault(str(path), found=f"cannot be read: {error.strerror}"))
        return []
    return [file for file in found if not file.name.startswith(".")]  # editors leave such


def _doubles(documents: Iterable[Document]) -> Iterator[Fault]:
    first_places: dict[str, str] = {}
    for document in documents:
        for name in kind_tables(document):
            path = ("kinds", name)
            if name not in first_places:
                first_places[name] = document.origin(path)
                continue
            hint = f"the first is at {first_places[name]}"
            line = document.line(path)
            yield Fault(
                document.source, line, key_text(path), "a second kind of this name", "", hint
            )
