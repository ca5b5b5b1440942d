# SPDX-License-Identifier: Apache-2.0
"""The exit statuses of `cordon` by name (src/prog/cordon/exits.h): a test says what it expects, not a number."""
import signal

DONE, FAILED, USAGE, UNSAFE = 0, 1, 2, 3
BUSY = 75
LIMIT, NEVER_RAN = 124, 125


def by_signal(number):
    """A signal ended the program, or `cordon`."""
    return 128 + number


INTERRUPTED, READER_LEFT, STOPPED = by_signal(signal.SIGINT), by_signal(signal.SIGPIPE), by_signal(signal.SIGTERM)


def usage(command):
    """Of a wrong command line: what would have run a program says that it never ran."""
    return NEVER_RAN if command in ("exec", "run", "session", "repl") else USAGE
