"""`musterd delete`: deletes jobs that have ended, before retention would."""

from __future__ import annotations

import click

from musterd.config.settings import Settings
from musterd.console.command import STORE_SECTIONS, CommandLine, Verb
from musterd.console.completers import complete_jobs
from musterd.console.daemon_client import other_store
from musterd.console.output import Complaint, Exit, complain, print_json, say
from musterd.console.verbs.store import whoami
from musterd.manager.duties.retention import ArchiveFailed, delete_request
from musterd.store.control import Deletion
from musterd.store.engine import Engine
from musterd.store.opening import engine_for, in_store
from musterd.store.report import deletion_refusal


@click.command(cls=Verb)
@click.argument(
    "job_ids",
    metavar="ID...",
    nargs=-1,
    required=True,
    type=click.IntRange(min=1),
    shell_complete=complete_jobs,
)
@click.pass_context
def delete(context: click.Context, /, job_ids: tuple[int, ...]) -> None:
    """Delete jobs that have ended, with all that belongs to them.

    Retention does so when their time has come; this does it now, with its archive and its hook.
    Nothing brings a job back.
    """
    cli: CommandLine = context.obj
    settings = cli.of_tenant(cli.settings_for((*STORE_SECTIONS, "retention")))
    catalog = cli.catalog_if_sound(settings)
    request = delete_request(settings.retention, settings.tenant, lambda: catalog, whoami())

    done: list[Deletion] = []

    async def work(engine: Engine) -> None:
        for job_id in job_ids:
            found = await engine.retention.delete_one(job_id, request)
            done.append(found)

    codes: list[Exit] = []
    try:
        in_store(settings, work)
    except ArchiveFailed as error:
        what = f"the archive cannot be written: {error}"
        raise Complaint(Exit.UNSUCCESSFUL, what, "[retention] archive says where it is") from None
    finally:  # what is done is told, whatever ended the rest
        codes += [_report(cli, settings, *one) for one in zip(job_ids, done, strict=False)]
    context.exit(next((code for code in codes if code is not Exit.DONE), Exit.DONE))


def _report(cli: CommandLine, settings: Settings, job_id: int, done: Deletion) -> Exit:
    if cli.json:
        print_json(
            {
                "id": job_id,
                "deleted": done.is_done,
                "state_before": done.state,
                "obstacle": done.obstacle,
            }
        )
    elif done.is_done:
        say(f"job {job_id} deleted (it was {done.state})")
    if done.is_done:
        return Exit.DONE
    complain(f"musterd: {deletion_refusal(job_id, done)}")
    if done.state is not None:
        return Exit.WRONG_STATE
    if other := other_store(settings, engine_for(settings).where):
        complain(f"  {other}")
    return Exit.UNKNOWN
