"""console: the command line, and the wiring of a node.

One verb, one function; the module of a verb is loaded when it is asked for, so that --help is
quick.
"""

from musterd.console.command import main

__all__ = ["main"]
