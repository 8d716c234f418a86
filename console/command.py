"""The command line: the tree of verbs, options that all share, and types of options."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from click.shell_completion import CompletionItem

from musterd import __version__
from musterd.config.faults import ConfigError, Fault, concerns, did_you_mean
from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.console.completers import (
    complete_kinds,
    complete_settings,
    complete_targets,
    complete_tenants,
)
from musterd.console.output import (
    Complaint,
    Exit,
    complain,
    complaint_about,
    print_json,
    say_lines,
)
from musterd.store.times import delay_of, future_of, past_of

if TYPE_CHECKING:
    from musterd.catalog.kinds import Catalog
    from musterd.config.load import Loaded
    from musterd.config.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
STORE_SECTIONS = ("store", "tenants")  # what leads to a tenant's store
DAEMON_SECTIONS = (*STORE_SECTIONS, "http")  # and to the daemon
WARNED_MAX = 3  # faults that a verb does without are told up to here


class CommandLine:
    """The shared options, given before the verb or after it."""

    def __init__(self) -> None:
        self.config_file: Path | None = None
        self.sets: list[str] = []
        self.json = False
        self.tenant: str | None = None  # None = not named: the default one, or all
        self._warned: set[str] = set()  # variables

    def proposing(self, file: Path | None, sets: Sequence[str] = ()) -> CommandLine:
        """With another file and further settings."""
        other = CommandLine()
        other.config_file, other.tenant = file or self.config_file, self.tenant
        other.sets = [*self.sets, *sets]
        return other

    def load(self) -> Loaded:
        """Reads the configuration; raises ConfigError with all faults."""
        from musterd.config.load import load, stray_variables

        for name, meant in stray_variables(os.environ):
            if name not in self._warned:
                complain(f"musterd: warning: {name} sets nothing - did you mean {meant}?")
            self._warned.add(name)
        return load(self.config_file, os.environ, self.sets)

    def load_all(self) -> tuple[Loaded, Catalog]:
        """Reads configuration and catalog; raises ConfigError with all faults of both."""
        from musterd.config.load import UnsoundSettings

        try:
            loaded = self.load()
        except UnsoundSettings as unsound:
            faults = [*unsound.faults, *self._catalog_faults(unsound.best)]
            raise ConfigError(faults) from unsound
        catalog = self.catalog(loaded.settings)
        if broken := _schedule_faults(loaded.settings, catalog, loaded.origins):
            raise ConfigError(broken)
        return loaded, catalog

    def _catalog_faults(self, settings: Settings) -> Sequence[Fault]:
        from attrs import evolve

        # A path that cannot be read is among the settings' faults already.
        paths = tuple(path for path in settings.catalog.paths if os.access(path, os.R_OK))
        try:
            catalog = self.catalog(evolve(settings, catalog=evolve(settings.catalog, paths=paths)))
        except ConfigError as error:
            return error.faults
        # Where a path cannot be read, its kinds are not unknown.
        is_whole = len(paths) == len(settings.catalog.paths)
        return _schedule_faults(settings, catalog, {}) if is_whole else ()

    def settings_for(self, sections: Collection[str] = STORE_SECTIONS) -> Settings:
        """For a verb that needs these tables: faults elsewhere are warned of, and a value at fault
        gives way to that of the layer below. Raises ConfigError if one may concern these tables.
        """
        from musterd.config.load import UnsoundSettings

        try:
            return self.load().settings
        except UnsoundSettings as unsound:
            if any(concerns(fault, sections) for fault in unsound.faults):
                raise
            self._warn(unsound.faults)
            return unsound.best

    def settings(self) -> Settings:
        """The named tenant's settings, for a verb that needs only the store."""
        return self.of_tenant(self.settings_for())

    def catalog_if_sound(self, settings: Settings) -> Catalog:
        """For a verb that only shows more with it: one with faults is warned of, and empty."""
        from musterd.catalog.kinds import Catalog

        try:
            return self.catalog(settings)
        except ConfigError as error:
            self._warn(error.faults)
            return Catalog(())

    def _warn(self, faults: Sequence[Fault]) -> None:
        count = "a fault" if len(faults) == 1 else f"{len(faults)} faults"
        complain(f"musterd: the configuration has {count} that this verb can do without:")
        for fault in faults[:WARNED_MAX]:
            complain(f"  {fault}")
        if len(faults) > WARNED_MAX:
            complain(f"  and {len(faults) - WARNED_MAX} more: `musterd config check`")

    def of_tenant(self, settings: Settings) -> Settings:
        """The named tenant's settings. Complains if there is no such tenant."""
        from musterd.config.tenants import settings_of

        name = DEFAULT_TENANT if self.tenant is None else self.tenant
        if name in settings.tenants:
            return settings_of(settings, name)
        hint = did_you_mean(name, settings.tenants)
        advice = f"{hint} " if hint else ""
        advice += "`musterd config show` lists them under [tenants.NAME]"
        raise Complaint(Exit.UNKNOWN, f"there is no tenant {name!r}", advice)

    def of_node(self, settings: Settings) -> Settings:
        """The default tenant's settings; complains like `of_tenant`."""
        from musterd.config.tenants import settings_of

        self.of_tenant(settings)
        return settings_of(settings, DEFAULT_TENANT)

    def show(self, objects: Iterable[object], lines: Callable[[], Iterable[str]]) -> None:
        """Prints a list: with --json one object per line, else `lines()`."""
        if not self.json:
            say_lines(lines())
            return
        for one in objects:
            print_json(one)

    def answer(self, whole: object, *lines: str) -> None:
        """Prints one object with --json, else the lines."""
        self.show([whole], lambda: lines)

    def catalog(self, settings: Settings) -> Catalog:
        """Reads the catalog; raises ConfigError."""
        from musterd.catalog.load import catalog_of

        return catalog_of(settings, os.environ)


def _schedule_faults(
    settings: Settings, catalog: Catalog, origins: Mapping[str, str]
) -> Sequence[Fault]:
    if not settings.schedules:
        return ()
    from musterd.manager.duties.schedules import schedule_faults

    return schedule_faults(settings, catalog, origins)


def _take(context: click.Context, option: click.Parameter, value: Any) -> None:
    """If an option is given before and after the verb, the later one counts; sets add up."""
    cli = context.find_root().ensure_object(CommandLine)
    if option.name == "sets":
        cli.sets += value
    elif value not in (None, False):
        setattr(cli, str(option.name), value)


def _shared(flag: str, attribute: str, help_text: str, **how: Any) -> click.Option:
    names = [flag, attribute]
    return click.Option(names, help=help_text, expose_value=False, callback=_take, **how)


SHARED_OPTIONS = (
    _shared("--config", "config_file", "Use FILE instead of /etc/musterd/musterd.toml.",
        type=click.Path(path_type=Path), metavar="FILE"),
    _shared("--set", "sets", "Set one setting; may be repeated.",
        multiple=True, metavar="SECTION.KEY=VALUE", shell_complete=complete_settings),
    _shared("--tenant", "tenant", "The tenant; default: the one named `default`.",
        metavar="NAME", shell_complete=complete_tenants),
    _shared("--json", "json", "Print JSON: one object, or one object per line for lists.",
        is_flag=True),
)  # fmt: skip


class _Shared(click.Command):
    """Takes the shared options. Errors that a user can fix become complaints, not tracebacks."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*super().get_params(ctx), *SHARED_OPTIONS]

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            complaint = complaint_about(error)
            if complaint in (None, error):
                raise
            raise complaint from error


class Verb(_Shared):
    pass


class Verbs(_Shared, click.Group):
    """A group of verbs, which may be a verb too."""

    command_class = Verb
    group_class = type  # a group in a group has the same class

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order of their definition


def option_reader(read: Callable[[str], T]) -> Callable[..., T | None]:
    """The callback of an option with this reader; a ValueError says what is wrong."""

    def callback(_context: click.Context, _option: click.Parameter, text: str | None) -> T | None:
        try:
            return None if text is None else read(text)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    return callback


TEXT_LENGTH_MAX = 200


def _short(wanted: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if not 1 <= len(text) <= TEXT_LENGTH_MAX:
            found = f"found {len(text)} characters"
            raise ValueError(f"{found}, wanted {wanted} of 1 to {TEXT_LENGTH_MAX}")
        return text

    return read


read_delay = option_reader(delay_of)
read_moment = option_reader(lambda text: future_of(text, datetime.now(UTC)))
read_past = option_reader(lambda text: past_of(text, datetime.now(UTC)))
read_target = option_reader(_short("a name"))
read_text = option_reader(_short("a text"))


def moment_option(flag: str, about: str) -> Callable[[F], F]:
    """An option that takes a moment of the past."""
    return click.option(flag, callback=read_past, metavar="TIME", help=about)


def seconds_option(
    *names: str, within: tuple[float, float], default: float, about: str
) -> Callable[[F], F]:
    """An option that takes a length of time, from the shortest to the longest."""
    return click.option(
        *names, type=click.FloatRange(*within), default=default, show_default=True,
        metavar="SECONDS", help=about,
    )  # fmt: skip


def kind_and_target_options(what: str) -> Callable[[F], F]:
    """The options `--kind` and `--target`, which filter `what`."""

    def add(verb: F) -> F:
        target = click.option(
            "--target",
            callback=read_target,
            shell_complete=complete_targets,
            help=f"Only {what} of this target.",
        )
        kind = click.option(
            "--kind", shell_complete=complete_kinds, help=f"Only {what} of this kind."
        )
        return kind(target(verb))

    return add


# In the order in which people meet them: each verb, the module that has it, and what its own help
# begins with, so that a list of verbs loads none of them.
SECTIONS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Jobs": {
        "enqueue": ("verbs.enqueue", "Enqueue a job of KIND."),
        "jobs": ("verbs.jobs", "List jobs, newest first."),
        "job": ("verbs.jobs", "Show one job: timings, attempts, result, log."),
        "why": ("verbs.jobs", "Explain why a job does not run, and what to do about it."),
        "events": ("verbs.events", "Show events, newest last."),
        "cancel": ("verbs.control",
            "Cancel jobs: waiting ones at once, running ones as soon as their worker is told."),
        "pause": ("verbs.control", "Pause jobs until they are resumed."),
        "resume": ("verbs.control",
            "Queue paused or failed jobs again, with a fresh budget of attempts."),
        "release": ("verbs.control", "Queue jobs that were enqueued with --hold."),
        "clear": ("verbs.control", "Mark failed jobs as dealt with; paused ones are canceled."),
        "delete": ("verbs.delete", "Delete jobs that have ended, with all that belongs to them."),
        "webhooks": ("verbs.webhooks", "List webhook messages, newest first; or send some again."),
    },
    "Operating": {
        "run": ("verbs.run", "Run the daemon, in the foreground."),
        "status": ("verbs.status", "Report whether all is well."),
        "top": ("top.verb", "Watch and control queue, crew and jobs on one screen."),
        "doctor": ("doctor.verb",
            "Check configuration, machine and store; say what is wrong and what to do."),
        "verify": ("verify.verb",
            "Check that the log of events, the jobs and the counts are consistent."),
        "nodes": ("verbs.store",
            "List the running daemons, and those that died within the last hour."),
        "instances": ("instances.verb", "Start and drain systemd instances as there is work."),
        "duties": ("verbs.store",
            "Show which node has each duty, since when, and with what results."),
        "scaling": ("verbs.scaling", "Show why the crew has its size."),
        "explain": ("explain.verb", "Explain a past decision on the crew's size."),
        "simulate": ("simulate.verb", "Show how past jobs would have fared with other settings."),
        "tune": ("simulate.verb", "Recommend default_count and max_count for past jobs."),
        "queue": ("verbs.store", "Pause and resume the whole queue."),
        "schedules": ("verbs.schedules",
            "Show all schedules with their last and next slots; or control one."),
        "reload": ("verbs.daemon", "Reload the daemon's configuration and catalog."),
        "drain": ("verbs.daemon", "Drain the daemon: it finishes its jobs and ends."),
    },
    "Setting up": {
        "demo": ("verbs.demo", "Watch a crew at work for a few seconds."),
        "bench": ("bench.verb", "Measure how fast this machine is with this store."),
        "kinds": ("verbs.kinds", "List the kinds of work."),
        "config": ("verbs.config", "Show, check and begin the configuration."),
        "db": ("verbs.store", "Manage the store's schema."),
        "completion": ("verbs.program", "Print the completion script for a shell."),
        "version": ("verbs.program", "Print the version."),
    },
}  # fmt: skip
VERBS = {verb: its for verbs in SECTIONS.values() for verb, its in verbs.items()}


class _Commands(Mapping[str, click.Command]):
    """The verbs by name. Their modules load on first use: a daemon starts without the others'."""

    def __getitem__(self, name: str) -> click.Command:
        verb: click.Command = getattr(import_module(f"musterd.console.{VERBS[name][0]}"), name)
        return verb

    def __iter__(self) -> Iterator[str]:
        return iter(VERBS)

    def __len__(self) -> int:
        return len(VERBS)


class Musterd(Verbs):
    """Lists the verbs in sections."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for name, verbs in SECTIONS.items():
            with formatter.section(name):
                formatter.write_dl([(verb, words) for verb, (_, words) in verbs.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        offers = [CompletionItem(verb, help=words) for verb, (_, words) in VERBS.items()]
        options = super(click.Group, self).shell_complete(ctx, incomplete)
        return [one for one in offers if one.value.startswith(incomplete)] + options


@click.group(
    cls=Musterd,
    commands=cast(Any, _Commands()),  # to which nobody adds
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
)
@click.version_option(__version__, prog_name="musterd", message="%(prog)s %(version)s")
@click.pass_context
def musterd(context: click.Context) -> None:
    """Durable jobs under leases, run by a crew that grows and shrinks with the queue.

    Try `musterd demo`, or `musterd run` in one terminal and `musterd enqueue report --wait` in
    another.
    """
    context.ensure_object(CommandLine)
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        context.color = False


def main() -> None:
    musterd(prog_name="musterd")
