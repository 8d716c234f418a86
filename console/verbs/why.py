"""`musterd why ID`: why does this job not run?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from musterd.console.completers import complete_jobs
from musterd.console.exits import Complaint, Exit
from musterd.console.given import Given, Verb
from musterd.console.opening import in_store
from musterd.console.out import coloured, print_json, say

if TYPE_CHECKING:
    from musterd.store.engine import Engine
    from musterd.store.standing import Standing


@click.command(cls=Verb)
@click.argument("job_id", metavar="ID", type=click.IntRange(min=1), shell_complete=complete_jobs)
@click.pass_obj
def why(given: Given, job_id: int) -> None:
    """Say why a job does not run, and what to do about it."""
    from musterd.store.why import why as conclude
    from musterd.store.why_report import why_object, why_text

    async def work(engine: Engine) -> Standing | None:
        return await engine.standing(job_id)

    settings = given.settings()
    seen = in_store(settings, work)
    if seen is None:
        raise Complaint(Exit.UNKNOWN, f"there is no job {job_id}", "`musterd jobs` lists them")
    answer = conclude(seen)
    if given.json:
        print_json(why_object(answer, settings.tenant))
        return
    head, _, rest = why_text(answer).partition("\n")
    say(coloured(seen.job.state.value, head))
    say(rest)
