"""How the queries are written: whom they ask, and over what time.

Two sorts of metrics are asked differently. What each node counts of itself is filtered by
`instance` and added up. What one node reads from the store for all of them (`of_store`) is not
filtered by `instance`, since another one may export it in a minute, and never added up over nodes:
for a moment there may be two that do.
"""

from __future__ import annotations

NODE = 'job=~"$job", instance=~"$instance"'
STORE = 'job=~"$job", tenant=~"$tenant"'
TENANT_NODE = f'{NODE}, tenant=~"$tenant"'


def of_node(metric: str, more: str = "") -> str:
    """Series that each node exports of itself."""
    return _selected(metric, NODE, more)


def of_tenant(metric: str, more: str = "") -> str:
    """As `of_node`, of metrics that say of which tenant."""
    return _selected(metric, TENANT_NODE, more)


def of_kind(metric: str, more: str = "") -> str:
    """As `of_node`, of metrics that say of which kind."""
    return _selected(metric, f'{NODE}, kind=~"$kind"', more)


def of_store(metric: str, more: str = "") -> str:
    """Series that one node exports for a whole store; by tenant."""
    return f"max by (tenant) ({_selected(metric, STORE, more)})"


def rate(series: str) -> str:
    return f"rate({series}[$__rate_interval])"


def over_range(series: str) -> str:
    """What came to it in the time that the page shows."""
    return f"increase({series}[$__range])"


def total(series: str, by: str = "") -> str:
    return f"sum by ({by}) ({series})" if by else f"sum({series})"


def most(series: str, by: str = "") -> str:
    return f"max by ({by}) ({series})" if by else f"max({series})"


def quantile(share: float, buckets: str, by: str = "") -> str:
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({share:g}, sum by ({labels}) ({rate(buckets)}))"


def or_none(expr: str) -> str:
    """0 where nothing is counted yet: a counter with labels is absent until it first counts."""
    return f"{expr} or vector(0)"


def _selected(metric: str, base: str, more: str) -> str:
    return f"{metric}{{{base}, {more}}}" if more else f"{metric}{{{base}}}"
