"""What it means for a job that as many run in the store as its nodes let run at once. Pure."""

from __future__ import annotations

from collections import Counter

from musterd.store.estimate import bound_of, free_workers
from musterd.store.reasons import NAMED_MAX, Code, Reason
from musterd.store.why_facts import WhyFacts
from musterd.store.words import count_text, one_line, plural


def room_of(seen: WhyFacts) -> int | None:
    """How many more jobs may run now; None = there is no bound."""
    most = bound_of(seen.nodes)
    return None if most is None else max(0, most - seen.leased_total)


def store_limit(seen: WhyFacts) -> Reason | None:
    """Says so if the bound on all jobs is what keeps this one, rather than want of workers."""
    most, room = bound_of(seen.nodes), room_of(seen)
    if most is None or room is None:
        return None
    before = sum(seen.line.before.values())
    idle = free_workers([node for node in seen.nodes if node.claims], seen.leased)
    if room and (room > before or room >= idle):
        return None
    by_node = Counter(one_line(one.node) for one in seen.leased).most_common()
    shown = by_node[:NAMED_MAX]
    hands = ", ".join(f"{count_text(number)} on {node}" for node, number in shown)
    hands += ", …" if len(by_node) > NAMED_MAX else ""
    rest = f", and {plural(before, 'job')} before it" if before else ""
    return Reason(
        Code.STORE_LIMIT,
        f"of all jobs {count_text(most)} may run at once:"
        f" {count_text(seen.leased_total)} are in hand{f' ({hands})' if hands else ''}{rest}",
        who=", ".join(node for node, _ in shown) or None,
        what={
            "limit": most,
            "in_hand": seen.leased_total,
            "before": before,
            "nodes": dict(shown),
        },
        do="wait, or raise limits.max_running",
    )
