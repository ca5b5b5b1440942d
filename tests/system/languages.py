# SPDX-License-Identifier: Apache-2.0
"""The languages that have a worker, for tests of mechanisms that each of them must have: one row each, and the same tests for all.

A row has programs in its language; what each of them does is said where it is used (mechanisms.py). A new language is a new row."""
import collections

Language = collections.namedtuple("Language", "name worker lost attempts answers ends session typed crowds forges reaches stays outside")

# attempts: what a program tries in `open` past any judge, and is refused by the kernel's layers. It prints `done` at its end.
# answers: (profile, program) that computes, prints and is refused nothing, or is refused by its own layers.
# ends: (profile, program) that ends by itself: an exception, an exit status.
# session: the calls of one, in every profile: what binds, what counts and gives the count, reads a line, is refused, runs until it is interrupted,
# sleeps and catches that, ends itself, calls a tool; the variable, and what an interrupt is called.
# typed: lines at a prompt, and what is printed.
# crowds: in `open`, 1,200 dull refusals, all different, then four that matter (MATTER), by the machine's own numbers.
# forges: in `open`, writes each message of %r, hex words, to the channel, and then prints `went on`.
# reaches: in a worker without judge and guards (lost: the program), under the table of computation: prints REACHED and what, for whatever it gets.
# outside: in `open`, the same for what lies outside of the jail: {secret} is a file, {port} listens, {pid} is a process.
# stays: a call of a session in `open` that says on the channel that it is done, and answers for the judge of the calls that follow. %(done)s and so on are hex.
PYTHON = Language(
    "python", "cordon-python", "unguarded",
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
                 sleeps="import time\ntry:\n    print('on', flush=True)\n    time.sleep(60)\nexcept KeyboardInterrupt: print('caught')\n", ends="FINAL(x[0])\n", asks="print(echo(5)['args'])\n",
                 variable="x[0]\n", interrupt="KeyboardInterrupt"),
    typed=('x = 6\ndef f(n):\n    return n * 7\n\nf(x)\n_ + 1\nprint("""a\nb""")\n', "42\n43\na\nb\n"),
    crowds="""
import ctypes, platform
libc = ctypes.CDLL(None)
for i in range(1200):
    libc.mount(b"none", b"/tmp/%d" % i, b"tmpfs", 0, None)
for number in ((321, 101, 425, 246) if platform.machine() == "x86_64" else (280, 117, 425, 104)):
    libc.syscall(number, 0, 0, 0, 0)
print("done")
""",
    forges="""
import os
for message in %r.split():
    os.write(3, bytes.fromhex(message))
print("went on")
""",
    reaches="""
import os
def reach(name, what):
    try: what()
    except BaseException: return
    print("REACHED", name)
reach("a file", lambda: open("/etc/passwd").read())
reach("a new file", lambda: open("/tmp/x", "w"))
reach("a folder", lambda: os.listdir("/"))
reach("a process", os.fork)
reach("another program", lambda: os.execv("/bin/true", ["true"]))
reach("a signal", lambda: os.kill(os.getppid(), 0))
reach("a pipe", os.pipe)
print("done")
""",
    stays="""
import os
os.write(3, bytes.fromhex("82%(done)s00"))
while True:
    frame = os.read(3, 1 << 18)
    if not frame: os._exit(0)
    if frame[1:].startswith(bytes.fromhex("%(job)s")): os.write(3, bytes.fromhex("83%(report)s0100"))
    if frame[1:].startswith(bytes.fromhex("%(go)s")): os.write(3, bytes.fromhex("82%(done)s00"))
""",
    outside="""
import os, socket
def reach(name, what):
    try: what()
    except OSError: return
    print("REACHED", name)
reach("a file", lambda: open("{secret}").read())
reach("a file to write", lambda: open("{secret}", "a"))
reach("a port", lambda: socket.create_connection(("127.0.0.1", {port}), 2))
reach("a process", lambda: os.kill({pid}, 0))
print("done")
""")

RUBY = Language(
    "ruby", "cordon-ruby", "unguarded-ruby",
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
                 sleeps="begin\n  puts 'on'\n  sleep 60\nrescue Interrupt\n  puts 'caught'\nend\n", ends="FINAL(x)\n", asks="p echo(5)['args']\n", variable="x\n", interrupt="Interrupt"),
    typed=("x = 6\ndef f(n)\n  n * 7\nend\nf(x)\n_ + 1\nputs 'a\nb'\n", "42\n43\na\nb\n"),
    crowds="""
mount, rest = RUBY_PLATFORM.start_with?('x86_64') ? [165, [321, 101, 425, 246]] : [40, [280, 117, 425, 104]]
def attempt(*words)
  syscall(*words)
rescue SystemCallError
end
1200.times { |i| attempt(mount, 'none', "/tmp/#{i}", 'tmpfs', 0, 0) }
rest.each { |number| attempt(number, 0, 0, 0, 0) }
puts 'done'
""",
    forges="""
channel = IO.for_fd(3, 'r+', autoclose: false)
%r.split.each { |message| channel.syswrite([message].pack('H*')) }
puts 'went on'
""",
    reaches="""
def reach(name)
  yield
  puts "REACHED #{name}"
rescue Exception
end
reach('a file') { File.read('/etc/passwd') }
reach('a new file') { File.write('/tmp/x', '') }
reach('a folder') { Dir.children('/') }
reach('a process') { fork }
reach('another program') { exec '/bin/true', 'true' }
reach('a program beside it') { `true` }
reach('a signal') { Process.kill(0, Process.ppid) }
reach('a pipe') { IO.pipe }
reach('a thread') { Thread.new { 1 }.join }
reach('a library') { require 'socket' }
reach('a system call') { syscall(RUBY_PLATFORM.start_with?('x86_64') ? 41 : 198, 1, 1, 0) }
puts 'done'
""",
    stays="""
channel = IO.for_fd(3, 'r+', autoclose: false)
say = ->(hex) { channel.syswrite([hex].pack('H*')) }
say.call('82%(done)s00')
loop do
  frame = channel.sysread(1 << 18).unpack1('H*')[2..]
  say.call('83%(report)s0100') if frame.start_with?('%(job)s')
  say.call('82%(done)s00') if frame.start_with?('%(go)s')
end
""",
    outside="""
require 'socket'
def reach(name)
  yield
  puts "REACHED #{name}"
rescue SystemCallError, SocketError
end
reach('a file') { File.read('{secret}') }
reach('a file to write') { File.open('{secret}', 'a') }
reach('a port') { Socket.tcp('127.0.0.1', {port}, connect_timeout: 2) }
reach('a process') { Process.kill(0, {pid}) }
puts 'done'
""")

ALL = (PYTHON, RUBY)
MATTER = {"seccomp.bpf", "seccomp.ptrace", "seccomp.io_uring_setup", "seccomp.kexec_load"}


def built(programs):
    return [language for language in ALL if (programs.bin / language.worker).exists()]
