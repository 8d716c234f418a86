"""The terminal: taken whole, and always given back as it was."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import termios
import threading
from collections.abc import Generator

import trio

from musterd.console.top.paint import ENTER, LEAVE
from musterd.console.top.state import Size

CHUNK_BYTES = 512  # what a terminal that says it can take something takes without a wait
READ_BYTES = 4096
FALLBACK = Size(80, 24)
# Places in what termios gives, and the flags that are taken away: keys come one by one, are not
# shown, and are keys also where they would be signals.
INPUT, LOCAL = 0, 3
NO_INPUT_FLAGS = termios.IXON | termios.ICRNL
NO_LOCAL_FLAGS = termios.ECHO | termios.ICANON | termios.ISIG | termios.IEXTEN


class Terminal:
    """Standard input and output, where both are one terminal."""

    def __init__(self) -> None:
        self._input, self._output = sys.stdin.fileno(), sys.stdout.fileno()
        self._before = termios.tcgetattr(self._input)
        self.encoding = sys.stdout.encoding or "ascii"

    def size(self) -> Size:
        try:
            columns, rows = os.get_terminal_size(self._output)
        except OSError:
            return FALLBACK
        return Size(columns, rows) if columns and rows else FALLBACK

    @contextlib.contextmanager
    def taken(self) -> Generator[None, None, None]:
        """While the block lasts the screen is ours; however it ends, it is given back."""
        try:
            self._take()
            yield
        finally:
            self._give_back()

    def suspend(self) -> None:
        """Gives the terminal back and stops, as Ctrl-Z does; takes it again when it goes on."""
        self._give_back()
        try:
            before = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
            # At this thread, so that it has happened when the call returns.
            signal.pthread_kill(threading.get_ident(), signal.SIGTSTP)
            signal.signal(signal.SIGTSTP, before)
        finally:
            self._take()

    def resume(self) -> None:
        """Somebody else stopped the process, and may have changed the terminal."""
        self._take()

    async def read(self) -> bytes:
        """What was typed; nothing = there is no terminal any more."""
        await trio.lowlevel.wait_readable(self._input)
        try:
            return os.read(self._input, READ_BYTES)
        except OSError:
            return b""

    async def write(self, data: bytes) -> None:
        """A terminal that takes nothing holds up its own picture only. Raises OSError where there
        is none any more.
        """
        left = memoryview(data)
        while left:
            await trio.lowlevel.wait_writable(self._output)
            left = left[os.write(self._output, left[:CHUNK_BYTES]) :]

    def _take(self) -> None:
        wanted = termios.tcgetattr(self._input)
        wanted[INPUT] &= ~NO_INPUT_FLAGS
        wanted[LOCAL] &= ~NO_LOCAL_FLAGS
        termios.tcsetattr(self._input, termios.TCSADRAIN, wanted)
        os.write(self._output, ENTER.encode())

    def _give_back(self) -> None:
        # The terminal may have gone: then nobody is left to give it to.
        with contextlib.suppress(OSError):
            os.write(self._output, LEAVE.encode())
        with contextlib.suppress(OSError, termios.error):
            termios.tcsetattr(self._input, termios.TCSADRAIN, self._before)
