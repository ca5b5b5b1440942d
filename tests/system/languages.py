# SPDX-License-Identifier: Apache-2.0
"""The languages that have a worker, for tests of mechanisms that each of them must have: one row each, and the same tests for all.

A row has programs in its language; what each of them does is said where it is used (mechanisms.py). A new language is a new row."""
import collections
import shutil

Language = collections.namedtuple("Language", "name worker lost attempts answers ends session typed crowds forges reaches stays outside armed", defaults=(None,))

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
# armed: JavaScript has no system calls to try: the worker that is put in place of its own where programs are to make some (arm).
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

JAVASCRIPT = Language(
    "javascript", "cordon-javascript", "unguarded-javascript", armed="armed-javascript",
    attempts="""
syscall('clone', 17, 0, 0, 0, 0);
syscall('socket', 2, 1, 0);
syscall('kill', syscall('getppid'), 9);
syscall('execve', '/bin/true', 0, 0);
syscall('chroot', '/tmp');
syscall('mknodat', -100, '/tmp/x', 0o20666, 259);
console.log('done');
""",
    answers=(("strict", "console.log([0, 1, 2].reduce((a, b) => a + b));\n[1, 2]\n"), ("strict", "console.log(readline());\n"), ("strict", "FINAL(6 * 7);\n"), ("strict", "console.log(Math.PI, 'ä', new Intl.NumberFormat('de').format(1.5));\n"),
             ("strict", "setTimeout(() => console.log('later'), 5);\nawait null;\nconsole.log(new Date(0).toLocaleDateString('en-US', { timeZone: 'UTC' }));\n"), ("strict", "let s = 0;\nfor (let i = 0; i < 3e5; i++) s += { i, j: [i] }.j[0];\ns\n"),
             ("strict", "const f = (n) => [n][['cons', 'tructor'].join('')];\ntry { (() => 0)[['cons', 'tructor'].join('')]('return 1')(); } catch (e) { console.log(e.name, e.message); }\n"),
             ("standard", "console.log(structuredClone(new Map([[1, 2]])), typeof Math.random(), crypto.randomUUID().length);\n"), ("open", "console.log(eval('1 + 1'), new Function('return 3')());\n"),
             ("strict", "eval('1')\n"), ("strict", "x = (\n"), ("standard", "import './missing.js';\n")),
    ends=(("strict", "null.x\n"), ("strict", "const f = (n) => f(n + 1) + 1;\nf(0);\n"), ("strict", "Promise.reject(new TypeError('late'));\n"), ("standard", "process.exitCode = 3;\n"), ("open", "setTimeout(() => process.exit(4), 1);\n"),
          ("standard", "await new Promise(() => {});\n"), ("strict", "throw { not: 'an error' };\n")),
    session=dict(binds="let x = 6;\nconst count = () => ++x;\nclass Kept {}\n", counts="count()\n", reads="console.log(readline());\n", refused="x = (\n", runs="console.log('on');\nfor (;;);\n",
                 sleeps="try {\n  console.log('on');\n  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60000);\n} catch (e) {\n  console.log('caught');\n}\n", ends="FINAL(x)\n",
                 asks="console.log(JSON.stringify(echo(5).args));\n", variable="x\n", interrupt="Interrupt"),
    typed=("let x = 6\nfunction f(n) {\n  return n * 7\n}\nf(x)\n_ + 1\nconsole.log(`a\nb`)\n", "42\n43\na\nb\n"),
    crowds="""
for (let i = 0; i < 1200; i++) syscall('mount', 'none', '/tmp/' + i, 'tmpfs', 0, 0);
for (const name of ['bpf', 'ptrace', 'io_uring_setup', 'kexec_load']) syscall(name, 0, 0, 0, 0);
console.log('done');
""",
    forges="""
for (const message of %r.split(' ')) {
  const bytes = Uint8Array.from(message.match(/../g), (h) => parseInt(h, 16));
  syscall('write', 3, bytes, bytes.length);
}
console.log('went on');
""",
    reaches="""
const room = new Uint8Array(256);
for (const [what, ...words] of [['a file', 'openat', -100, '/etc/passwd', 0, 0], ['a new file', 'openat', -100, '/tmp/x', 65, 0o600], ['a folder', 'getdents64', 0, room, 256], ['a process', 'clone', 17, 0, 0, 0, 0],
  ['another program', 'execve', '/bin/true', 0, 0], ['a signal', 'kill', syscall('getppid'), 0], ['a pipe', 'pipe2', room, 0], ['a socket', 'socket', 1, 1, 0], ['code', 'mmap', 0, 4096, 7, 34, -1, 0]])
  if (syscall(...words) >= 0) console.log('REACHED', what);
console.log('done');
""",
    stays="""
const say = (hex) => {
  const bytes = Uint8Array.from(hex.match(/../g), (h) => parseInt(h, 16));
  syscall('write', 3, bytes, bytes.length);
};
say('82%(done)s00');
const frame = new Uint8Array(1 << 18);
while (syscall('read', 3, frame, frame.length) > 0) {
  const hex = [...frame.slice(1, 9)].map((b) => b.toString(16).padStart(2, '0')).join('');
  if (hex.startsWith('%(job)s')) say('83%(report)s0100');
  if (hex.startsWith('%(go)s')) say('82%(done)s00');
}
""",
    outside="""
const s = syscall('socket', 2, 1, 0), at = new Uint8Array([2, 0, {port} >> 8, {port} & 255, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
if (syscall('openat', -100, '{secret}', 0, 0) >= 0) console.log('REACHED', 'a file');
if (syscall('openat', -100, '{secret}', 1025, 0) >= 0) console.log('REACHED', 'a file to write');
if (s >= 0 && syscall('connect', s, at, 16) >= 0) console.log('REACHED', 'a port');
if (syscall('kill', {pid}, 0) >= 0) console.log('REACHED', 'a process');
console.log('done');
""")

ALL = (PYTHON, RUBY, JAVASCRIPT)
MATTER = {"seccomp.bpf", "seccomp.ptrace", "seccomp.io_uring_setup", "seccomp.kexec_load"}


def built(programs):
    return [language for language in ALL if (programs.bin / language.worker).exists()]


def arm(programs):
    """From now on a program in each of the languages that are built can make system calls."""
    for language in built(programs):
        if language.armed:
            ours = programs.bin / language.worker
            ours.unlink()
            shutil.copy2(programs.probes / language.armed, ours)
