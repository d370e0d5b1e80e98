import { createResultChecker } from '../checking/checker.js';
import { summarizeFaults } from '../checking/faults.js';
import type { AnsweredQuestion, CallJournal, Suspension, Wait } from '../contract/call.js';
import type { JsonSchema, StandardSchema } from '../contract/json-schema.js';
import type { OncePart, Question } from '../contract/tool-context.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { plainJson, withoutUndefined } from '../kernel/json.js';
import { MILLISECONDS } from '../kernel/options.js';
import { readSchemaSource } from '../schema/schema-source.js';
import { expiryIn } from './waits.js';

/** What a replay needs to know of its call. */
interface ReplayOptions {
  readonly tool: string;
  readonly journal: CallJournal | undefined;
  /** Why nobody can be asked; `undefined` where a question suspends the call. */
  readonly refusal: () => string | undefined;
  /** Milliseconds for answers, where the question sets none. */
  readonly answerWithinMs?: number | undefined;
  /** The key of one piece of work of `once`. */
  readonly keyOf: (part: string) => string;
  /** Keeps what was done once at once; rejects where it cannot. */
  readonly keep?: (done: OnceEntry) => Promise<void>;
  /** Hears of what is not done or asked again. */
  readonly onReplay: (of: 'once' | 'answer', key: string) => void;
}

type OnceEntry = CallJournal['once'][number];

/**
 * `context.ask` and `context.once` of one call. What earlier runs of the method left in the journal replays;
 * what this run adds is kept for the next one. A question is known by its message, and by how often that was
 * asked before, so that questions asked side by side may come in any order.
 */
export class Replay {
  readonly #options: ReplayOptions;
  readonly #unused: Set<AnsweredQuestion>;
  readonly #finished: Map<string, OnceEntry>;
  readonly #works = new Map<string, Promise<unknown>>();
  readonly #asked = new Map<string, number>();
  readonly #waits: Wait[] = [];
  #refused: ToolwrightError | undefined;

  constructor(options: ReplayOptions) {
    this.#options = options;
    this.#unused = new Set(options.journal?.answers);
    this.#finished = new Map(options.journal?.once.map((entry) => [entry.key, entry]));
  }

  /** Whether the method asked what nobody has answered yet. */
  get isSuspended(): boolean {
    return this.#waits.length > 0;
  }

  /** The error of a question that could not be asked: the call's result, whatever the method made of it. */
  get refused(): ToolwrightError | undefined {
    return this.#refused;
  }

  /** The answer where there is one; otherwise the call is suspended, or fails where nobody can be asked. */
  async ask(question: Question): Promise<unknown> {
    const { message, schema, revive, expiresInMs = this.#options.answerWithinMs } = readQuestion(question);
    const index = this.#asked.get(message) ?? 0;
    this.#asked.set(message, index + 1);
    const answered = [...this.#unused].find((entry) => entry.message === message && entry.index === index);
    if (answered === undefined)
      throw this.#suspend({ kind: 'question', index, message, schema, ...expiryIn(expiresInMs) });
    this.#unused.delete(answered);
    // The question may say whose it is: only its number is told.
    this.#options.onReplay('answer', String(index));
    return revive(plainJson(answered.value));
  }

  /**
   * The value of finished work, or of work done now; as JSON gives it in both cases, so that a replay agrees
   * with the first run. Work that failed is not finished.
   */
  async once<Value>(given: string, work: (part: OncePart) => Value | Promise<Value>): Promise<Value> {
    const key = keyOf(given);
    const finished = this.#finished.get(key);
    if (finished !== undefined) {
      if (!this.#works.has(key)) this.#options.onReplay('once', key);
      return plainJson(finished.value) as Value;
    }
    let running = this.#works.get(key);
    if (running === undefined) {
      running = this.#finish(key, work);
      this.#works.set(key, running);
      running.catch(() => this.#works.delete(key));
    }
    return running as Promise<Value>;
  }

  /** What the call waits for and what is to be given back; waits itself for `once` work that is under way. */
  async suspension(args: CallJournal['arguments']): Promise<Suspension> {
    await Promise.allSettled(this.#works.values());
    const { journal, tool } = this.#options;
    const [lost] = this.#unused;
    if (lost !== undefined) {
      throw new ToolwrightError(
        'InvalidAnswer',
        `'${tool}' asked "${this.#waits[0]?.message}" and no longer "${lost.message}", which was answered; a method that asks must ask the same when it is run again.`,
      );
    }
    const { answers = [], ...known } = journal ?? {};
    return {
      waits: this.#waits,
      journal: { ...known, arguments: args, answers, once: [...this.#finished.values()] },
    };
  }

  #suspend({ schema, ...wait }: Wait): Error {
    const reason = this.#options.refusal();
    if (reason !== undefined) {
      this.#refused ??= new ToolwrightError('NotExecutableHere', reason);
      return this.#refused;
    }
    this.#waits.push(schema === undefined ? wait : { ...wait, schema });
    return new CallSuspended(this.#options.tool);
  }

  async #finish(key: string, work: (part: OncePart) => unknown): Promise<unknown> {
    if (typeof work !== 'function') throw new TypeError(`context.once('${key}'): its work is a function`);
    const { keyOf, keep } = this.#options;
    const part: OncePart = {
      get idempotencyKey() {
        return keyOf(key);
      },
    };
    const given: unknown = await work(part);
    const text: string | undefined = JSON.stringify(given);
    if (given !== undefined && text === undefined)
      throw new TypeError(`context.once('${key}'): its value cannot be written as JSON`);
    const value: unknown = text === undefined ? undefined : JSON.parse(text);
    const done = withoutUndefined({ key, value });
    this.#finished.set(key, done);
    await keep?.(done);
    // What the method does to its copy is not what the work gave.
    return plainJson(value);
  }
}

/** Kept with the run, so it is text; another object of the same text would be taken for done. */
function keyOf(given: unknown): string {
  if (typeof given === 'string' || typeof given === 'number') return String(given);
  throw new TypeError(
    `context.once: its key is a text, not ${given === null ? 'null' : `a ${typeof given}`}`,
  );
}

/**
 * What `context.ask` throws where the answer is not there yet: it ends the method, so that what it holds is
 * given back by its `finally`s. A method that catches it is suspended all the same.
 */
export class CallSuspended extends Error {
  constructor(tool: string) {
    super(`The call of '${tool}' is suspended until its question is answered; let this error pass.`);
  }
}

/** A question as a run can hand it on. */
interface ReadQuestion extends Pick<Question, 'expiresInMs'> {
  readonly message: string;
  readonly schema?: JsonSchema;
  /** The answer as the method takes it; rejects where the author's own schema does not take it. */
  readonly revive: (value: unknown) => Promise<unknown>;
}

/** Reads what a method asks. Throws where its schema is not one: that is the tool's own mistake, and fails the call. */
function readQuestion(question: Question): ReadQuestion {
  const { message, schema: source, expiresInMs } = Object(question) as Partial<Question>;
  if (typeof message !== 'string' || message.trim() === '')
    throw new TypeError('context.ask: a question needs a `message`');
  if (expiresInMs !== undefined && !MILLISECONDS.accepts(expiresInMs))
    throw new TypeError(`context.ask: its \`expiresInMs\` is ${MILLISECONDS.fix}`);
  if (source === undefined) return { message, expiresInMs, revive: async (value) => value };
  const read = readSchemaSource(source);
  if (!read.ok) throw new TypeError(`context.ask: its \`schema\` ${read.problem}; give ${read.fix}`);
  const { schema, standard } = read;
  return {
    message,
    schema,
    expiresInMs,
    revive: async (value) => (standard ? parse(standard, value) : fitting(schema, value)),
  };
}

async function parse(standard: StandardSchema, value: unknown): Promise<unknown> {
  const result = await standard['~standard'].validate(value);
  if (result.issues === undefined) return result.value;
  throw unfitting(result.issues.map((issue) => issue.message));
}

/** The answer was checked when it came, but another version of the method may have asked for something else. */
function fitting(schema: JsonSchema, value: unknown): unknown {
  const faults = createResultChecker(schema)(value);
  if (faults.length === 0) return value;
  throw unfitting([summarizeFaults(faults)]);
}

function unfitting(problems: readonly string[]): ToolwrightError {
  return new ToolwrightError(
    'InvalidAnswer',
    `The answer does not fit what was asked for: ${problems.join('; ')}`,
  );
}
