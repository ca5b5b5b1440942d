# SPDX-License-Identifier: Apache-2.0
"""The languages that have a worker, for tests of mechanisms that each of them must have: one row each, and the same tests for all.

A row has programs in its language; what each of them does is said where it is used (mechanisms.py). A new language is a new row."""
import collections

Language = collections.namedtuple("Language", "name worker attempts answers ends session typed")

# attempts: what a program tries in `open` past any judge, and is refused by the kernel's layers. It prints `done` at its end.
# answers: (profile, program) that computes, prints and is refused nothing, or is refused by its own layers.
# ends: (profile, program) that ends by itself: an exception, an exit status.
# session: the calls of one, in every profile: what binds, what counts and gives the count, reads a line, is refused, runs until it is interrupted,
# sleeps and catches that, ends itself, calls a tool; the variable, and what an interrupt is called.
# typed: lines at a prompt, and what is printed.
PYTHON = Language(
    "python", "cordon-python",
    attempts="""
import os, socket
def attempt(what):
    try: what()
    except OSError: pass
attempt(os.fork)
attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM))
attempt(lambda: os.kill(os.getppid(), 9))
attempt(lambda: os.execv('/bin/true', ['true']))
attempt(lambda: os.chroot('/tmp'))
attempt(lambda: os.mknod('/tmp/x', 0o20666, 259))
print('done')
""",
    answers=(("strict", "print(sum(range(5)))\n[1, 2]\n"), ("strict", "print(input())\n"), ("strict", "FINAL(6 * 7)\n"), ("strict", "import math\nprint(math.pi, 'ä')\n"),
             ("standard", "open('/workspace/a', 'w').write('x')\nprint(open('/workspace/a').read())\n"), ("standard", "import threading\nt = threading.Thread(target=print, args=(1,))\nt.start()\nt.join()\n"),
             ("strict", "eval('1')\n"), ("strict", "x = (\n")),
    ends=(("strict", "1 / 0\n"), ("strict", "def f(n): return f(n + 1)\nf(0)\n"), ("standard", "import sys\nsys.exit(3)\n"), ("open", "import os\nos._exit(4)\n")),
    session=dict(binds="x = [6]\ndef count():\n    x[0] += 1\n    return x[0]\n", counts="count()\n", reads="print(input())\n", refused="x = (\n", runs="print('on', flush=True)\nwhile True: pass\n",
                 sleeps="import time\nprint('on', flush=True)\ntry:\n    time.sleep(60)\nexcept KeyboardInterrupt: print('caught')\n", ends="FINAL(x[0])\n", asks="print(echo(5)['args'])\n",
                 variable="x[0]\n", interrupt="KeyboardInterrupt"),
    typed=("x = 6\ndef f(n):\n    return n * 7\n\nf(x)\n_ + 1\nprint('''a\nb''')\n", "42\n43\na\nb\n"))

RUBY = Language(
    "ruby", "cordon-ruby",
    attempts="""
require 'socket'
def attempt
  yield
rescue SystemCallError, NotImplementedError
end
attempt { fork }
attempt { Socket.new(:INET, :STREAM) }
attempt { Process.kill(9, Process.ppid) }
attempt { exec '/bin/true', 'true' }
attempt { Dir.chroot('/tmp') }
attempt { File.mkfifo('/tmp/x') }
puts 'done'
""",
    answers=(("strict", "puts (0...5).sum\n[1, 2]\n"), ("strict", "puts gets\n"), ("strict", "FINAL(6 * 7)\n"), ("strict", "puts Math::PI, 'ä'.encode('UTF-16LE').bytesize\n"),
             ("strict", "pp [1, {a: 2}]\nputs \"e\\u0301\".unicode_normalize(:nfc)\nGC.start\n"), ("strict", "puts JSON.generate({'a' => 1})\n"),
             ("strict", "f = Fiber.new { Fiber.yield 1; 2 }\np f.resume, f.resume, [1, 2].each.next\n"), ("strict", "p Time.at(0).utc.year, rand(1), Random.new(3).rand(9)\n"),
             ("strict", "begin\n  Thread.new { 1 }\nrescue ThreadError => e\n  puts e.message\nend\n"), ("strict", "('sys' + 'tem').to_sym.to_proc.call(self, 'ls')\n"),
             ("standard", "require 'set'\nrequire 'json'\nputs JSON.generate(Set[1].to_a)\n"), ("standard", "Thread.new { puts 1 }.join\nputs Mutex.new.synchronize { 2 }\n"),
             ("open", "File.write('/workspace/a', 'x')\nputs File.read('/workspace/a')\n"), ("open", "f = File.open('/dev/null')\nputs f.fileno\n"),
             ("strict", "eval('1')\n"), ("strict", "x = (\n"), ("standard", "defined?(JSON)\n")),
    ends=(("strict", "1 / 0\n"), ("strict", "def f(n) = [1].each { f(n + 1) }\nf(0)\n"), ("strict", "a = []\n100000.times { a = [a] }\na.hash\n"), ("standard", "at_exit { puts 2 }\nexit 3\n"),
          ("open", "exit! 4\n"), ("open", "Process.kill(:TERM, Process.pid)\nsleep 5\n")),
    session=dict(binds="x = 6\ncounter = -> { x += 1 }\ndef twice(n) = n * 2\n", counts="counter.call\n", reads="puts gets\n", refused="x = (\n", runs="puts 'on'\nloop {}\n",
                 sleeps="puts 'on'\nbegin\n  sleep 60\nrescue Interrupt\n  puts 'caught'\nend\n", ends="FINAL(x)\n", asks="p echo(5)['args']\n", variable="x\n", interrupt="Interrupt"),
    typed=("x = 6\ndef f(n)\n  n * 7\nend\nf(x)\n_ + 1\nputs 'a\nb'\n", "42\n43\na\nb\n"))

ALL = (PYTHON, RUBY)


def built(programs):
    return [language for language in ALL if (programs.bin / language.worker).exists()]
