"""`musterd simulate`: what other settings would have made of past jobs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from musterd.console.completers import complete_settings
from musterd.console.given import Given, Verb
from musterd.console.out import complain, print_json, say
from musterd.console.tracing import read_trace, rules_of, trace_options
from musterd.console.verbs.events import Since

if TYPE_CHECKING:
    from musterd.config.settings import Settings


@click.command(cls=Verb)
@trace_options
@click.option(
    "--with",
    "proposed",
    multiple=True,
    metavar="SECTION.KEY=VALUE",
    shell_complete=complete_settings,
    help="Propose one setting, as with --set; may be repeated.",
)
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Propose FILE in place of the configuration file.",
)
@click.pass_obj
def simulate(
    given: Given,
    /,
    source: TextIO | None,
    since: Since | None,
    proposed: tuple[str, ...],
    against: Path | None,
) -> None:
    """Show what other settings would have made of past jobs.

    Runs the jobs of the log through the supervisor's own decisions on a virtual clock: one node,
    each attempt as long as it was. With --with or --against the proposed settings stand beside
    those at hand. Changes nothing, and asks no daemon.
    """
    from musterd.console.simulate.model import simulate as run_trace
    from musterd.console.simulate.report import Comparison, comparison_lines, comparison_object

    settings = given.settings()
    rules = [rules_of(settings)]
    if proposed or against is not None:
        rules.append(rules_of(_proposed(given, proposed, against)))
    if len(rules) > 1 and rules[0] == rules[1]:
        complain("musterd: what is proposed changes nothing that the model knows of")
    trace = read_trace(given, settings, source, since)
    found = Comparison(trace, rules, [run_trace(trace, one) for one in rules])
    if given.json:
        print_json(comparison_object(found, settings.tenant))
        return
    for line in comparison_lines(found):
        say(line)


def _proposed(given: Given, sets: tuple[str, ...], file: Path | None) -> Settings:
    other = Given()
    other.config_file = given.config_file if file is None else file
    other.sets, other.tenant = [*given.sets, *sets], given.tenant
    return other.settings()
