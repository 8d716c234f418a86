"""The front page: one small page that the server writes whole.

No script, nothing loaded from elsewhere.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape

from musterd.manager.objects import decision_text, verdict
from musterd.manager.view import Decision, NodeStatus, WorkerView
from musterd.store.job import Counts, JobState
from musterd.store.words import count_text, duration_text

REFRESH_SECONDS = 2
DECISIONS_SHOWN = 12
LINKS = " · ".join(
    f"<a href=/{name}>{name}</a>" for name in ("metrics", "status", "workers", "scaling")
)

STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; margin: 0; } h2 { font-size: 1rem; margin: 1.6rem 0 .4rem; }
.well::before, .ill::before { content: "\\25cf "; }
.well { color: #18794e; } .ill { color: #cd2b31; }
table { border-collapse: collapse; } td, th { padding: .15rem 1rem .15rem 0; text-align: left; }
td, li { font-variant-numeric: tabular-nums; }
ol { padding-left: 0; list-style: none; }
.dim { opacity: .65; }
"""
_STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
CONTENT_SECURITY_POLICY = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'"
)


def page(
    node: NodeStatus,
    counts: Counts | None,
    workers: Sequence[WorkerView],
    decisions: Sequence[Decision],
) -> str:
    """Gives the page as HTML, every text of unknown origin escaped."""
    healthy, words = verdict(node)
    mood = "well" if healthy else "ill"
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        f"<meta http-equiv=refresh content={REFRESH_SECONDS}>",
        "<meta name=viewport content='width=device-width'>",
        f"<title>musterd {escape(node.node)}</title><style>{STYLE}</style>",
        f"<h1>musterd <span class=dim>{escape(node.version)} · {escape(node.node)}</span></h1>",
        f"<p class={mood}>{escape(words)}</p>",
        f"<p class=dim>{escape(node.engine)} at {escape(node.store)}</p>",
        _queue(counts),
        _crew(node, workers),
        _journal(decisions),
        f"<p class=dim>{LINKS}</p></html>",
    ]
    return "\n".join(parts)


def _queue(counts: Counts | None) -> str:
    if counts is None:
        return "<h2>Queue</h2><p class=ill>the store does not answer</p>"
    rows = [(state.value, count_text(counts.by_state.get(state, 0))) for state in JobState]
    rows.append(("due now", count_text(counts.due)))
    rows.append(("longest wait", duration_text(counts.oldest_due_seconds)))
    if counts.paused_at is not None:
        rows.append(("paused by", counts.paused_by or "somebody"))
    return "<h2>Queue</h2>" + _table((), rows)


def _crew(node: NodeStatus, workers: Sequence[WorkerView]) -> str:
    size = node.idle + node.busy + node.retiring
    head = f"<h2>Crew</h2><p>{size} of at most {node.max_count}: {node.busy} busy, {node.idle} idle"
    head += f", {node.retiring} retiring</p>" if node.retiring else "</p>"
    busy = [worker for worker in workers if worker.job_id is not None]
    if not busy:
        return head
    rows = [
        (str(worker.worker), f"job {worker.job_id}", worker.kind or "", _seconds(worker))
        for worker in busy
    ]
    return head + _table(("worker", "job", "kind", "for"), rows)


def _journal(decisions: Sequence[Decision]) -> str:
    shown = [
        f"<li><span class=dim>{datetime.fromtimestamp(decision.at, UTC):%H:%M:%SZ}</span> "
        f"{escape(decision_text(decision))}</li>"
        for decision in reversed(decisions[-DECISIONS_SHOWN:])
    ]
    return f"<h2>Last decisions</h2><ol>{''.join(shown)}</ol>" if shown else ""


def _seconds(worker: WorkerView) -> str:
    return duration_text(worker.busy_seconds)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in heads)
    lines = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    return f"<table><tr>{head}</tr>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"
