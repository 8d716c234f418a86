"""Is it healthy? What follows from what the store and the daemon here have said. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from musterd.console.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from musterd.manager.node.status import Decision


@attrs.frozen
class Answers:
    """What was said about one tenant. `error`: the store did not answer. `node`: what the daemon
    says of itself; None = it is silent, and `silence` says where it was asked. `listens`: one is
    expected to answer.
    """

    tenant: str
    where: str
    error: str | None
    node: Mapping[str, Any] | None
    silence: str
    listens: bool


def judge(said: Answers) -> tuple[Exit, str]:
    """Gives the exit code, and one line that says why."""
    if said.error is not None:
        return Exit.UNAVAILABLE, f"the store is not available: {said.error}"
    if said.node is not None:
        return _judge_node(said, said.node)
    if said.listens:
        return Exit.UNSUCCESSFUL, f"{said.silence}; start one with `musterd run`"
    return Exit.DONE, f"the store answers; {said.silence}"


def served(node: Mapping[str, Any] | None, tenant: str, where: str) -> dict[str, Any] | None:
    """What the node says of a tenant; None = it does not serve it, or works elsewhere."""
    seen = None if node is None else _named(node["node"], tenant)
    return seen if seen is not None and seen["store"] == where else None


def decision_of(value: Mapping[str, Any] | None) -> Decision | None:
    """Reads a decision that a daemon, maybe of another version, has told; None for what is none."""
    from musterd.manager.node.status import Decision

    if value is None:
        return None
    known: dict[str, Any] = {
        name: value[name] for name in attrs.fields_dict(Decision) if name in value
    }
    known["at"] = 0.0  # a text in what was told
    try:
        return Decision(**known)
    except TypeError:
        return None


def _judge_node(said: Answers, node: Mapping[str, Any]) -> tuple[Exit, str]:
    found = _named(node["node"], said.tenant)
    if found is None:
        return Exit.UNSUCCESSFUL, f"the daemon that answers does not serve tenant {said.tenant}"
    if found["store"] != said.where:
        other = f"the daemon that answers works on another store ({found['store']})"
        return Exit.UNSUCCESSFUL, f"no daemon works here: {other}"
    if not node["healthy"]:
        return Exit.UNSUCCESSFUL, node["verdict"]
    return Exit.DONE, node["verdict"]


def _named(node: Mapping[str, Any], tenant: str) -> dict[str, Any] | None:
    return next((one for one in node["tenants"] if one["name"] == tenant), None)
