"""What a node says of itself in the store: values, the JSON of the kinds it knows, and what the
nodes of one store do not agree on. Pure.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, cast
from uuid import UUID

import attrs

from musterd.store.phases import KindRule
from musterd.store.words import cut, one_line, plural, time_text

HEARTBEAT_SECONDS = 5.0  # a node says at least this often that it lives
RESTING_SECONDS = 30.0  # at the stores of tenants that have nothing to do
PAUSES_OF_THE_DEAD = 3  # a node that has been silent for so many of its pauses counts as dead
LIVE_SECONDS = PAUSES_OF_THE_DEAD * HEARTBEAT_SECONDS  # for most
YOUNG_SECONDS = PAUSES_OF_THE_DEAD * RESTING_SECONDS  # an older sign of life is nobody's
FORGET_SECONDS = 3600.0  # and is taken off the list after so long
KINDS_MAX = 500  # a node names no more
REASON_LENGTH_MAX = 200


@attrs.frozen
class KnownKind:
    """One kind as a node knows it. The times are those of recent runs on that node."""

    broken: str | None = None  # why it can't run there
    max_running: int | None = None
    runs: int = 0  # measured so far; 0 = the times mean nothing
    mean_seconds: float = 0.0
    deviation_seconds: float = 0.0


@attrs.frozen
class Kinds:
    """The kinds that a node knows, and how many jobs of any kind it lets run at once, on all nodes;
    None = any number. `whole` is False where it knows more than it named.
    """

    by_name: Mapping[str, KnownKind]
    whole: bool = True
    max_running: int | None = None


NO_KINDS: Mapping[str, KnownKind] = {}


@attrs.frozen
class Beat:
    """A node's sign of life. `id` is another at each start; `kinds` None = as last said.

    `config_generation` counts the configurations it has had since its start, `config_hash` stands
    for what nodes of one store must agree on; `load` is its machine's, for each core.
    """

    id: UUID
    name: str
    version: str
    up_seconds: float
    phase: str
    idle: int
    busy: int
    retiring: int
    default_count: int
    max_count: int
    kinds: str | None = None  # JSON text, of `kinds_text`
    pause_seconds: float = HEARTBEAT_SECONDS  # the next one comes no later than this
    config_generation: int | None = None
    config_hash: str | None = None
    load: float | None = None  # None = the machine does not say
    wish: int | None = None  # workers that it wishes for, before limits; None = not yet known


@attrs.frozen
class NodeRecord:
    """A node as the store has it. `silent_seconds` is the age of its last sign of life; what it
    has not said is None.
    """

    id: UUID
    name: str
    version: str
    started_at: datetime
    heartbeat_at: datetime
    phase: str
    idle: int
    busy: int
    retiring: int
    default_count: int
    max_count: int
    kinds: Kinds | None  # None = it has not yet said
    silent_seconds: float
    pause_seconds: float = HEARTBEAT_SECONDS
    config_generation: int | None = None
    config_hash: str | None = None
    load: float | None = None
    wish: int | None = None

    @property
    def is_live(self) -> bool:
        return self.silent_seconds < PAUSES_OF_THE_DEAD * self.pause_seconds

    @property
    def claims(self) -> bool:
        """Whether it lives and takes jobs."""
        return self.is_live and self.phase == "running"

    @property
    def crew(self) -> int:
        """Its workers, without those that are leaving."""
        return self.idle + self.busy

    @property
    def named(self) -> Mapping[str, KnownKind]:
        """The kinds that it has named."""
        return NO_KINDS if self.kinds is None else self.kinds.by_name

    def lacks(self, kind: str) -> bool:
        """Whether it surely does not know this kind."""
        return self.kinds is not None and self.kinds.whole and kind not in self.kinds.by_name


class Nodes(Protocol):
    """Which nodes there are, and what their kinds are. Errors as for `Engine`."""

    async def beat(self, beat: Beat) -> None:
        """Notes that a node lives, and how it is. Forgets nodes that have been silent for long."""
        ...

    async def leave(self, node_id: UUID) -> None:
        """Forgets a node that ends as it should."""
        ...

    async def all(self) -> list[NodeRecord]:
        """The nodes that live, and those that died without leaving, until they are forgotten; the
        oldest first, at most 1,000.
        """
        ...

    async def declare_kinds(self, rules: Mapping[str, KindRule], tenant: str | None = None) -> None:
        """Says what these kinds are, in place of what was said of them before; one that has no rule
        to speak of is forgotten. The kind "" is all kinds. `tenant` is what the nodes call the
        tenant whose store it is. Writes nothing where that is known.
        """
        ...


def kinds_text(kinds: Mapping[str, KnownKind], max_running: int | None = None) -> str:
    """The JSON text of a beat. Names at most `KINDS_MAX`, the first by name."""
    names = sorted(kinds)[:KINDS_MAX]
    named = {name: _object(kinds[name]) for name in names}
    whole: dict[str, object] = {"whole": len(named) == len(kinds), "kinds": named}
    if max_running is not None:
        whole["max_running"] = max_running
    return json.dumps(whole, sort_keys=True)


def read_kinds(text: str | None) -> Kinds | None:
    """Reads what `kinds_text` wrote. None also for what is no such text: a newer node's, maybe."""
    try:
        found = None if text is None else json.loads(text)
        if found is None:
            return None
        named = cast("dict[str, dict[str, Any]]", found["kinds"])
        by_name = {name: _known_kind(values) for name, values in named.items()}
        most = found.get("max_running")
        return Kinds(by_name, bool(found["whole"]), None if most is None else int(most))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def node_object(node: NodeRecord) -> dict[str, object]:
    """The node as programs see it."""
    return {
        "id": str(node.id),
        "node": node.name,
        "version": node.version,
        "live": node.is_live,
        "phase": node.phase,
        "started_at": time_text(node.started_at),
        "heartbeat_at": time_text(node.heartbeat_at),
        "silent_seconds": round(node.silent_seconds, 3),
        "idle": node.idle,
        "busy": node.busy,
        "retiring": node.retiring,
        "default_count": node.default_count,
        "max_count": node.max_count,
        "config_generation": node.config_generation,
        "config_hash": node.config_hash,
        "load": None if node.load is None else round(node.load, 2),
        "wish": node.wish,
        "kinds": {name: attrs.asdict(known) for name, known in node.named.items()},
        "kinds_whole": node.kinds is not None and node.kinds.whole,
    }


def _object(known: KnownKind) -> dict[str, object]:
    """Without what is not there, and times to three digits: the text changes seldom."""
    whole: dict[str, object] = {}
    if known.broken is not None:
        whole["broken"] = known.broken[:REASON_LENGTH_MAX].replace("\0", "")
    if known.max_running is not None:
        whole["max_running"] = known.max_running
    if known.runs:
        whole["runs"] = known.runs
        whole["mean_seconds"] = float(f"{known.mean_seconds:.3g}")
        whole["deviation_seconds"] = float(f"{known.deviation_seconds:.2g}")
    return whole


def _known_kind(values: dict[str, Any]) -> KnownKind:
    broken, most = values.get("broken"), values.get("max_running")
    return KnownKind(
        None if broken is None else str(broken),
        None if most is None else int(most),
        int(values.get("runs", 0)),
        float(values.get("mean_seconds", 0.0)),
        float(values.get("deviation_seconds", 0.0)),
    )


GROUPS_MAX = 5  # are told of, the largest first
NAMES_MAX = 5  # of each
WORD_WIDTH = 80

Groups = Mapping[str, Sequence[NodeRecord]]


def warnings(nodes: Iterable[NodeRecord]) -> list[str]:
    """One line for each thing that the live nodes differ in, with who has what. What a node has
    not said counts as nothing. Configurations are compared within one version: another version may
    make another fingerprint of the same files.
    """
    live = [node for node in nodes if node.is_live]
    versions = _grouped(live, lambda node: node.version)
    found: list[str] = []
    if len(versions) > 1:
        found.append(f"the nodes run different versions: {_who_has_what(versions)}")
    for version, same in sorted(versions.items()):
        configurations = _grouped(same, lambda node: node.config_hash)
        if len(configurations) > 1:
            which = "the nodes" if len(versions) == 1 else f"the nodes of version {_word(version)}"
            what = _who_has_what(configurations)
            found.append(f"{which} have different configurations: {what}")
    return found


def _grouped(nodes: Iterable[NodeRecord], what: Callable[[NodeRecord], str | None]) -> Groups:
    groups: dict[str, list[NodeRecord]] = defaultdict(list)
    for node in nodes:
        said = what(node)
        if said is not None:
            groups[said].append(node)
    return groups


def _who_has_what(groups: Groups) -> str:
    """`1.2 on a, b; 1.3 on c`: the same words for the same nodes, in whatever order they come."""
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    said = [f"{_word(what)} on {_names(nodes)}" for what, nodes in ordered[:GROUPS_MAX]]
    left = sum(len(nodes) for _, nodes in ordered[GROUPS_MAX:])
    return "; ".join([*said, f"others on {plural(left, 'node')}"] if left else said)


def _names(nodes: Sequence[NodeRecord]) -> str:
    names = sorted(_word(node.name) for node in nodes)
    left = len(names) - NAMES_MAX
    return ", ".join(names[:NAMES_MAX]) + (f" and {left} more" if left > 0 else "")


def _word(text: str) -> str:
    return cut(one_line(text), WORD_WIDTH)
