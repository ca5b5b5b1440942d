#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A client of `cordon serve` that reads all the time, and never catches up.

Usage: serve_values.py BUILD."""
import json
import sys
import threading

import tapsys
from mcptest import Server
from tapsys import Tap

tap, programs = Tap(), tapsys.Programs(sys.argv[1])


def behind():
    """Its answers never all fit into the pipe: what it has read must go from the server's memory meanwhile."""
    with Server(programs) as s:
        size = len(json.dumps(s.ask("tools/list")))
        count = (160 << 20) // size

        def write():
            for number in range(count):
                try:
                    s.write(b'{"jsonrpc":"2.0","id":%d,"method":"tools/list"}\n' % number)
                except OSError:
                    return  # the server is gone: the reader says so
        writer = threading.Thread(target=write)
        writer.start()
        got, data = 0, True
        while got < count and data:
            data = s.process.stdout.read1(1 << 20)
            got += data.count(b"\n")
        writer.join()
        tap.eq(got, count, "a client that never catches up with 160 MB of answers gets all of them")


behind()
tap.done()
