// SPDX-License-Identifier: Apache-2.0
export interface Answer {
  /** The whole result for a model to read. */
  text: string;
  is_error: boolean;
}

export interface Violation {
  layer: string;
  rule: string;
  detail: string;
  line: number | null;
  column?: number | null;
  hint: string | null;
  [more: string]: unknown;
}

export interface RunError {
  category: string;
  type: string;
  message: string;
  line: number | null;
  hint?: string;
  retry_after_s?: number;
}

/** What came of a run: docs/run.md. */
export interface Result extends Answer {
  id: string | null;
  status: string;
  layer: string | null;
  reason: string | null;
  intake: Record<string, unknown> | null;
  notes: string[];
  violations: Violation[];
  violations_total: number;
  stdout: string;
  stderr: string;
  stdout_bytes: number;
  stderr_bytes: number;
  truncated: boolean;
  value: string | null;
  is_final: boolean;
  final: string | null;
  error: RunError | null;
  exit_code: number | null;
  signal: number | null;
  usage: Record<string, unknown>;
  layers: Record<string, string>;
  files: Record<string, unknown>[];
  files_truncated: boolean;
  snapshot: Record<string, unknown> | null;
  session: string | null;
  job_id: string | null;
  elapsed_ms: number | null;
}

/** What a judge found: docs/run.md. */
export interface Report extends Answer {
  status: string;
  layer: string | null;
  is_safe: boolean;
  risk_level: string | null;
  blocked_operations: string[];
  message: string;
  violations: Violation[];
}

/** The value of a condition: docs/expr.md. An integer past 2^53 is rounded, as JSON is in JavaScript. */
export interface Evaluation extends Answer {
  value: unknown;
  type: string | null;
  error: Record<string, unknown> | null;
}

/** What became of a file: docs/serve.md. */
export interface FileInfo extends Answer {
  status: string;
  reason: string | null;
  source: string | null;
  bytes: number;
  data: string | null;
  next_offset: number | null;
}

/** What is in a folder: docs/serve.md. */
export interface FileList extends Answer {
  status: string;
  reason: string | null;
  source: string | null;
  names: Record<string, unknown>[];
  cut: boolean;
}

/** What a search found: docs/serve.md. */
export interface FileMatches extends Answer {
  status: string;
  reason: string | null;
  source: string | null;
  matches: Record<string, unknown>[];
  found: Record<string, unknown>[];
  cut: boolean;
}

/** What was done with the states of a workspace: docs/serve.md. */
export interface SnapshotInfo extends Answer {
  status: string;
  reason: string | null;
  workspace: string | null;
  id: string | null;
  snapshots: Record<string, unknown>[];
  changes: Record<string, unknown> | null;
  patch: string | null;
  cut: boolean;
}

export interface SessionInfo extends Answer {
  action: string;
  session_id: string | null;
  expires_in_s: number | null;
  sessions: Record<string, unknown>[];
}

export interface Watch {
  /** What is not ok throws Failed. */
  check?: boolean;
  /** What was printed since the last call. */
  on_output?: (stream: "stdout" | "stderr", text: string) => void;
  /** For how many milliseconds it has been running. */
  on_progress?: (ms: number, message: string) => void;
  /** Aborted: the run ends, and the call throws the signal's reason. */
  signal?: AbortSignal;
}

export interface SessionRunOptions extends Watch {
  language?: string;
  timeout_ms?: number;
  max_output_chars?: number;
  /** false: a run that takes long gives a result with a job_id instead. */
  wait?: boolean;
}

export interface RunOptions extends SessionRunOptions {
  session_id?: string;
  memory_mb?: number;
}

export interface WaitOptions extends Watch {
  cancel?: boolean;
}

export interface SessionOptions {
  /** One that the server gives; its files outlive the session. */
  workspace?: string;
  /** What it runs; Python unless it says otherwise. */
  language?: string;
}

export interface SearchOptions {
  /** Below /workspace. */
  path?: string;
  /** "lines", or "names" of files. */
  what?: string;
  ignore_case?: boolean;
}

export interface SnapshotOptions {
  /** To restore it by. */
  name?: string;
  message?: string;
}

export interface DiffOptions {
  /** The older one; head~1 unless given. */
  snapshot?: string;
  to?: string;
}

export interface CheckOptions {
  language?: string;
}

export interface ClientOptions {
  /** The path of the socket of a server that runs. Without it, one is started. */
  socket?: string | null;
  program?: string;
  /** Of `cordon serve`, for one that is started. */
  options?: string[];
  /** Milliseconds without an answer, after which the server counts as gone. */
  patience?: number;
}

export declare class Client {
  constructor(options?: ClientOptions);
  run(code: string, options?: RunOptions): Promise<Result>;
  wait(job_id: string, options?: WaitOptions): Promise<Result>;
  check(code: string, options?: CheckOptions): Promise<Report>;
  eval(expression: string, context?: object | string | null): Promise<Evaluation>;
  session(options?: SessionOptions): Promise<Session>;
  sessions(): Promise<Record<string, unknown>[]>;
  /** Whether calls can be made: not closed, and not lost. */
  usable(): boolean;
  close(): Promise<void>;
}

export declare class Session {
  private constructor();
  readonly client: Client;
  readonly id: string;
  readonly expires_in_s: number | null;
  run(code: string, options?: SessionRunOptions): Promise<Result>;
  put(path: string, data: ArrayBufferView | ArrayBuffer | string): Promise<FileInfo>;
  get(path: string): Promise<Uint8Array>;
  list(path?: string): Promise<FileList>;
  search(pattern: string, options?: SearchOptions): Promise<FileMatches>;
  snapshot(options?: SnapshotOptions): Promise<SnapshotInfo>;
  snapshots(): Promise<SnapshotInfo>;
  diff(options?: DiffOptions): Promise<SnapshotInfo>;
  restore(snapshot: string): Promise<SnapshotInfo>;
  fork(): Promise<Session>;
  interrupt(): Promise<void>;
  close(): Promise<void>;
}

export declare class CordonError extends Error {}
export declare class ServerGone extends CordonError {}
export declare class ProtocolError extends CordonError {
  code: number;
}
export declare class Failed extends CordonError {
  result: Result | SessionInfo | FileInfo;
}

export declare function defaultClient(): Client;
export declare function run(code: string, options?: RunOptions): Promise<Result>;
export declare function wait(job_id: string, options?: WaitOptions): Promise<Result>;
export declare function check(code: string, options?: CheckOptions): Promise<Report>;
declare function evaluate(expression: string, context?: object | string | null): Promise<Evaluation>;
export { evaluate as eval };
