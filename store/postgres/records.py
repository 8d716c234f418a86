"""Jobs with all that is known of them, from the rows of several statements."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from musterd.store.jobs import JOB_COLUMNS, JobRecord, job_record
from musterd.store.postgres.phases import phases_by_job
from musterd.store.postgres.rows import Row, attempt_record


def job_records(
    found: Sequence[Row], past: Sequence[Row], phases: Sequence[Row]
) -> list[JobRecord]:
    """`past` are their earlier attempts, `phases` their phases."""
    records = [
        job_record(
            dict(zip(JOB_COLUMNS, row, strict=True)),
            [attempt_record(one) for one in past if one[0] == row[0]],
        )
        for row in found
    ]
    by_job = phases_by_job(phases, {record.id: record.state for record in records})
    return [
        attrs.evolve(record, phases=by_job[record.id]) if record.id in by_job else record
        for record in records
    ]
