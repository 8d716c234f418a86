"""The samples for KEDA ask what a real PostgreSQL answers, as a role that may do nothing else."""

from __future__ import annotations

import re
from typing import Any

import psycopg
import pytest

from musterd.config.load import load
from musterd.store.jobs import NewJob
from tests.contract.job_tools import take
from tests.contract.rigs import PostgresRig, opened
from tests.fix_postgres import FreshDatabase
from tests.support.manifests import (
    DEPLOY,
    KUBERNETES,
    autoscaler,
    check_manifest,
    documents,
    manifest,
)
from tests.support.metric_pages import exported

KEDA = DEPLOY / "keda"
SAMPLES = ("from-zero.yaml", "from-one.yaml")
SPEC_KEYS = {
    *("scaleTargetRef", "minReplicaCount", "maxReplicaCount", "pollingInterval", "cooldownPeriod"),
    *("advanced", "triggers"),
}
# What may stand in a trigger, as its documentation has it (KEDA 2.18).
TRIGGER_KEYS = {
    "postgresql": {"query", "targetQueryValue", "activationTargetQueryValue"},
    "prometheus": {"serverAddress", "query", "threshold", "ignoreNullValues"},
}
WORKERS = load(KUBERNETES / "base" / "musterd.toml", {}, ()).settings.workers
URL_OF_ROLE = re.compile(r"url='postgresql://(\w+):")


def spec_of(name: str) -> dict[str, Any]:
    (found,) = [one for one in documents(KEDA / name) if one["kind"] == "ScaledObject"]
    spec: dict[str, Any] = found["spec"]
    return spec


def trigger_of(name: str) -> dict[str, Any]:
    (found,) = spec_of(name)["triggers"]
    trigger: dict[str, Any] = found
    return trigger


QUERY = trigger_of("from-zero.yaml")["metadata"]["query"]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_scales_the_deployment_with_keys_that_keda_knows(name: str) -> None:
    spec, trigger = spec_of(name), trigger_of(name)
    assert spec.keys() <= SPEC_KEYS
    assert spec["scaleTargetRef"]["name"] == manifest("Deployment")["metadata"]["name"]
    assert trigger["metadata"].keys() == TRIGGER_KEYS[trigger["type"]]
    assert all(isinstance(value, str) for value in trigger["metadata"].values())
    assert trigger["metricType"] == "AverageValue"
    # From 0 to 1 it is KEDA itself.
    check_manifest(autoscaler(spec, max(1, spec["minReplicaCount"])), "1.33")


def test_one_rises_from_nothing_and_the_other_asks_a_pod() -> None:
    zero, one = (trigger_of(name)["metadata"] for name in SAMPLES)
    assert [spec_of(name)["minReplicaCount"] for name in SAMPLES] == [0, 1]
    assert (zero["targetQueryValue"], one["threshold"]) == ("1", "1"), "both count in pods"
    assert zero["activationTargetQueryValue"] == "0"
    assert "musterd_nodes_desired{" in one["query"]
    assert "musterd_nodes_desired" in exported()


def test_the_secret_that_it_connects_with_is_the_one_that_the_page_makes() -> None:
    (login,) = [
        one for one in documents(KEDA / SAMPLES[0]) if one["kind"] == "TriggerAuthentication"
    ]
    assert trigger_of(SAMPLES[0])["authenticationRef"]["name"] == login["metadata"]["name"]
    (secret,) = login["spec"]["secretTargetRef"]
    assert secret["parameter"] == "connection"
    page = (KEDA / "README.md").read_text("utf-8")
    assert f"secret generic {secret['name']} --from-literal={secret['key']}=" in page
    assert URL_OF_ROLE.findall(page) == ["musterd_scaler"]


async def test_the_query_rises_from_no_node_at_all(fresh_database: FreshDatabase) -> None:
    url = fresh_database()
    async with opened(PostgresRig(url)) as rig:
        assert isinstance(rig, PostgresRig)
        rig.raw((KEDA / "role.sql").read_text("utf-8"))
        try:
            await ask_as_keda(rig)
        finally:
            rig.raw("drop owned by musterd_scaler; drop role musterd_scaler")


async def ask_as_keda(rig: PostgresRig) -> None:
    rig.raw("alter role musterd_scaler password 'secret'")
    with psycopg.connect(
        rig.url, user="musterd_scaler", password="secret", autocommit=True
    ) as connection:

        def answer() -> Any:
            return connection.execute(QUERY.encode()).fetchall()

        assert answer() == [(0,)], "nothing to do, no pod"
        await rig.engine.jobs.enqueue([NewJob("report")] * (2 * WORKERS.max_count + 1))
        assert await rig.engine.nodes.all() == []
        assert answer() == [(3,)]
        await take(rig.engine, workers=WORKERS.max_count)
        assert answer() == [(3,)], "what runs still needs its pod"
        for other in (
            "select count(*) from musterd.jobs", "select * from musterd.queue_depth",
            "select * from musterd.ready", "select musterd.enqueue('a')",
            "select musterd.cancel(1)", "select musterd.hint('')", "create table musterd.mine ()",
        ):  # fmt: skip
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(other.encode())
