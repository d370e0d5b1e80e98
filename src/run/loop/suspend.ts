import type { CallRecord, PendingCall, Wait } from '../../core/contract/call.js';
import type { JsonSchema } from '../../core/contract/json-schema.js';
import {
  NEWEST_STATE_VERSION,
  type RunState,
  type StoredCall,
  type StoredCallRecord,
  type StoredWaitingCall,
} from '../../core/contract/run-state.js';
import { ToolResult } from '../../core/contract/tool-result.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { cached } from '../../core/kernel/cached.js';
import { canonicalJson, isPlainData, plainJson, withoutUndefined } from '../../core/kernel/json.js';
import { nodeCrypto } from '../../core/kernel/node-module.js';
import { createResultChecker, type ResultChecker } from '../../tools/checking/checker.js';
import { type CallPlace, jsonDigest } from '../call/effect-key.js';
import { storedResult } from '../call/result-text.js';
import { historyFaults } from './given-history.js';
import type { LoopRun, RunProgress } from './loop-run.js';
import { type ParsedCall, parseCall } from './messages.js';

const checkers = new WeakMap<JsonSchema, ResultChecker>();

function formFaults(value: unknown, schema: JsonSchema): ReturnType<ResultChecker> {
  return cached(checkers, schema, createResultChecker)(value);
}

/** @throws ToolwrightError `InvalidState` (515) for a value that comes from outside and has another form. */
export function checkForm(value: unknown, schema: JsonSchema, what: string): void {
  const faults = formFaults(value, schema);
  if (faults.length === 0) return;
  const shown = faults.slice(0, 5).map(({ path, message }) => `${path || 'it'} ${message}`);
  throw invalidState(`This is not ${what} of this version: ${shown.join('; ')}.`);
}

/**
 * The state of a run that waits, as independent plain JSON; if its budget asks for more, with that question. Returns
 * `undefined` if JSON cannot represent it, for example because of too deeply nested arguments, or if it would not be a
 * valid state.
 */
export function suspendRun(
  run: LoopRun,
  given: RunState['open'],
  pending?: readonly PendingCall[],
): RunState | undefined {
  const { config, record, owner, runId, iterations, budget } = run;
  try {
    const question = budget?.questionBefore(iterations);
    const open = question === undefined ? given : { ...given, calls: [...given.calls, question] };
    const written: RunState = {
      version: stateVersion({ ...record, open }),
      runId,
      revision: (record?.revision ?? 0) + 1,
      ...progressOf(run),
      open,
      pending: pending ?? openWaits({ runId, iterations, open }).map((wait) => wait.pending),
    };
    const key = { secret: config.stateSecret, isOwned: owner !== undefined };
    const state = signState(plainJson(written) as RunState, key);
    // A state that could not be resumed is not returned: the calls are answered instead.
    return formFaults(state, RUN_STATE_SCHEMA).length === 0 ? state : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The lowest version for a state: older ones have no runs inside calls (4), budget questions (5), refusals that a
 * method handles (6), or runs of one call (7).
 */
export function stateVersion({
  open: { calls },
  isOneCall,
}: Pick<RunState, 'open' | 'isOneCall'>): 3 | 4 | 5 | 6 | 7 {
  if (isOneCall) return 7;
  const isRefused = (call: StoredCall) =>
    'journal' in call && call.journal?.answers.some(({ refused }) => refused);
  if (calls.some(isRefused)) return 6;
  if (calls.some((call) => 'asks' in call)) return 5;
  return calls.some((call) => 'inner' in call && call.inner !== undefined) ? 4 : 3;
}

/** The progress of a run; its parts are not copied. */
export function progressOf(run: LoopRun): RunProgress {
  const { budget, config, owner, turnOf, tools, guard } = run;
  const place = run.trace?.place;
  const { channel, chatId, conversationId } = run.scope;
  const scope = withoutUndefined({ channel, chatId, conversationId });
  return withoutUndefined({
    owner,
    scope: Object.keys(scope).length === 0 ? undefined : scope,
    turnOf,
    isOneCall: run.record?.isOneCall,
    // Tools that were registered during the run also belong to it.
    tools: [...new Set([...run.offer.order, ...tools.list()])],
    model: config.model,
    messages: run.messages,
    toolCalls: run.toolCalls.map((record) => storedRecord(record)),
    iterations: run.iterations,
    usage: run.usage,
    ...budget?.progress,
    retries: run.retries.spent,
    guard: guard?.memory,
    checkpoint: config.checkpoint === 'suspend' ? undefined : config.checkpoint,
    trace: place && { ...place, at: Date.now() },
  });
}

/** A call in the form for the state of a run. */
export function storedCall(call: ParsedCall): StoredCall {
  const { id, name, providerItems, wire, text, record, suspension, inner } = call;
  // As the model sent them, even if the tool has changed the object since. Parts that JSON cannot represent are
  // omitted.
  const sent = typeof call.arguments === 'string' || text === undefined ? call.arguments : JSON.parse(text);
  const args = (jsonPart(sent) ?? '') as ParsedCall['arguments'];
  const items = withoutUndefined({ providerItems, wire });
  if (record !== undefined) return { status: 'settled', record: storedRecord(record, args), ...items };
  if (suspension === undefined) return { status: 'held', id, name, arguments: args, ...items };
  const runs = inner?.length ? { inner } : {};
  return { status: 'waiting', id, name, arguments: args, ...suspension, ...runs, ...items };
}

/** A stored call, to be executed again unless it has its answer. */
export function restoredCall(stored: StoredCall, place: CallPlace): ParsedCall {
  const { wire } = stored;
  if (stored.status === 'settled') {
    const record = restoredRecord(stored.record);
    const { id, name, rawArguments } = record;
    const sent = { id, name, arguments: rawArguments as ParsedCall['arguments'] };
    return { ...parseCall({ ...sent, providerItems: stored.providerItems }, place), record, wire };
  }
  const call: ParsedCall = { ...parseCall(stored, place), wire };
  if (stored.status === 'held') return call;
  const { journal, inner } = stored;
  const known = { ...call, journal, inner };
  if (stored.status === 'waiting')
    return stored.waits.length > 0
      ? { ...known, suspension: { waits: stored.waits, journal: stored.journal } }
      : known;
  return { ...known, hasBegun: true, asJob: stored.asJob ?? false, readOnly: stored.readOnly };
}

/** The record of a call in the form for the state of a run. */
export function storedRecord(
  record: CallRecord,
  rawArguments: unknown = jsonPart(record.rawArguments),
): StoredCallRecord {
  const { arguments: args, result } = record;
  return {
    ...record,
    rawArguments,
    arguments: jsonPart(args) as StoredCallRecord['arguments'],
    result: storedResult(result),
  };
}

/** A part of a value that is later written as JSON; only parts that JSON would change or refuse are copied. */
export function jsonPart(value: unknown): unknown {
  if (typeof value === 'string') return value;
  return typeof value === 'object' && value !== null && isPlainData(value) ? value : plainJson(value);
}

/** The record of a call from the state of a run; its error, if it had one, is lost. */
export function restoredRecord({ result, ...record }: StoredCallRecord): CallRecord {
  return { ...record, result: new ToolResult(result) };
}

/** A wait of a suspended run, with its call. */
interface OpenWait {
  readonly pending: PendingCall;
  readonly call: StoredWaitingCall;
  readonly wait: Wait;
}

/** The waits of a state, in the order of its calls. */
export function openWaits(state: Pick<RunState, 'runId' | 'iterations' | 'open'>): readonly OpenWait[] {
  return state.open.calls.flatMap((call) =>
    call.status === 'waiting'
      ? call.waits.map((wait) => ({ call, wait, pending: pendingCall(state, call, wait) }))
      : [],
  );
}

/** The waits of a call of a running run; empty if JSON cannot represent the call, because it then cannot wait. */
export function pendingOf(run: LoopRun, call: ParsedCall): readonly PendingCall[] {
  try {
    const open = { content: '', calls: [storedCall(call)] };
    return openWaits({ ...run, open }).map(({ pending }) => pending);
  } catch {
    return [];
  }
}

function pendingCall(
  state: Pick<RunState, 'runId' | 'iterations'>,
  { id: callId, name: tool, journal }: StoredWaitingCall,
  { index, inner, onRefusal: _refusal, ...wait }: Wait,
): PendingCall {
  const { kind, message, schema } = wait;
  const { arguments: args } = journal;
  // Includes the iteration, because models reuse ids, and an approval of one call must never count for a later one.
  const place = [state.runId, state.iterations, callId, tool, args, kind, index];
  const about = inner === undefined ? [...place, message, schema] : [...place, message, schema, inner.id];
  const digest = jsonDigest(about).slice(0, 22);
  const asked = { id: `${kind}_${digest}`, callId, tool, arguments: args, ...withoutUndefined(wait) };
  if (inner === undefined) return asked;
  const { run: _, id: __, path = [], ...innermost } = inner;
  return { ...asked, ...innermost, path: [{ callId, tool }, ...path] };
}

export interface ValidState {
  readonly state: RunState;
  readonly waits: readonly OpenWait[];
}

/**
 * Validates the state of a suspended run, which comes from outside, and returns a copy, because tools may change
 * their data. Versions 1 to 7 are accepted.
 *
 * @throws ToolwrightError `InvalidState` (515) if it is not a state, or if it was changed: with a secret in any part,
 * without a secret as far as `pending` shows it.
 */
export function validateState(given: unknown, secret: string | undefined): ValidState {
  if (given === undefined) throw invalidState('There is no state: the run was not suspended.');
  checkForm(given, RUN_STATE_SCHEMA, 'the state of a suspended run');
  const state = plainJson(given) as RunState;
  if (secret !== undefined && !isSignedWith(state, secret))
    throw invalidState('The state of the run was changed, or signed with another secret.');
  const [fault] = historyFaults(state.messages);
  if (fault !== undefined) throw invalidState(`The history of the state is invalid: ${fault.problem}.`);
  const waits = openWaits(state);
  if (canonicalJson(waits.map(({ pending }) => pending)) !== canonicalJson(state.pending))
    throw invalidState('The state of the run was changed: its pending calls do not match its open message.');
  return { state, waits };
}

export function invalidState(message: string): ToolwrightError {
  return new ToolwrightError('InvalidState', message);
}

interface Signable {
  readonly signature?: string;
}

let madeSecret: string | undefined;

/**
 * Signs data that contains owners if no secret is configured: this process recognizes its own states, and all others
 * count as unsigned. Created on first use, because Workers allow no randomness before that.
 */
function processSecret(): string {
  madeSecret ??= nodeCrypto().randomBytes(32).toString('base64url');
  return madeSecret;
}

interface SigningKey {
  readonly secret: string | undefined;
  /** It contains owners: it is signed without a configured secret, too. */
  readonly isOwned: boolean;
}

/** The state with its signature; without a signature if it needs none and there is no secret. */
export function signState<State extends Signable>(state: State, { secret, isOwned }: SigningKey): State {
  const { signature: _, ...unsigned } = state;
  const key = secret ?? (isOwned ? processSecret() : undefined);
  const signature = key === undefined ? {} : { signature: signatureOf(unsigned, key) };
  return { ...unsigned, ...signature } as State;
}

/** Whether the state is unchanged, according to its signature; without a secret, whether this process signed it. */
export function isSignedWith({ signature, ...unsigned }: Signable, secret = processSecret()): boolean {
  if (typeof signature !== 'string') return false;
  const expected = Buffer.from(signatureOf(unsigned, secret));
  const given = Buffer.from(signature);
  return given.length === expected.length && nodeCrypto().timingSafeEqual(given, expected);
}

function signatureOf(unsigned: object, secret: string): string {
  return nodeCrypto().createHmac('sha256', secret).update(canonicalJson(unsigned)).digest('base64url');
}

export const TEXT_SCHEMA: JsonSchema = { type: 'string' };
export const COUNT_SCHEMA: JsonSchema = { type: 'integer', minimum: 0 };
const COUNTS: JsonSchema = {
  type: 'array',
  items: { type: 'array', prefixItems: [TEXT_SCHEMA, COUNT_SCHEMA], minItems: 2, maxItems: 2 },
};

const RESULT = object({
  forLLM: TEXT_SCHEMA,
  silent: { type: 'boolean' },
  isError: { type: 'boolean' },
  async: { type: 'boolean' },
});

const RECORD = object({
  id: TEXT_SCHEMA,
  name: TEXT_SCHEMA,
  repairs: list(TEXT_SCHEMA),
  removed: list(TEXT_SCHEMA),
  attempts: COUNT_SCHEMA,
  durationMs: { type: 'number' },
  status: TEXT_SCHEMA,
  result: RESULT,
});

// Arguments are the model's text, which may be anything.
const CALL = { id: TEXT_SCHEMA, name: TEXT_SCHEMA, arguments: {} };
const ITEMS = { providerItems: { type: 'object' }, wire: object({ name: TEXT_SCHEMA, text: TEXT_SCHEMA }) };

const KIND = { enum: ['client', 'approval', 'question', 'outcome'] };

const WAIT = object(
  { kind: KIND, index: COUNT_SCHEMA },
  {
    message: TEXT_SCHEMA,
    decisions: list({ enum: ['approve', 'edit', 'refuse'] }),
    approver: { enum: ['not-the-owner', 'function'] },
    expiresAt: TEXT_SCHEMA,
    inner: object({
      run: COUNT_SCHEMA,
      id: TEXT_SCHEMA,
      callId: TEXT_SCHEMA,
      tool: TEXT_SCHEMA,
      arguments: { type: 'object' },
    }),
  },
);

const JOURNAL = object(
  {
    arguments: { type: 'object' },
    answers: list(object({ index: COUNT_SCHEMA, message: TEXT_SCHEMA })),
    once: list(object({ key: TEXT_SCHEMA })),
  },
  {
    given: list(object({ kind: KIND, index: COUNT_SCHEMA })),
    edited: object({ original: { type: 'object' } }),
    standing: object({ id: TEXT_SCHEMA }),
    remember: object({ scope: TEXT_SCHEMA }),
    reruns: COUNT_SCHEMA,
    reasks: COUNT_SCHEMA,
  },
);

/** A history, as far as the loop relies on its form. */
export const MESSAGES: JsonSchema = list(object({ role: TEXT_SCHEMA }));

const PROGRESS_PARTS = {
  toolCalls: list(RECORD),
  iterations: COUNT_SCHEMA,
  usage: object({ inputTokens: COUNT_SCHEMA, outputTokens: COUNT_SCHEMA, totalTokens: COUNT_SCHEMA }),
  retries: object({ byTool: COUNTS, unknown: COUNT_SCHEMA }, { total: COUNT_SCHEMA }),
};

/** States of version 1 have no permissions; without a loop guard, its data is absent. */
const OPTIONAL_PARTS = {
  scope: object({}, { channel: TEXT_SCHEMA, chatId: TEXT_SCHEMA, conversationId: TEXT_SCHEMA }),
  turnOf: TEXT_SCHEMA,
  tools: list(TEXT_SCHEMA),
  model: TEXT_SCHEMA,
  spent: object({
    tokens: COUNT_SCHEMA,
    calls: COUNT_SCHEMA,
    steps: COUNT_SCHEMA,
    timeMs: { type: 'number', minimum: 0 },
    tools: { type: 'object' },
  }),
  granted: list(object({ account: TEXT_SCHEMA, part: TEXT_SCHEMA, amount: COUNT_SCHEMA })),
  guard: object({ seen: list(TEXT_SCHEMA), counts: COUNTS }),
  checkpoint: { enum: ['step', 'call'] },
  trace: object({ traceparent: TEXT_SCHEMA }, { tracestate: TEXT_SCHEMA, at: { type: 'number' } }),
};

/** The progress of a run, without its messages. */
export const PROGRESS: JsonSchema = object(PROGRESS_PARTS, OPTIONAL_PARTS);

/** Their states are checked when they are continued. */
const INNER = list(object({ run: COUNT_SCHEMA }, { state: { type: 'object' }, result: { type: 'object' } }));

const CALLS = list({
  type: 'object',
  anyOf: [
    object({ status: { const: 'settled' }, record: RECORD }, ITEMS),
    object(
      { status: { const: 'waiting' }, ...CALL, waits: list(WAIT), journal: JOURNAL },
      { ...ITEMS, inner: INNER, asks: object({ account: TEXT_SCHEMA, part: TEXT_SCHEMA }) },
    ),
    object({ status: { const: 'held' }, ...CALL }, ITEMS),
  ],
});

/** The schema of a run's state, as far as the loop relies on it; states come from outside. */
const RUN_STATE_SCHEMA: JsonSchema = {
  ...object(
    {
      version: { type: 'integer', minimum: 1, maximum: NEWEST_STATE_VERSION },
      runId: TEXT_SCHEMA,
      revision: COUNT_SCHEMA,
      messages: MESSAGES,
      open: object({ content: TEXT_SCHEMA, calls: CALLS }, { reasoning: TEXT_SCHEMA, ...ITEMS }),
      pending: list(object({ id: TEXT_SCHEMA })),
      ...PROGRESS_PARTS,
    },
    OPTIONAL_PARTS,
  ),
  if: { properties: { version: { minimum: 2 } } },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: { required: ['tools', 'model'] },
};

type Properties = Readonly<Record<string, JsonSchema>>;

export function object(properties: Properties, optional: Properties = {}): JsonSchema {
  return {
    type: 'object',
    properties: { ...properties, ...optional },
    required: Object.keys(properties),
  };
}

export function list(items: JsonSchema): JsonSchema {
  return { type: 'array', items };
}
