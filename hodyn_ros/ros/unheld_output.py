"""What a node writes to its log must not hold it up: a pipe that nobody reads is full after 64 kB.

Whoever writes to it then waits until somebody reads: a launch that was stopped, a terminal after Ctrl+S, a
program that has started the node and does not look. The middleware writes a line for each message that is
none, and a node that commands a robot would stop there, in the middle of a motion.
"""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import time
from contextlib import suppress
from threading import Thread

_ROOM = 1 << 20  # [bytes] that may wait for whoever reads slowly
_PIECE = 1 << 16
_PAUSE = 0.01  # [s] between two pieces, so that a flood of lines costs little
_LAST = 1.0  # [s] that the last lines may take at the end


class UnheldOutput:
    """Lets a descriptor of this process, such as 2, take what is written at once, until `close`.

    A thread passes it on. What finds no room, as nobody reads, is lost.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.where = descriptor  # for who cannot wait for the thread, which needs the interpreter
        self._thread: Thread | None = None
        with suppress(OSError):  # it may be closed
            mode = os.fstat(descriptor).st_mode
            if stat.S_ISREG(mode) or (stat.S_ISCHR(mode) and not os.isatty(descriptor)):
                return  # nobody waits for a file, nor for /dev/null
            self.where = os.dup(descriptor)
            self._source, writer = os.pipe()
            os.set_blocking(writer, False)
            with suppress(OSError, AttributeError):  # the user may not, or this is no Linux; 64 kB do as well
                fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, _ROOM)
            os.dup2(writer, descriptor)
            os.close(writer)
            self._thread = Thread(target=self._pass_on, name="output", daemon=True)
            self._thread.start()

    def _pass_on(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are for the main thread
        while piece := os.read(self._source, _PIECE):
            with suppress(OSError):  # nobody can read any more
                while piece:
                    piece = piece[os.write(self.where, piece) :]
            time.sleep(_PAUSE)

    def close(self) -> None:
        """Write to the descriptor itself again, if what was written is passed on soon; else to nobody."""
        if self._thread is not None:
            nobody = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nobody, self._descriptor)  # which closes the only way into the pipe
            os.close(nobody)
            self._thread.join(_LAST)
            if not self._thread.is_alive():
                os.dup2(self.where, self._descriptor)
