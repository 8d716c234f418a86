"""cli: the command line.

One verb, one function; what a verb needs is imported when it runs, so that --help is quick.
"""

from musterd.manager.cli.app import main

__all__ = ["main"]
