"""console: the command line, and the wiring of a node. Modules load on demand: --help is quick."""

from musterd.console.command import main

__all__ = ["main"]
