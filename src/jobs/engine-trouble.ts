import { setTimeout as pause } from 'node:timers/promises';
import { SafeLog } from '../call/log.js';
import type { LogFields, Logger } from '../contract/ports.js';
import { unlessAborted, withinLimits } from '../kernel/async.js';
import { errorMessage } from '../kernel/error-message.js';
import { visibleLine } from '../kernel/visible-text.js';

/** The same text is written again after that, where it is still true. */
const SAY_AGAIN_MS = 300_000;

/** A logger of lines: what is wrong, in one each, and not at each look. What was said of a `subject` before counts. */
export function plainLogger(say: (line: string) => void): Logger {
  const said = new Map<unknown, { readonly text: string; readonly at: number }>();
  const warn = (message: string, fields: LogFields = {}): void => {
    const { subject = message } = fields;
    const text = visibleLine([message, ...toldOf(fields)].join(': '));
    const last = said.get(subject);
    if (last?.text === text && performance.now() - last.at < SAY_AGAIN_MS) return;
    said.set(subject, { text, at: performance.now() });
    say(text);
  };
  const isLevelEnabled = (level: string) => level === 'warn' || level === 'error';
  return { debug: () => {}, info: () => {}, warn, error: warn, isLevelEnabled };
}

/** What a line has to say of the fields: of which call it is, and why. */
function toldOf({ tool, callId, runId, reason, faults, told, error }: LogFields): readonly string[] {
  const place = runId === undefined ? callId : `${callId} of ${runId}`;
  const call = tool === undefined ? [] : [callId === undefined ? tool : `${tool} (${place})`];
  const why = error === undefined ? (reason ?? faults ?? told) : errorMessage(error);
  return [...call, ...(why === undefined ? [] : [why])].map(String);
}

/** Without a logger, jobs that are not done are a warning of the process. */
export function warningLogger(): Logger {
  return plainLogger((line) =>
    process.emitWarning(line, { type: 'ToolwrightWarning', code: 'TOOLWRIGHT_JOBS' }),
  );
}

/** An engine, and how it is found out whether it is there. */
interface WatchedEngine {
  /** `BullMQ, queue 'toolwright' in Redis at 127.0.0.1:6379` */
  readonly name: string;
  /** Resolves when the engine has answered something; may reject where it is away. */
  readonly ask: () => Promise<unknown>;
}

/** How long an engine with an error may take to answer until it counts as away. */
const ANSWERS_WITHIN_MS = 1_000;
const ASK_AGAIN_MS = 500;

/** Tells whoever does jobs, once, that the engine is away, and once that it is back. */
export class EngineTrouble {
  readonly #engine: WatchedEngine;
  readonly #listeners = new Set<{ readonly log: SafeLog }>();
  readonly #closed = new AbortController();
  #isLooking = false;

  constructor(engine: WatchedEngine) {
    this.#engine = engine;
  }

  /** Of the engine, as it is told of. */
  get name(): string {
    return this.#engine.name;
  }

  /** `logger` hears of it until what is given back is called. */
  tell(logger: Logger | undefined): () => void {
    const listener = { log: new SafeLog(logger) };
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Every connection reports the same trouble again and again: only the first report counts. */
  occurred(error: unknown): void {
    if (this.#isLooking || this.#listeners.size === 0 || this.#closed.signal.aborted) return;
    this.#isLooking = true;
    void this.#look(error).finally(() => {
      this.#isLooking = false;
    });
  }

  close(): void {
    this.#closed.abort();
  }

  async #look(error: unknown): Promise<void> {
    const { name } = this.#engine;
    const answer = this.#answer();
    const isThere = withinLimits(answer, { signal: undefined, timeoutMs: ANSWERS_WITHIN_MS });
    if (await isThere.catch(() => false)) return this.#warn(`${name}: ${errorMessage(error)}`);
    this.#warn(`${name} is away: ${errorMessage(error)}`);
    if (await answer) this.#warn(`${name} is back`);
  }

  /** True as soon as the engine answers, false where it is closed before. */
  async #answer(): Promise<boolean> {
    const { signal } = this.#closed;
    for (;;) {
      try {
        await unlessAborted(this.#engine.ask(), signal);
        return true;
      } catch {
        await pause(ASK_AGAIN_MS, undefined, { signal, ref: false }).catch(() => {});
      }
      if (signal.aborted) return false;
    }
  }

  #warn(message: string): void {
    if (this.#closed.signal.aborted) return;
    for (const { log } of this.#listeners) log.warn(message, { subject: this.#engine.name });
  }
}
