"""The command ``wattle``. This module imports little, because it runs at each start."""

from __future__ import annotations

import signal
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Runs the command with the arguments of the process, and ends the process."""
    # The command handles interrupts itself. Python's handler would wait for a call to return.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from wattle import _native

    own = sys.argv[1:]
    # The words that started this process, up to its own arguments, start the command again.
    before = sys.orig_argv[1 : len(sys.orig_argv) - len(own)]
    _native.main(["wattle", *own], [sys.executable, *before])
