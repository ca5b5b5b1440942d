# SPDX-License-Identifier: Apache-2.0
# frozen_string_literal: true

require "json"
require "socket"
require "tempfile"

# Code that a model wrote, run and judged by Cordon: docs/agents.md.
#
# Cordon.run, .check, .eval and .session use one connection of this process: to the socket that CORDON_SOCKET names, else to a
# `cordon serve --stdio` that is started at the first call. Threads may share a client: whoever waits for an answer reads, for
# the others too; the callbacks of a call run in the thread that made it. No thread is started here.
module Cordon
  META = "io.modelcontextprotocol/"
  REVISION = "2026-07-28"
  MESSAGE_MAX = 4 << 20 # bytes of one message; the server reads no longer one
  REPLY_MAX = 64 << 20 # bytes of a line of the server that we read
  DEPTH_MAX = 512 # of it: a value has at most 256
  TEXTS = %w[stdout stderr job_id session_id data].freeze # fields that are worked on here: nothing else may be in them
  PATIENCE = 120 # seconds without an answer, after which the server counts as gone
  END_SECONDS = 15 # cordond takes at most 10 s to leave
  LOOK = 1 # seconds between two looks of who waits at whether anybody reads
  GIVE_UP = 2 # seconds: a server that does not take within them that a call is given up loses its client
  NUMBER_MAX = (1 << 63) - 1 # the server reads no larger one, and cuts a limit to its own
  private_constant :META, :REVISION, :MESSAGE_MAX, :REPLY_MAX, :DEPTH_MAX, :TEXTS, :PATIENCE, :END_SECONDS, :LOOK, :GIVE_UP, :NUMBER_MAX

  # Whatever this library raises, but for wrong arguments and what a callback raises.
  class Error < StandardError; end

  # The server cannot be started or reached, has ended, or does not answer.
  class ServerGone < Error; end

  # The server does not know what it was asked, as JSON-RPC tells it; with code 0 its reply has no result.
  class ProtocolError < Error
    attr_reader :code

    def initialize(message, code)
      super(message)
      @code = code
    end
  end

  # With `check: true`: the result, which is not ok.
  class Failed < Error
    attr_reader :result

    def initialize(result)
      status = result.respond_to?(:status) ? result.status : "refused"
      reason = result.reason if result.respond_to?(:reason)
      super("#{status}: #{reason || result.text.strip}")
      @result = result
    end
  end

  # text: the whole result for a model to read; raw: the server's own object, with fields that this library does not know.
  ALWAYS = %i[text is_error raw].freeze
  DEFAULTS = {
    notes: [], violations: [], violations_total: 0, stdout: "", stderr: "", stdout_bytes: 0, stderr_bytes: 0, truncated: false,
    is_final: false, usage: {}, layers: {}, files: [], files_truncated: false, is_safe: false, blocked_operations: [], message: "",
    bytes: 0, sessions: [], status: "refused", names: [], matches: [], found: [], snapshots: [], cut: false
  }.freeze
  private_constant :DEFAULTS

  # What came of a run: docs/run.md.
  Result = Struct.new(:id, :status, :layer, :reason, :intake, :notes, :violations, :violations_total, :stdout, :stderr, :stdout_bytes,
                      :stderr_bytes, :truncated, :value, :is_final, :final, :error, :exit_code, :signal, :usage, :layers, :files,
                      :files_truncated, :snapshot, :session, :job_id, :elapsed_ms, *ALWAYS, keyword_init: true) do
    def ok?
      status == "ok"
    end

    # What was refused before there was a result has only words.
    def self.words(text)
      head, rest = text.split("\n", 2)
      return { "status" => head[8..], "reason" => rest.to_s.strip } if head.to_s.start_with?("status: ")

      { "reason" => text.strip }
    end
  end

  # What a judge found: docs/run.md.
  Report = Struct.new(:status, :layer, :is_safe, :risk_level, :blocked_operations, :message, :violations, *ALWAYS, keyword_init: true) do
    def self.words(text)
      { "message" => text.strip }
    end
  end

  # The value of a condition: docs/expr.md.
  Evaluation = Struct.new(:value, :type, :error, *ALWAYS, keyword_init: true) do
    def self.words(text)
      { "error" => { "type" => "refused", "message" => text.strip } }
    end
  end

  # What became of a file: docs/serve.md.
  FileInfo = Struct.new(:status, :reason, :source, :bytes, :data, :next_offset, *ALWAYS, keyword_init: true) do
    def self.words(text)
      { "reason" => text.strip }
    end
  end

  # What is in a folder: docs/serve.md.
  FileList = Struct.new(:status, :reason, :source, :names, :cut, *ALWAYS, keyword_init: true) do
    def self.words(text)
      { "reason" => text.strip }
    end
  end

  # What a search found: docs/serve.md.
  FileMatches = Struct.new(:status, :reason, :source, :matches, :found, :cut, *ALWAYS, keyword_init: true) do
    def self.words(text)
      { "reason" => text.strip }
    end
  end

  # What was done with the states of a workspace: docs/serve.md.
  SnapshotInfo = Struct.new(:status, :reason, :workspace, :id, :snapshots, :changes, :patch, :cut, *ALWAYS, keyword_init: true) do
    def self.words(text)
      { "reason" => text.strip }
    end
  end

  SessionInfo = Struct.new(:action, :session_id, :expires_in_s, :sessions, *ALWAYS, keyword_init: true) do
    def self.words(_text)
      {}
    end
  end

  # Lines over a socket. Any number of threads may write, one at a time reads.
  #
  # An exception of a signal handler may end a thread between any two steps, one of another thread (Timeout) where it is not put
  # off, and the next thread has to find everything in its place. So what the kernel gave is read into a buffer that stays, the
  # rest changes by one store, and where it is not known how much the kernel took, the connection is of no more use.
  class Lines
    PART = 1 << 16
    Message = Struct.new(:data, :sent, :unsure)
    Came = Struct.new(:lines, :parts, :fresh) # parts: of a line that has not ended; fresh: what was read, and not looked through
    private_constant :PART, :Message, :Came

    def initialize(connection)
      @connection = connection
      @writing = Mutex.new
      @message = Message.new("", 0, false) # the last one
      @came = Came.new([], [], String.new)
    end

    # Why it could not be sent; nil: it was. What another thread left in its middle goes before it. Where it could not be sent
    # nothing can follow, and the connection is to end.
    def transmit(data, limit)
      @writing.synchronize do
        why = put(@message, limit) if @message.sent.positive? || @message.unsure
        why || put(@message = Message.new(data, 0, false), limit)
      end
    end

    # Lines that came, for the reader to take.
    def come
      @came.lines
    end

    # How long the line is that has not ended.
    def unended
      @came.parts.sum(&:bytesize)
    end

    # Waits for more of the server; why none can come any more.
    def take(limit)
      came = @came
      if came.fresh.empty?
        return unless IO.select([@connection], nil, nil, wait(limit))

        got = @connection.read_nonblock(PART, came.fresh, exception: false)
        return if got == :wait_readable
        return "the server ended" unless got
      end
      @came = looked_through(came)
      nil
    rescue SystemCallError, IOError => e
      "the server is gone (#{e.message})"
    end

    private

    def wait(limit)
      [limit - Process.clock_gettime(Process::CLOCK_MONOTONIC), 0].max
    end

    def put(message, limit)
      while message.sent < message.data.bytesize
        return "a message was given up in its middle" if message.unsure
        next unless step(message) == :wait_writable
        return "the server does not read" unless IO.select(nil, [@connection], nil, wait(limit))
      end
      nil
    rescue SystemCallError, IOError => e
      "the server is gone (#{e.message})"
    end

    def step(message)
      Thread.handle_interrupt(Object => :never) do
        message.unsure = true
        done = @connection.sendmsg_nonblock(message.data.byteslice(message.sent..), Socket::MSG_NOSIGNAL, exception: false)
        message.sent += done unless done == :wait_writable
        message.unsure = false
        done
      end
    end

    # As few parts as there are doublings in them: a line that comes by single bytes does not take the square of its length.
    def looked_through(came)
      parts = [*came.parts, came.fresh]
      if came.fresh.include?("\n")
        *lines, rest = parts.join.split("\n", -1)
        return Came.new(came.lines + lines, [rest], String.new)
      end
      parts.push(parts.pop(2).join) while parts.size > 1 && parts[-2].bytesize <= parts[-1].bytesize
      Came.new(came.lines, parts, String.new)
    end
  end
  private_constant :Lines

  # A connection to `cordon serve`: to the socket of one that runs, or to one that is started for it, with options of
  # `cordon serve` such as ["--profile", "standard"]. It is one socket, also to a server that we start: its end reaches the
  # server where a forked process has a copy, and no write raises SIGPIPE in a program that has taken that signal back.
  class Client
    Call = Struct.new(:notes, :reply)
    private_constant :Call

    def initialize(socket: nil, program: "cordon", options: [], patience: PATIENCE)
      @patience = patience
      @number = 0
      @calls = {}
      @state = Mutex.new
      @told = ConditionVariable.new
      @reading = Mutex.new
      @reader = nil # the call that reads
      @pid = nil
      @owner = Process.pid
      socket ? connect(socket) : start(program, options)
      @lines = Lines.new(@connection)
    end

    # Gives the client to the block and closes it afterwards.
    def self.open(**options)
      client = new(**options)
      return client unless block_given?

      begin
        yield client
      ensure
        client.close
      end
    end

    # Whether calls can be made: not closed, not lost, and of this process.
    def usable?
      @gone.nil? && @owner == Process.pid
    end

    # Ends the connection, and with it this client's runs and sessions.
    def close
      @owner == Process.pid ? drop("the client is closed") : @gone ||= "the client is closed"
      @connection.close unless @connection.closed?
      return unless @pid && @owner == Process.pid && !@closed

      @closed = true
      reap
      @words.close!
    end

    # Runs a program. A refusal is a result, too; with check what is not ok raises Failed. Without wait a run that takes long
    # gives a result whose status is running, and a job_id for wait.
    def run(code, language: nil, session_id: nil, timeout_ms: nil, memory_mb: nil, max_output_chars: nil, wait: true, check: false,
            on_output: nil, on_progress: nil)
      arguments = { code: code, language: language, session_id: session_id, timeout_ms: timeout_ms, memory_mb: memory_mb,
                    max_output_chars: max_output_chars }
      perform(Result, "execute_code", arguments, wait: wait, check: check, on_output: on_output, on_progress: on_progress)
    end

    # The result of a run that was answered with a job; with cancel it is ended.
    def wait(job_id, cancel: false, check: false, on_output: nil, on_progress: nil)
      perform(Result, "wait_job", { job_id: job_id, cancel: cancel || nil }, check: check, on_output: on_output, on_progress: on_progress)
    end

    # Judges a program without running it.
    def check(code, language: nil)
      perform(Report, "check_code", { code: code, language: language })
    end

    # Evaluates a condition over a context: a hash, or JSON as a text.
    def eval(expression, context = nil)
      text = context.nil? || context.is_a?(String) ? context : JSON.generate(context)
      perform(Evaluation, "eval_expression", { expression: expression, context: text })
    end

    # A new interpreter that stays between calls; with a block it is closed afterwards.
    # In a workspace that the server gives, its files outlive it.
    def session(workspace: nil, language: nil, &block)
      Session.new(self, about_session("new", nil, workspace, language)).within(&block)
    end

    # The sessions of this client.
    def sessions
      about_session("list").sessions
    end

    # What cannot be done has no result that could be given, so it raises. For Session.
    def about_session(action, session_id = nil, workspace = nil, language = nil)
      perform(SessionInfo, "session", { action: action, session_id: session_id, workspace: workspace, language: language }, check: true)
    end

    # Likewise.
    def about_file(tool, **arguments)
      perform(FileInfo, tool, { **arguments, encoding: "base64" }, check: true)
    end

    # A refusal is a result here.
    def about_files(kind, tool, **arguments)
      perform(kind, tool, arguments)
    end

    private

    # --- the connection ---

    # UNIXSocket.new takes a server whose queue is full for one that has answered.
    def connect(path)
      limit = now + @patience
      @connection = Socket.new(:UNIX, :STREAM)
      begin
        @connection.connect_nonblock(Socket.pack_sockaddr_un(path))
      rescue Errno::EAGAIN
        raise if now >= limit

        sleep 0.01
        retry
      end
    rescue SystemCallError => e
      @connection&.close
      raise ServerGone, "#{path}: #{e.message}; start it: cordon serve --socket #{path}"
    end

    def start(program, options)
      own = options.any? { |o| o.start_with?("--answer") } ? [] : ["--answer", "1s"]
      @words = Tempfile.new("cordon-client").tap(&:unlink) # nothing is left of it, however our program ends
      @connection, theirs = UNIXSocket.pair
      # a session of its own: Control-C is for our program, which then cancels
      @pid = Process.spawn(program, "serve", "--stdio", *own, *options, in: theirs, out: theirs, err: @words.fileno, pgroup: true)
    rescue SystemCallError => e
      @words&.close!
      @connection&.close
      raise ServerGone, "#{program}: #{e.message}; is Cordon installed?"
    ensure
      theirs&.close
    end

    # The connection is of no more use: who waits at it is told, and what runs ends.
    def drop(why)
      @state.synchronize do
        @gone ||= why
        @told.broadcast
      end
      @connection.shutdown unless @connection.closed?
    rescue SystemCallError, IOError
      nil # the server was faster
    end

    def reap
      return if ended_within(END_SECONDS)

      Process.kill(:KILL, @pid)
      Process.wait(@pid)
    rescue Errno::ESRCH, Errno::ECHILD
      nil # the program has reaped it meanwhile
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    def lost(why)
      said = @pid && !@closed ? last_words : ""
      ServerGone.new(said.empty? ? why : "#{why}: #{said[-1000..] || said}")
    end

    # They come with its end, and are read beside its own position. Another thread may close the client meanwhile.
    def last_words
      ended_within(1)
      @words.pread(@words.size, 0).force_encoding("UTF-8").scrub.strip
    rescue SystemCallError, IOError
      ""
    end

    # Whether the server that we started has ended, and was reaped.
    def ended_within(seconds)
      limit = now + seconds
      until @ended || now > limit
        @ended = !Process.wait(@pid, Process::WNOHANG).nil?
        sleep 0.01 unless @ended
      end
      @ended
    rescue Errno::ECHILD # the program reaps all its children itself
      @ended = true
    end

    # Tells the server that nobody wants an answer. Where it does not take that, the connection ends, and with it what runs.
    def give_up(data)
      why = @lines.transmit(data, now + [GIVE_UP, @patience].min)
      drop(why) if why
    end

    # --- messages ---

    def line(message)
      data = "#{JSON.generate(message)}\n".b
      return data if data.bytesize <= MESSAGE_MAX

      raise ArgumentError, "a message has at most 4 MiB, and this one has #{data.bytesize} bytes"
    end

    def request(number, tool, arguments, progress)
      meta = { "#{META}protocolVersion" => REVISION, "#{META}clientCapabilities" => {} }
      meta["progressToken"] = number if progress
      given = arguments.compact.to_h { |name, value| [name, sent_as(name, value)] }
      line({ jsonrpc: "2.0", id: number, method: "tools/call", params: { name: tool, arguments: given, _meta: meta } })
    end

    # An argument as it is sent; what cannot be is named.
    def sent_as(name, value)
      return value.clamp(-NUMBER_MAX, NUMBER_MAX) if value.is_a?(Integer)
      return value unless value.is_a?(String)

      value = value.encoding == Encoding::BINARY ? value.dup.force_encoding(Encoding::UTF_8) : value.encode(Encoding::UTF_8)
      value.valid_encoding? ? value : raise(ArgumentError, "#{name} is not UTF-8")
    rescue EncodingError => e
      raise ArgumentError, "#{name} is not UTF-8 (#{e.message})"
    end

    def cancel(number)
      give_up(line({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: number } }))
    end

    # One look at what the server wrote; who waits is told. A line is kept until it was told.
    def read(limit)
      why = @lines.take(limit) if @lines.come.empty?
      @state.synchronize do
        @gone ||= why
        until @lines.come.empty?
          dispatch(message_of(@lines.come.first.dup.force_encoding(Encoding::UTF_8)))
          @lines.come.shift
        end
        raise ArgumentError, "it is longer than 64 MiB" if @lines.unended > REPLY_MAX
      rescue JSON::ParserError, ArgumentError => e
        @lines.come.clear
        @gone ||= "what the server said is no message (#{e.message.scrub[0, 200]})"
      ensure
        @told.broadcast
      end
    end

    # A line of the server, which may say anything.
    def message_of(line)
      raise ArgumentError, "it is no UTF-8" unless line.valid_encoding?

      message = JSON.parse(line, max_nesting: DEPTH_MAX)
      message.is_a?(Hash) ? message : raise(ArgumentError, "it is no object")
    end

    def dispatch(message)
      if message.key?("method")
        take_note(message["params"]) if message["method"] == "notifications/progress" && message["params"].is_a?(Hash)
      elsif message.key?("id") && message["id"].nil? # it could not read what we wrote
        @gone ||= "the server: #{refusal(message['error']).message}"
      elsif (call = @calls[message["id"]])
        call.reply ||= message
      end
    end

    def take_note(note)
      call = @calls[note["progressToken"]]
      call.notes[note["progress"]] = note if call && note["progress"].is_a?(Numeric)
    end

    # Until something came for this call: true. false: nothing did.
    def await(call, limit)
      lost = nil
      until told?(call)
        return false if now >= limit

        if becomes_reader?(call, lost)
          @reading.synchronize { read(limit) unless told?(call) }
        else
          lost = reader_of_others(call, limit)
        end
      end
      true
    ensure # also where another thread raises in this one, as Timeout does
      stop_reading(call)
    end

    def told?(call)
      call.notes.any? || call.reply || @gone
    end

    # One call at a time reads, for all. lost: who did, did not for LOOK seconds: its thread was interrupted before it could pass that on.
    def becomes_reader?(call, lost)
      @state.synchronize do
        @reader = nil if lost && @reader.equal?(lost) && !@reading.locked?
        @reader ||= call
        @reader.equal?(call)
      end
    end

    # Waits while another call reads; that call, if it was there for LOOK seconds.
    def reader_of_others(call, limit)
      from = now
      @state.synchronize do
        reader = @reader
        @told.wait(@state, (limit - from).clamp(0, LOOK)) if reader && !told?(call)
        now - from >= LOOK ? reader : nil
      end
    end

    def stop_reading(call)
      @state.synchronize do
        @reader = nil if @reader.equal?(call)
        @told.broadcast
      end
    end

    def ask(tool, arguments, on_progress)
      number, data, call = begin_call(tool, arguments, on_progress)
      answered = false
      why = @lines.transmit(data, now + @patience)
      if why
        drop(why)
        raise lost(@gone)
      end
      until call.reply
        unless await(call, now + @patience)
          cancel(number) # other calls may still be answered
          raise lost("no answer for #{@patience} s")
        end

        notes = @state.synchronize { call.notes.tap { call.notes = {} } }
        notes.each_value { |note| on_progress&.call(note["progress"], note["message"].to_s) }
        raise lost(@gone) if @gone && !call.reply && notes.empty?
      end
      answered = true
      call.reply
    rescue ServerGone
      answered = true
      raise
    ensure # Control-C, or a callback that raised: nobody wants the answer any more
      cancel(number) if number && !answered
      @state.synchronize { @calls.delete(number) }
    end

    def begin_call(tool, arguments, on_progress)
      # a forked copy would take its parent's answers
      raise ServerGone, "the client is of the process that made it: a forked one makes its own" if @owner != Process.pid

      @state.synchronize do
        raise lost(@gone) if @gone

        @number += 1
        call = Call.new({}, nil)
        data = request(@number, tool, arguments, on_progress)
        @calls[@number] = call
        return @number, data, call
      end
    end

    # One method: what takes long is answered with a job, which is waited for, and its output is told as it grows.
    def perform(kind, tool, arguments, wait: true, check: false, on_output: nil, on_progress: nil)
      told = { "stdout" => "", "stderr" => "" }
      job = nil
      finished = false
      until finished # no `loop`, which would take StopIteration of a callback for its end
        result = result_of(ask(tool, arguments, on_progress))
        content = result["structuredContent"] || {}
        job = content["status"] == "running" ? content["job_id"] : nil
        tell(told, content, on_output) if on_output
        if job && wait
          tool = "wait_job"
          arguments = { job_id: job }
          next
        end
        finished = true
      end
      answer(kind, result, check)
    rescue ServerGone, ProtocolError
      finished = true
      raise
    ensure
      abandon(job) if job && !finished
    end

    def result_of(reply)
      raise refusal(reply["error"]) if reply["error"]

      result = reply["result"]
      raise ProtocolError.new("the server's reply has no result", 0) unless result.is_a?(Hash)

      blocks = result.fetch("content", [])
      fields = result["structuredContent"] || {}
      good = blocks.is_a?(Array) && blocks.all?(Hash) && fields.is_a?(Hash) && TEXTS.all? { |name| fields[name].nil? || fields[name].is_a?(String) }
      good ? result : raise(ProtocolError.new("the server's result has not the form of one", 0))
    end

    def refusal(error)
      words, code = error.is_a?(Hash) ? error.values_at("message", "code") : [error, 0]
      ProtocolError.new((words || "an error without words").to_s, code.is_a?(Integer) ? code : 0)
    end

    # What was cut or redacted since is in the result alone.
    def tell(told, content, on_output)
      told.each_key do |stream|
        text = content[stream].to_s
        had = told[stream]
        next if text.length <= had.length || !text.start_with?(had)

        told[stream] = text
        on_output.call(stream, text[had.length..])
      end
    end

    def abandon(job)
      number = @state.synchronize { @number += 1 }
      give_up(request(number, "wait_job", { job_id: job, cancel: true }, false))
    end

    def answer(kind, result, check)
      text = (result["content"] || []).map { |block| block["text"].to_s }.join
      raw = result["structuredContent"] || kind.words(text)
      fields = (kind.members - ALWAYS).to_h { |name| [name, raw.fetch(name.to_s) { DEFAULTS[name].dup }] }
      value = kind.new(**fields, text: text, is_error: result["isError"] == true, raw: raw)
      raise Failed, value if check && value.is_error

      value
    end
  end

  # An interpreter whose variables and files live on between calls, until close, 30 minutes without a call, or the end of its
  # client. Made by client.session.
  class Session
    attr_reader :client, :id, :expires_in_s

    def initialize(client, info)
      raise ProtocolError.new("the server's reply has no session", 0) unless info.session_id

      @client = client
      @id = info.session_id
      @expires_in_s = info.expires_in_s
    end

    def run(code, language: nil, timeout_ms: nil, max_output_chars: nil, wait: true, check: false, on_output: nil, on_progress: nil)
      @client.run(code, language: language, session_id: @id, timeout_ms: timeout_ms, max_output_chars: max_output_chars, wait: wait,
                        check: check, on_output: on_output, on_progress: on_progress)
    end

    # Writes a file below /workspace, whole. What is refused raises Failed.
    def put(path, data)
      @client.about_file("write_file", session_id: @id, path: path, text: [data].pack("m0"))
    end

    # The bytes of a file below /workspace. What is refused raises Failed.
    def get(path)
      bytes = +"".b
      offset = nil
      loop do
        part = @client.about_file("read_file", session_id: @id, path: path, offset: offset)
        bytes << bytes_of(part)
        return bytes unless part.next_offset
        leads_on = part.next_offset.is_a?(Integer) && part.next_offset > offset.to_i
        raise ProtocolError.new("the server's part of a file does not lead on", 0) unless leads_on # it would never end

        offset = part.next_offset
      end
    end

    # What is in a folder below /workspace. A refusal is a result, too.
    def list(path = nil)
      @client.about_files(FileList, "list_files", session_id: @id, path: path)
    end

    # Lines that match a regular expression; with what: "names" files whose name matches a pattern of the shell.
    def search(pattern, path: nil, what: nil, ignore_case: false)
      @client.about_files(FileMatches, "search_files", session_id: @id, pattern: pattern, path: path, what: what,
                                                       ignore_case: ignore_case || nil)
    end

    # Names the present state of the session's workspace.
    def snapshot(name: nil, message: nil)
      @client.about_files(SnapshotInfo, "snapshot", session_id: @id, action: "create", name: name, message: message)
    end

    # The states of the session's workspace, the newest first.
    def snapshots
      @client.about_files(SnapshotInfo, "snapshot", session_id: @id, action: "list")
    end

    # What differs between two states: head~1 and head unless given.
    def diff(snapshot: nil, to: nil)
      @client.about_files(SnapshotInfo, "snapshot", session_id: @id, action: "diff", snapshot: snapshot, to: to)
    end

    # Makes the files those of an earlier state.
    def restore(snapshot)
      @client.about_files(SnapshotInfo, "snapshot", session_id: @id, action: "restore", snapshot: snapshot)
    end

    # A second session with the same variables and files; with a block it is closed afterwards.
    def fork(&block)
      Session.new(@client, @client.about_session("fork", @id)).within(&block)
    end

    # Raises KeyboardInterrupt, in other languages than Python Interrupt, in the call that runs: from another thread, or from a callback of it.
    def interrupt
      @client.about_session("interrupt", @id)
      nil
    end

    def close
      @client.about_session("close", @id)
      nil
    end

    def bytes_of(part)
      part.data.to_s.unpack1("m0")
    rescue ArgumentError
      raise ProtocolError.new("the server's part of a file is no base64", 0)
    end
    private :bytes_of

    # Itself; or what the block gives, and it is closed.
    def within
      return self unless block_given?

      begin
        yield self
      ensure
        close
      end
    end
  end

  @lock = Mutex.new

  class << self
    # The connection of this process. A process that was forked makes its own.
    def default
      @lock.synchronize do
        @default = Client.new(socket: ENV["CORDON_SOCKET"]) unless @default&.usable?
        @default
      end
    end

    def run(...)
      default.run(...)
    end

    def wait(...)
      default.wait(...)
    end

    def check(...)
      default.check(...)
    end

    def eval(...)
      default.eval(...)
    end

    def session(workspace: nil, language: nil, &block)
      default.session(workspace: workspace, language: language, &block)
    end
  end
end
