"""Drawings that many readers share are made once. Pure, but for what it remembers."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

V = TypeVar("V")
P = ParamSpec("P")
T = TypeVar("T")


def drawn_once(draw: Callable[Concatenate[V, P], T]) -> Callable[Concatenate[V, P], T]:
    """Keeps what was drawn of a value, with the same further arguments, as long as the value itself
    is kept. Values are told apart by identity: two equal ones are drawn each.
    """
    drawn: WeakKeyDictionary[V, dict[object, T]] = WeakKeyDictionary()

    @wraps(draw)
    def once(value: V, /, *args: P.args, **named: P.kwargs) -> T:
        of_value = drawn.setdefault(value, {})
        key = (args, tuple(named.items()))
        if key not in of_value:
            of_value[key] = draw(value, *args, **named)
        return of_value[key]

    return once
