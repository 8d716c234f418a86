"""Strict structuring: a value fits its key's type exactly, or is refused with a reason."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeAlias, Union, cast, get_args, get_origin

import attrs
from attrs import AttrsInstance, frozen
from cattrs import Converter

from musterd.config.document import Document, KeyPath
from musterd.config.faults import Fault, Unfit, did_you_mean, either
from musterd.config.secrets import mask_url
from musterd.config.toml_text import key_text, short_text, sort_of, toml_text

Key: TypeAlias = "attrs.Attribute[object]"

_BOOLEANS = ("true", "false")
_TOML_NUMBER = re.compile(r"[+-]?(0|[1-9][0-9_]*)(\.[0-9]+)?")


@frozen
class Reading:
    """A table's valid values by key, and the faults of the others."""

    values: Mapping[str, Any]
    faults: tuple[Fault, ...]


def read_by(read: Callable[[Any], object], **more: Any) -> Any:
    """A key with a reading function of its own, which raises Unfit."""
    return attrs.field(metadata={"read": read}, **more)


def read_table(document: Document, path: KeyPath, shape: type[AttrsInstance]) -> Reading:
    """Reads the table at `path` into `shape`; no fault hides another. Missing keys are fine."""
    table = document.at(path)
    if not isinstance(table, dict):
        return Reading({}, (_not_a_table(document, path, table),))
    keys = written_keys(shape)
    values: dict[str, Any] = {}
    faults: list[Fault] = []
    for name, raw in cast(dict[str, object], table).items():
        inner = _shape_within(keys[name], raw) if name in keys else None
        if inner is not None:
            is_list = _is_list(_unless_none(keys[name].type))
            read_all = _read_tables if is_list else _read_inner
            read = read_all(document, (*path, name), inner)
            values.update(read.values)
            faults.extend(read.faults)
            continue
        try:
            values[keys[name].name] = _fit(raw, keys[name])
        except KeyError:
            faults.append(unknown_key(document, (*path, name), tuple(keys)))
        except Unfit as unfit:
            faults.append(misfit(document, (*path, name), describe(raw, keys[name]), unfit))
    return Reading(values, tuple(faults))


def written_keys(shape: type[AttrsInstance]) -> Mapping[str, Key]:
    """By the names that people write: one that Python keeps for itself has an underscore here."""
    return {name.rstrip("_"): key for name, key in attrs.fields_dict(shape).items()}


def _read_tables(document: Document, path: KeyPath, shape: type[AttrsInstance]) -> Reading:
    """Reads a list of tables, each of which must have all keys without a default. With a fault
    there is no list.
    """
    made: list[AttrsInstance] = []
    faults: list[Fault] = []
    for number, _ in enumerate(cast(Sequence[object], document.at(path))):
        here = (*path, number)
        read = read_table(document, here, shape)
        faults.extend(read.faults)
        missing = [
            name
            for name, key in written_keys(shape).items()
            if key.name not in read.values and key.default is attrs.NOTHING
        ]
        at_fault = {fault.key for fault in read.faults}
        faults.extend(
            misfit(document, here, f"no {name}", Unfit("one"))
            for name in missing
            if at_fault.isdisjoint({key_text(here), key_text((*here, name))})
        )
        if not missing:
            made.append(cast(Callable[..., AttrsInstance], shape)(**read.values))
    return Reading({} if faults else {str(path[-1]): tuple(made)}, tuple(faults))


def _read_inner(document: Document, path: KeyPath, shape: type[AttrsInstance]) -> Reading:
    """Reads a table whose keys are all optional. With a fault there is no table."""
    read = read_table(document, path, shape)
    made = cast(Callable[..., AttrsInstance], shape)
    values = {} if read.faults else {str(path[-1]): made(**read.values)}
    return Reading(values, read.faults)


def _shape_within(key: Key, raw: object) -> type[AttrsInstance] | None:
    """The class of the inner table that the key wants, or of each table in its list."""
    kind = _unless_none(key.type)
    if key.metadata.get("is_table"):
        return cast(type[AttrsInstance], kind)
    elements = get_args(kind) if _is_list(kind) and isinstance(raw, list) else ()
    return elements[0] if elements and attrs.has(elements[0]) else None


def _unless_none(kind: object) -> object:
    """The type of a key that need not be set."""
    if get_origin(cast(type[object], kind)) not in (Union, UnionType):
        return kind
    return next(one for one in get_args(kind) if one is not NoneType)


@frozen
class NamedTables:
    """The tables `[name.NAME]`. `read_one` returns the readings of one of them with their paths."""

    name: str
    fits: re.Pattern[str]  # the names that they may have
    wanted: str
    read_one: Callable[[Document, str], Iterable[tuple[tuple[str, ...], Reading]]]

    def read(self, document: Document) -> tuple[list[str], Reading]:
        """The names in this document, and the values by their full dotted keys."""
        tables = document.data[self.name]
        if not isinstance(tables, dict):
            return [], Reading({}, (self._no_table(document, (self.name,), tables),))
        names: list[str] = []
        values: dict[str, Any] = {}
        faults: list[Fault] = []
        for name, table in cast(dict[str, object], tables).items():
            path = (self.name, name)
            if not self.fits.fullmatch(name):
                faults.append(misfit(document, path, "a name", Unfit(self.wanted)))
            elif not isinstance(table, dict):
                faults.append(self._no_table(document, path, table))
            else:
                names.append(name)
                for place, reading in self.read_one(document, name):
                    values |= {
                        ".".join((*place, key)): each for key, each in reading.values.items()
                    }
                    faults += reading.faults
        return names, Reading(values, tuple(faults))

    def _no_table(self, document: Document, path: KeyPath, found: object) -> Fault:
        hint = f"write [{self.name}.NAME] above its keys"
        return misfit(document, path, sort_of(found), Unfit("a table", hint))


def unknown_key(document: Document, path: KeyPath, known: tuple[str, ...]) -> Fault:
    """The fault of an unknown key, with the nearest known one."""
    hint = did_you_mean(str(path[-1]), known) or f"known: {', '.join(known)}"
    return Fault(document.source, document.line(path), key_text(path), "unknown key", hint=hint)


def misfit(document: Document, path: KeyPath, found: str, unfit: Unfit) -> Fault:
    """The fault of a value that does not fit its key."""
    line = document.line(path)
    return Fault(document.source, line, key_text(path), found, unfit.wanted, unfit.hint)


def describe(raw: object, key: Key) -> str:
    """What was found; secrets are masked."""
    mask = cast(Callable[[str], str] | None, key.metadata.get("mask"))
    if isinstance(raw, str):  # a URL may have strayed into any key
        return short_text(mask(raw) if mask else mask_url(raw) if "://" in raw else raw)
    return sort_of(raw) if key.type is str or mask else short_text(raw)


def check(value: object, key: Key) -> None:
    """Runs the key's own rule. Raises Unfit."""
    if key.validator is not None:
        key.validator(None, key, value)


def _fit(raw: object, key: Key) -> object:
    read = cast(Callable[[object], object] | None, key.metadata.get("read"))
    value = read(raw) if read else _CONVERTER.structure(raw, cast(type[object], key.type))
    check(value, key)
    return value


def _not_a_table(document: Document, path: KeyPath, found: object) -> Fault:
    is_element = isinstance(path[-1], int)
    header = f"[[{key_text(path[:-1])}]]" if is_element else f"[{key_text(path)}]"
    unfit = Unfit("a table", f"write {header} above its keys")
    return misfit(document, path, sort_of(found), unfit)


def _is_choice(kind: object) -> bool:
    return get_origin(cast(type[object], kind)) is cast(object, Literal)


def _is_list(kind: object) -> bool:
    return get_origin(cast(type[object], kind)) is tuple


def _whole_number(raw: object, _kind: object) -> int:
    if isinstance(raw, int) and not isinstance(raw, bool):
        return raw
    raise Unfit("a whole number", _quotes_hint(raw))


def _number(raw: object, _kind: object) -> float:
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        try:
            number = float(raw)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
        raise Unfit("a finite number")
    raise Unfit("a number", _quotes_hint(raw))


def _boolean(raw: object, _kind: object) -> bool:
    if isinstance(raw, bool):
        return raw
    is_shouted = isinstance(raw, str) and raw not in _BOOLEANS and raw.lower() in _BOOLEANS
    raise Unfit("true or false", "write it in lower case" if is_shouted else _quotes_hint(raw))


def _string(raw: object, _kind: object) -> str:
    if isinstance(raw, str):
        return raw
    raise Unfit("a string", "write it in quotes")


def _path(raw: object, _kind: object) -> Path:
    if isinstance(raw, str) and raw and "\0" not in raw:
        return Path(raw)
    raise Unfit("a path")


def _choice(raw: object, kind: object) -> object:
    choices = cast(tuple[str, ...], get_args(kind))
    if isinstance(raw, str) and raw in choices:
        return raw
    hint = did_you_mean(raw, choices) if isinstance(raw, str) else ""
    raise Unfit(either(map(toml_text, choices)), hint)


def _list_of(kind: object) -> Callable[[object, object], object]:
    element = cast(type[object], get_args(kind)[0])

    def structure(raw: object, _kind: object) -> tuple[object, ...]:
        if not isinstance(raw, list):
            hint = f"write [{short_text(raw)}]" if isinstance(raw, str) else ""
            raise Unfit("a list", hint)
        elements = cast(list[object], raw)
        try:
            return tuple(_CONVERTER.structure(each, element) for each in elements)
        except Unfit as unfit:
            raise Unfit(f"a list, each element {unfit.wanted}", unfit.hint) from None

    return structure


def _quotes_hint(raw: object) -> str:
    if isinstance(raw, str) and (raw in _BOOLEANS or _TOML_NUMBER.fullmatch(raw)):
        return "write it without the quotes"
    return ""


def _strict_converter() -> Converter:
    """A converter that casts nothing; the plain one reads "250" as 250, 3.7 as 3 and "false" as
    True. A whole number is accepted for a float.
    """
    converter = Converter(detailed_validation=False)
    hooks = (
        (int, _whole_number),
        (float, _number),
        (bool, _boolean),
        (str, _string),
        (Path, _path),
    )
    for kind, hook in hooks:
        converter.register_structure_hook(kind, hook)
    converter.register_structure_hook_func(_is_choice, _choice)
    converter.register_structure_hook_factory(_is_list, _list_of)
    return converter


_CONVERTER = _strict_converter()
