"""console: the command line, and the one place where a node is wired.

One verb, one function; what a verb needs is imported when it runs, so that --help is quick.
"""

from musterd.console.app import main

__all__ = ["main"]
