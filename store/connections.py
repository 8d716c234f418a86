"""How the connections to a store are used, at one moment."""

from __future__ import annotations

from typing import NamedTuple


class ConnectionUse(NamedTuple):
    """`busy` ones serve a call, or are being opened for one; `waiting` calls have none yet."""

    idle: int = 0
    busy: int = 0
    most: int = 0
    waiting: int = 0

    def plus(self, other: ConnectionUse) -> ConnectionUse:
        return ConnectionUse(*(mine + its for mine, its in zip(self, other, strict=True)))
