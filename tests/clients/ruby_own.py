# SPDX-License-Identifier: Apache-2.0
"""What the Ruby library has besides the cases that all libraries share: exceptions of signal handlers and of other threads.

Usage: ruby_own.py BUILD SOURCE."""
import json
import os
import pathlib
import subprocess
import sys

BUILD, SOURCE = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
sys.dont_write_bytecode = True
sys.path[:0] = [str(SOURCE / "tests/system")]
import mcptest  # noqa: E402
import tapsys  # noqa: E402

INTERRUPTS = 150
SCRIPT = r"""
require "cordon"
require "timeout"

class Enough < Exception; end

# One thread makes calls until it is interrupted, at a moment that comes by chance; meanwhile two others write and read files.
def beside_others(client, count, interrupted)
  chance = Random.new(7)
  wrong = Queue.new
  rounds = Queue.new
  over = false
  session = client.session
  text = Array.new(700_000) { |n| (97 + n % 26).chr }.join
  session.put("long", text)
  workers = 2.times.map do |n|
    Thread.new do
      until over
        session.put("file#{n}", text[0, 200_000])
        rounds << n
        wrong << "file#{n}: other bytes" if session.get("long") != text || session.get("file#{n}") != text[0, 200_000]
      end
    rescue StandardError => e
      wrong << "file#{n}: #{e.class}: #{e.message}"
    end
  end
  done = 0
  while done < count && wrong.empty?
    begin
      calls = -> { client.eval("1 + 1", done % 3 == 0 ? { "long" => text } : nil) while wrong.empty? }
      wrong << "nothing was interrupted" unless interrupted.call(chance.rand(0.0005..0.02), calls) == :interrupted
      done += 1
    rescue StandardError => e
      wrong << "the interrupted thread: #{e.class}: #{e.message}"
    end
  end
  over = true
  alive = workers.count { |w| w.join(60).nil? }
  words = Array.new(wrong.size) { wrong.pop }
  last = session.run("1 + 1").value if words.empty?
  { done: done, words: words, alive: alive, rounds: rounds.size.positive?, last: last }
end

def by_timeout(seconds, calls)
  Timeout.timeout(seconds) { calls.call }
rescue Timeout::Error
  :interrupted
end

def by_signal(seconds, calls)
  sender = Thread.new { sleep(seconds) && Process.kill(:USR1, Process.pid) }
  failed = nil
  begin
    begin
      calls.call
    rescue StandardError => e
      failed = e
    end
    sleep
  rescue Enough
    sender.join
    failed ? raise(failed) : :interrupted
  end
end

# A thread that waits for an answer which another reads, and does not get the processor until its time is over.
def too_late
  Cordon::Client.open do |client|
    client.instance_variable_set(:@reader, Object.new)
    call = client.class.send(:const_get, :Call).new({}, nil)
    client.send(:reader_of_others, call, Process.clock_gettime(Process::CLOCK_MONOTONIC) - 1)
  end
  puts JSON.generate("waited for nothing")
rescue StandardError => e
  puts JSON.generate("#{e.class}: #{e.message}")
end

if ARGV[0] == "too_late"
  too_late
  exit
end
trap(:USR1) { raise Enough }
left = ARGV[1].to_i
while left.positive?
  told = Cordon::Client.open(patience: 30) { |client| beside_others(client, left, method(ARGV[0])) }
  left -= [told[:done], 1].max
  puts JSON.generate(told)
end
"""


def interrupted(how):
    r = subprocess.run(["/usr/bin/ruby", "-W0", "-I", str(SOURCE / "bindings/ruby"), "-e", SCRIPT, how, str(INTERRUPTS)], env=os.environ, capture_output=True, text=True,
                       timeout=5 * mcptest.PATIENCE)
    return [json.loads(line) for line in r.stdout.splitlines()], r.stderr[-800:]


def lost(told):
    """A signal handler cut a message in its middle: the connection ends, all its threads are told why, and nothing else is wrong."""
    return told["words"] and all(w.endswith("Cordon::ServerGone: a message was given up in its middle") for w in told["words"]) and not told["alive"]


tap = tapsys.Tap()
programs = tapsys.Programs(BUILD)
os.environ.update(tapsys.clean_env({"PATH": f"{programs.bin}:/usr/bin:/bin"}))
GOOD = {"done": INTERRUPTS, "words": [], "alive": 0, "rounds": True, "last": "2"}
got, said = interrupted("by_timeout")
tap.eq(got, [GOOD], f"after {INTERRUPTS} exceptions of Timeout, each somewhere in a call, every thread has its answers, and the client goes on", said)
got, said = interrupted("by_signal")
tap.ok(got and sum(max(g["done"], 1) for g in got) >= INTERRUPTS and all(lost(g) or not g["words"] and not g["alive"] and g["last"] == "2" for g in got),
       f"after each of {INTERRUPTS} exceptions of a signal handler every thread has its answers, or is told that the connection is lost, and why", got, said)
got, said = interrupted("too_late")
tap.eq(got, ["waited for nothing"], "a thread whose time is over before it begins to wait ends its wait", said)
tap.done()
