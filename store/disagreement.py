"""What nodes of one store do not agree on, and should: pure.

Configurations are compared within one version: another version may make another fingerprint of the
same files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from musterd.store.nodes import NodeRecord
from musterd.store.words import cut, one_line, plural

GROUPS_MAX = 5  # are told of, the largest first
NAMES_MAX = 5  # of each
WORD_WIDTH = 80

Groups = Mapping[str, Sequence[NodeRecord]]


def warnings(nodes: Iterable[NodeRecord]) -> list[str]:
    """One line for each thing that the live nodes differ in, with who has what. What a node has
    not said counts as nothing.
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
    told = [f"{_word(what)} on {_names(nodes)}" for what, nodes in ordered[:GROUPS_MAX]]
    left = sum(len(nodes) for _, nodes in ordered[GROUPS_MAX:])
    return "; ".join([*told, f"others on {plural(left, 'node')}"] if left else told)


def _names(nodes: Sequence[NodeRecord]) -> str:
    names = sorted(_word(node.name) for node in nodes)
    left = len(names) - NAMES_MAX
    return ", ".join(names[:NAMES_MAX]) + (f" and {left} more" if left > 0 else "")


def _word(text: str) -> str:
    return cut(one_line(text), WORD_WIDTH)
