"""The phases of a kind: `[[kinds.NAME.phases]]`, made into a pipeline."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from attrs import evolve, frozen
from cattrs import Converter

from musterd.catalog.choosing import faults_of_keys, make_behaviour
from musterd.catalog.inner import Inner, read_inner, table_at
from musterd.catalog.kinds import Phase, Pipeline, WorkKind
from musterd.catalog.tables import PhaseTable
from musterd.config.document import Document
from musterd.config.faults import Fault, Unfit
from musterd.config.strict import Reading, misfit, read_table
from musterd.config.toml_text import key_text

KeyPath: TypeAlias = tuple[str | int, ...]


@frozen
class PhasesRead:
    """What the phases of the kind at `path` hold, in order, and their faults."""

    path: KeyPath
    values: tuple[tuple[Mapping[str, Any], Inner], ...]
    faults: tuple[Fault, ...]


def read_phases(
    document: Document, path: KeyPath, table: Reading, converter: Converter
) -> PhasesRead:
    """Reads them all, if the kind's own table has a list of them."""
    phases = table.values.get("phases")
    places = [(*path, "phases", number) for number in range(phases.count if phases else 0)]
    tables = [read_table(document, place, PhaseTable, converter) for place in places]
    inners = [read_inner(document, place, None, converter) for place in places]
    faults: list[Fault] = []
    for place, one, inner in zip(places, tables, inners, strict=True):
        faults += _missing_name(document, place)
        faults += [*faults_of_keys(document, place, PhaseTable, one.faults), *inner.faults]
    faults += _double_names(document, places)
    values = [one.values for one in tables]
    return PhasesRead(path, tuple(zip(values, inners, strict=True)), tuple(faults))


def make_pipeline(
    document: Document, kind: WorkKind, phases: PhasesRead, search_path: tuple[Path, ...]
) -> WorkKind:
    """Gives the kind with its phases, none of which has a fault."""
    made: list[Phase] = []
    for number, (values, inner) in enumerate(phases.values):
        table = PhaseTable(**values)
        own = _own_rules(kind, table)
        own["source"] = document.origin((*phases.path, "phases", number))
        own["behaviour"] = make_behaviour(table, inner, search_path)
        part = evolve(kind, phase=table.name, **own)
        made.append(Phase(table.name, part, table.input))
    return evolve(kind, behaviour=Pipeline(tuple(made)))


def _own_rules(kind: WorkKind, table: PhaseTable) -> dict[str, Any]:
    """What a phase leaves out is as its kind has it, but for the time limit: the kind's is for all
    of its phases together.
    """
    own: dict[str, Any] = {"time_limit_seconds": table.time_limit_seconds}
    for name in ("grace_seconds", "retryable", "retry_on"):
        value = getattr(table, name)
        own[name] = getattr(kind, name) if value is None else value
    return own


def _missing_name(document: Document, place: KeyPath) -> Iterator[Fault]:
    keys = table_at(document, place)
    if keys is not None and "name" not in keys:
        yield misfit(document, place, "no name", Unfit("the name of the phase"))


def _double_names(document: Document, places: list[KeyPath]) -> Iterator[Fault]:
    first: dict[object, KeyPath] = {}
    for place in places:
        path = (*place, "name")
        name = (table_at(document, place) or {}).get("name")
        if not isinstance(name, str):
            continue
        if name in first:
            hint = f"the first is at {document.origin(first[name])}"
            found = "a second phase of this name"
            yield Fault(document.source, document.line(path), key_text(path), found, hint=hint)
        first.setdefault(name, path)
