# SPDX-License-Identifier: Apache-2.0
# frozen_string_literal: true

# Does what tests/clients/clients.py says, a JSON object a line, with the Ruby library. ruby_driver.rb SOCKET|-
require "cordon"

class GivenUp < StandardError; end

def plain(value)
  value.is_a?(Struct) ? value.to_h.reject { |k, _| k == :raw } : value
end

# Raises what a call of a forked copy of the client raises; it is closed there, and not here.
def forked(client)
  pid = fork do
    client.run("1")
    exit!(0)
  rescue Cordon::ServerGone
    client.close
    exit!(3)
  end
  Process.wait(pid)
  raise Cordon::ServerGone, "in the forked process" if $?.exitstatus == 3
end

OPTIONS = ["--answer", "100ms", "--timeout", "10m", "--profile", "standard", "--workspaces", "stdio,socket"].freeze

# Whether a client closes while a forked process has a copy of it, and its server ends by itself: it is killed after 15 s.
def copied
  client = Cordon::Client.new(options: OPTIONS)
  client.run("1")
  ours, theirs = IO.pipe
  pid = fork do
    theirs.close
    ours.read # until its parent is done
    exit!(0)
  end
  began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  client.close
  { closed: Process.clock_gettime(Process::CLOCK_MONOTONIC) - began < 15 }
ensure
  theirs.close
  Process.wait(pid)
end

# How the calls of six threads end when the client is closed that they share.
def closing
  client = Cordon::Client.new(options: OPTIONS)
  begun = Queue.new
  threads = Array.new(6) do
    Thread.new do
      r = client.run("print('on', flush=True)\nwhile True: pass", on_output: ->(*) { begun << true })
      "#{r.status}: #{r.reason}"
    rescue StandardError => e
      "#{e.class.name.split('::').last}: #{e.message}"
    ensure
      begun << true # one that was refused never begins
    end
  end
  6.times { begun.pop }
  client.close
  { ends: threads.map(&:value).uniq }
end

def step(client, held, ask)
  place = ask["on"] ? held[ask["on"]] : client
  args = (ask["args"] || {}).transform_keys(&:to_sym)
  heard = args[:on_output]
  output = []
  progress = []
  interrupted = false
  args[:on_output] = lambda do |_stream, text|
    output << text
    raise GivenUp if heard == "cancel"
    raise StopIteration if heard == "stop"
  end if heard
  hears = args[:on_progress]
  args[:on_progress] = lambda do |ms, _message|
    progress << ms
    raise StopIteration if hears == "stop"

    if output.any? && !interrupted
      interrupted = true
      place.interrupt
    end
  end if args[:on_progress]
  first = %i[code job_id expression pattern].map { |k| args.delete(k) }.compact
  first << args.delete(:context) if ask["do"] == "eval"
  first = [args.delete(:path), args.delete(:data)&.unpack1("m")].compact if args.key?(:path) && ask["do"] != "search"
  first << args.delete(:snapshot) if ask["do"] == "restore"
  value = case ask["do"]
          when "forked" then forked(client)
          when "copied" then copied
          when "closing" then closing
          else place.public_send(ask["do"], *first, **args)
          end
  if value.is_a?(Cordon::Session)
    held[ask["as"]] = value
    value = { id: value.id, expires_in_s: value.expires_in_s }
  end
  value = { base64: [value].pack("m0") } if value.is_a?(String)
  { result: plain(value), output: output, progress: progress }
rescue StandardError => e
  { raised: e.class.name.split("::").last, message: e.message, result: e.respond_to?(:result) ? plain(e.result) : nil }
end

socket = ARGV[0] == "-" ? {} : { socket: ARGV[0] }
Cordon::Client.open(options: OPTIONS, **socket) do |client|
  held = {}
  while (line = $stdin.gets)
    puts JSON.generate(step(client, held, JSON.parse(line)))
    $stdout.flush
  end
end
