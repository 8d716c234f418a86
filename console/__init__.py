"""console: the command line, and the wiring of a node.

One verb, one function; a verb imports what it needs when it runs, so that --help is quick.
"""

from musterd.console.app import main

__all__ = ["main"]
