import { invalidArguments, invalidOptions, refuseOptions } from '../../core/errors/author-fault.js';
import { unlessAborted } from '../../core/kernel/async.js';
import { isRecord } from '../../core/kernel/json.js';
import {
  FUNCTION,
  listOf,
  NUMBER,
  type OptionRule,
  objectOf,
  oneOf,
  optionTable,
  PAUSE,
  type RulesOf,
  required,
  TEXT,
  WHOLE,
} from '../../core/kernel/options.js';

/** The fault of one request. */
export type FetchFault =
  /** No fault. */
  | { readonly kind: 'none' }
  /** The server responds with a status: 429 with `retry-after` in seconds, or 500. The real server is not called. */
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly retryAfter?: number;
      readonly body?: string;
    }
  /** The connection is lost before a response; the real server is not called. */
  | { readonly kind: 'reset' }
  /** The body breaks off after this many bytes, as with a lost connection. */
  | { readonly kind: 'cut'; readonly afterBytes: number }
  /** The last brace is missing in the JSON of the body, or of a stream's first event with JSON. */
  | { readonly kind: 'broken-json' }
  /** All calls of the reply have the id of the first. */
  | { readonly kind: 'duplicate-ids' }
  /** The request is delayed. */
  | { readonly kind: 'slow'; readonly ms: number };

/** Random faults, the same in each test run; `rate` is the share of requests with a fault. */
export interface RandomFaults {
  readonly seed: number;
  readonly rate: number;
  readonly faults: readonly FetchFault[];
}

/** Faults for the first requests in order, and none for later ones; or random faults. */
export type FaultPlan = readonly FetchFault[] | RandomFaults;

/** A `fetch` with injected faults. */
export interface FaultyFetch {
  (input: string | URL | Request, init?: RequestInit): Promise<Response>;
  /** The fault of each request so far, in order. */
  readonly injected: readonly FetchFault[];
}

type FaultOf<Kind extends FetchFault['kind']> = Extract<FetchFault, { readonly kind: Kind }>;

const STATUS: OptionRule = {
  accepts: (value) => Number.isInteger(value) && Number(value) >= 200 && Number(value) <= 599,
  fix: 'a status of a response, from 200 to 599',
};
const SHARE: OptionRule = {
  accepts: (value) => typeof value === 'number' && value >= 0 && value <= 1,
  fix: 'a number from 0 to 1',
};

const FIELDS: { readonly [Kind in FetchFault['kind']]: Omit<RulesOf<FaultOf<Kind>>, 'kind'> } = {
  none: {},
  status: { status: required(STATUS), retryAfter: PAUSE, body: TEXT },
  reset: {},
  cut: { afterBytes: required(WHOLE) },
  'broken-json': {},
  'duplicate-ids': {},
  slow: { ms: required(PAUSE) },
};
const KIND = required(oneOf(...Object.keys(FIELDS)));
const FORMS = new Map(
  Object.entries(FIELDS).map(([kind, fields]) => [
    kind,
    objectOf<FetchFault>({ kind: KIND, ...fields }, { fix: `{ kind: '${kind}', … }` }),
  ]),
);
const NO_FORM = objectOf<{ readonly kind: string }>({ kind: KIND }, { fix: "{ kind: 'reset' }, …" });

const FAULT: OptionRule = {
  accepts: (value) => formOf(value).accepts(value),
  fix: NO_FORM.fix,
  explain: (value, option) => formOf(value).explain?.(value, option) ?? [],
};
const FAULTS = listOf(FAULT, "[{ kind: 'status', status: 429, retryAfter: 1 }, { kind: 'reset' }]");
const RANDOM = optionTable<RandomFaults>('the plan of faultyFetch', {
  seed: required(NUMBER),
  rate: required(SHARE),
  faults: required(FAULTS),
});

function formOf(fault: unknown): OptionRule {
  return (isRecord(fault) && FORMS.get(String(fault.kind))) || NO_FORM;
}

/**
 * Wraps a `fetch` to inject faults between a client and a server: refusals, lost connections, broken replies. Wrap it
 * twice to give a request two faults.
 *
 * @throws InvalidOptionsError for an invalid plan.
 *
 * @example
 * ```ts
 * const fetch = faultyFetch(globalThis.fetch, [{ kind: 'status', status: 429, retryAfter: 1 }, { kind: 'reset' }]);
 * const provider = new OpenAIProvider({ fetch, maxRetries: 2 });
 * const run = await runToolLoop({ provider, model: 'gpt-5', tools }, messages);
 * expect(fetch.injected.map(({ kind }) => kind)).toEqual(['status', 'reset', 'none']);
 * ```
 */
export function faultyFetch(fetch: typeof globalThis.fetch, plan: FaultPlan): FaultyFetch {
  const faults = isRecord(plan)
    ? invalidOptions(plan, RANDOM)
    : invalidArguments({ of: 'faultyFetch', given: { plan }, rules: { plan: FAULTS } });
  refuseOptions([
    ...invalidArguments({ of: 'faultyFetch', given: { fetch }, rules: { fetch: FUNCTION } }),
    ...faults,
  ]);
  const injected: FetchFault[] = [];
  const random = randomFrom('seed' in plan ? plan.seed : 0);
  const next = (): FetchFault => {
    if (!('seed' in plan)) return plan[injected.length] ?? NO_FAULT;
    // Always draw both numbers, so that the rate does not change which fault a request gets.
    const [chance, choice] = [random(), random()];
    const fault = plan.faults[Math.floor(choice * plan.faults.length)];
    return chance < plan.rate && fault !== undefined ? fault : NO_FAULT;
  };
  const faulty = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const fault = next();
    injected.push(fault);
    const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined);
    signal?.throwIfAborted();
    if (fault.kind === 'reset') throw failedFetch('fetch failed', 'ECONNRESET', 'read ECONNRESET');
    if (fault.kind === 'slow') await pause(fault.ms, signal ?? undefined);
    if (fault.kind === 'status') {
      const { status, retryAfter, body } = fault;
      const headers = new Headers({ 'content-type': 'application/json' });
      if (retryAfter !== undefined) headers.set('retry-after', String(retryAfter));
      const text =
        body ?? JSON.stringify({ error: { message: `status ${status}, injected by faultyFetch` } });
      return new Response(isBodiless(status) ? null : text, { status, headers });
    }
    return spoiled(await fetch(input, init), fault);
  };
  return Object.assign(faulty, { injected });
}

const NO_FAULT: FetchFault = { kind: 'none' };

/** Numbers from 0 to 1, determined by a seed, from the generator mulberry32. */
export function randomFrom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  try {
    await (signal ? unlessAborted(over, signal) : over);
  } finally {
    clearTimeout(timer);
  }
}

/** An error of the socket, as `fetch` reports it. */
function failedFetch(message: string, code: string, reason: string): TypeError {
  return new TypeError(message, { cause: Object.assign(new Error(reason), { code }) });
}

/** A connection that is lost in the middle of a body. */
export function lostConnection(): TypeError {
  return failedFetch('terminated', 'UND_ERR_SOCKET', 'other side closed');
}

/** Whether a response with this status has no body. */
export function isBodiless(status: number): boolean {
  return [204, 205, 304].includes(status);
}

async function spoiled(response: Response, fault: FetchFault): Promise<Response> {
  if (response.body === null) return response;
  switch (fault.kind) {
    case 'cut':
      return withBody(response, cutAfter(response.body, fault.afterBytes));
    case 'broken-json': {
      let isBroken = false;
      const lackBrace = (json: string): string => {
        const text = isBroken ? json : json.replace(/\}\s*$/, '');
        isBroken ||= text !== json;
        return text;
      };
      return withBody(response, await rewritten(response, lackBrace));
    }
    case 'duplicate-ids':
      return withBody(response, await rewritten(response, createSameIds()));
    default:
      return response;
  }
}

function withBody(
  { status, statusText, headers }: Response,
  body: ReadableStream<Uint8Array> | string,
): Response {
  const kept = new Headers(headers);
  // These headers no longer match the body.
  for (const name of ['content-length', 'content-encoding']) kept.delete(name);
  return new Response(body, { status, statusText, headers: kept });
}

/** One chunk per pull, because an error discards buffered chunks. */
function cutAfter(body: ReadableStream<Uint8Array>, bytes: number): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let left = bytes;
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
    if (left === 0) {
      await reader.cancel();
      return controller.error(lostConnection());
    }
    const { done, value } = await reader.read();
    if (done) return controller.close();
    const part = value.subarray(0, left);
    left -= part.length;
    controller.enqueue(part);
  };
  return new ReadableStream({ pull, cancel: (reason) => reader.cancel(reason) }, { highWaterMark: 0 });
}

/** The body with rewritten JSON; for an event stream, the JSON of each event. */
async function rewritten(response: Response, rewrite: (json: string) => string): Promise<string> {
  const text = await response.text();
  if (!response.headers.get('content-type')?.includes('event-stream')) return rewrite(text);
  return text.replace(/^(data: ?)(\{.*)$/gm, (_line, name: string, json: string) => name + rewrite(json));
}

/** Recognizes calls by their shape in Chat Completions, Responses and Anthropic's Messages. */
function createSameIds(): (json: string) => string {
  let first: unknown;
  const same = (id: unknown): unknown => {
    if (typeof id !== 'string' || id === '') return id;
    first ??= id;
    return first;
  };
  const revive = (key: string, value: unknown): unknown => {
    if (key === 'tool_calls' && Array.isArray(value))
      return value.map((call: unknown) =>
        isRecord(call) && 'id' in call ? { ...call, id: same(call.id) } : call,
      );
    if (!isRecord(value)) return value;
    if (value.type === 'function_call') return { ...value, call_id: same(value.call_id) };
    return value.type === 'tool_use' ? { ...value, id: same(value.id) } : value;
  };
  return (json) => {
    try {
      return JSON.stringify(JSON.parse(json, revive));
    } catch {
      return json;
    }
  };
}
