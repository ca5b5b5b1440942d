# SPDX-License-Identifier: Apache-2.0
"""The drivers of the client libraries: a program in each library's own language that does what it is told, a JSON object a line."""
import contextlib
import json
import select
import subprocess

import mcptest
import tapsys


def libraries(build, source):
    """For each library: its command line before the path of the socket and behind it, and what its environment has more."""
    drivers, python = source / "tests/clients/drivers", {"PYTHONPATH": str(build / "bindings/python")}
    return {
        "python": (["/usr/bin/python3", str(drivers / "python_driver.py")], [], python),
        "aio": (["/usr/bin/python3", str(drivers / "python_driver.py")], ["aio"], python),
        "c": ([str(build / "tests/clients/c_driver")], [], {}),
        "node": ([tapsys.NODE, str(drivers / "node_driver.mjs")], [str(build / "bindings/node/index.js")], {}),
        "ruby": (["/usr/bin/ruby", f"-I{source / 'bindings/ruby'}", str(drivers / "ruby_driver.rb")], [], {}),
    }


class Driver:
    def __init__(self, library, path, env):
        head, tail, more = library
        self.process = subprocess.Popen([*head, path, *tail], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**env, "PYTHONDONTWRITEBYTECODE": "1", **more},
                                        text=True, encoding="utf-8")

    def tell(self, ask):
        try:
            self.process.stdin.write(json.dumps(ask).replace("Infinity", "1e999") + "\n")  # which every language reads as that
            self.process.stdin.flush()
            if not select.select([self.process.stdout], [], [], 2 * mcptest.PATIENCE)[0]:
                self.process.kill()  # what hangs once hangs again: the cases that follow fail at once
                return {"raised": "the driver: no answer"}
            return json.loads(self.process.stdout.readline() or '{"raised": "the driver ended"}')
        except (OSError, ValueError) as e:
            return {"raised": f"the driver: {e}"}

    def end(self):
        with contextlib.suppress(BrokenPipeError):  # it has ended, and not read what it was told last
            self.process.stdin.close()
        return self.process.wait(mcptest.PATIENCE)
