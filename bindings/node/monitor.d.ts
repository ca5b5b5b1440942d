// SPDX-License-Identifier: Apache-2.0
/** A generation watched while it is written: docs/monitor.md. */

export type Reason =
  | "none" | "high_entropy" | "entropy_spike" | "high_repetition" | "rising_perplexity" | "runaway_length" | "combined_signals";
export type Detector = "loop" | "counter" | "drift" | "length" | "threshold";
export type Setting =
  | "min_tokens_before_abort" | "entropy_threshold" | "entropy_spike_threshold" | "repetition_threshold" | "perplexity_window"
  | "max_length_multiplier" | "entropy_sustained_count" | "ngram_size" | "combined_threshold";

export interface MonitorOptions {
  tier?: "worker" | "coder" | "architect" | "ingest";
  task?: "reasoning" | "code" | "general";
  mode?: "default" | "literal";
  settings?: Partial<Record<Setting, number>>;
  /** tokens */
  expected?: number;
  /** tokens of the model, for the interval of an entropy that is told by the most probable tokens alone */
  vocabulary?: number;
}

export interface Distribution {
  /** all of them; a Float32Array is taken as it is */
  logits?: ArrayLike<number> | null;
  /** natural logarithms of the highest probabilities */
  topLogprobs?: ArrayLike<number> | null;
}

/** By its text, which may end anywhere, or by its number; a generation is either text or numbers. */
export type Token = Distribution & ({ text: string | Uint8Array; id?: undefined } | { id: number; text?: undefined });

export interface Verdict {
  abort: boolean;
  reason: Reason;
  detector: Detector | null;
  onset: number | null;
  onset_byte: number | null;
  period: number | null;
  /** what the end repeats token for token, whether it is cut for it or not */
  repeats: { onset: number; onset_byte: number; period: number; copies: number } | null;
  tokens: number;
  metrics: { entropy: number; spike: number; repetition: number; perplexity: number; trend: number; failure_prob: number };
  settings: Record<Setting, { value: number; from: "default" | "tier" | "task" | "option" }>;
}

export declare class Monitor {
  constructor(options?: MonitorOptions);
  /** Each says whether to abort. */
  text(text: string | Uint8Array): boolean;
  token(token: Token): boolean;
  distribution(logits: ArrayLike<number>): boolean;
  end(): Verdict;
  readonly verdict: Verdict;
  close(): void;
}

export interface LogitsProcessorOptions extends MonitorOptions {
  /** Text of tokens: with it tables and code are told from prose. */
  decode?: ((ids: number[]) => string) | null;
}

export declare class LogitsProcessor {
  constructor(eosTokenId: number, options?: LogitsProcessorOptions);
  process(ids: ArrayLike<number | bigint>, scores: Float32Array): Float32Array;
  readonly verdict: Verdict;
  close(): void;
}
