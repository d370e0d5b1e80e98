import type { CallPlace } from '../call/effect-key.js';
import { storedResult } from '../call/result-text.js';
import { createResultChecker, type ResultChecker } from '../checking/checker.js';
import type { CallRecord, PendingCall, Wait } from '../contract/call.js';
import type { RunState, StoredCall, StoredCallRecord, StoredWaitingCall } from '../contract/run-state.js';
import type { ArgumentFault } from '../contract/tool.js';
import { ToolResult } from '../contract/tool-result.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { canonicalJson, plainJson } from '../kernel/json.js';
import { nodeCrypto } from '../kernel/node-module.js';
import { historyFaults } from './given-history.js';
import type { LoopRun, RunProgress } from './loop-run.js';
import { type CallOutcome, isUnanswered, type ParsedCall, parseCall } from './messages.js';
import { sentNames } from './offered-tools.js';
import { RUN_STATE_SCHEMA } from './run-state-schema.js';

/**
 * The state of a run that waits: plain JSON that shares nothing with the run. `undefined` where JSON cannot say
 * it, as of arguments that a model nested too deep, or where it would be no state.
 */
export function suspendRun(
  run: LoopRun,
  open: RunState['open'],
  pending?: readonly PendingCall[],
): RunState | undefined {
  try {
    const state = writeState(run, open, pending);
    // What nobody could resume is not given out: the calls are answered instead.
    return stateFaults(state).length === 0 ? state : undefined;
  } catch {
    return undefined;
  }
}

function writeState(run: LoopRun, open: RunState['open'], pending?: readonly PendingCall[]): RunState {
  const { config, resumed, owner, runId, iterations } = run;
  const state: RunState = {
    version: versionOf(open),
    runId,
    revision: (resumed?.revision ?? 0) + 1,
    ...progressOf(run),
    open,
    pending: pending ?? openWaits({ runId, iterations, open }).map((wait) => wait.pending),
  };
  const key = { secret: config.stateSecret, isOwned: owner !== undefined };
  return signState(plainJson(state) as RunState, key);
}

/** What is kept of runs inside calls, and of budgets that ask, is nothing that an older version knows. */
export function versionOf({ calls }: RunState['open']): 3 | 4 | 5 {
  if (calls.some((call) => 'asks' in call)) return 5;
  return calls.some((call) => 'inner' in call && call.inner !== undefined) ? 4 : 3;
}

/** How far a run has come; what is in it is still the run's own. */
export function progressOf(run: LoopRun): RunProgress {
  const {
    budget,
    owner,
    turnOf,
    offered,
    tools,
    config,
    messages,
    toolCalls,
    iterations,
    usage,
    retries,
    guard,
  } = run;
  const place = run.trace?.place;
  return {
    ...(owner === undefined ? {} : { owner }),
    ...(turnOf === undefined ? {} : { turnOf }),
    // Those that were registered while it went on are its own, too.
    tools: [...new Set([...sentNames(run), ...offered, ...tools.list()])],
    model: config.model,
    messages,
    toolCalls: toolCalls.map(storedRecord),
    iterations,
    usage,
    ...budget?.progress,
    retries: retries.spent,
    ...(guard === undefined ? {} : { guard: guard.memory }),
    ...(place === undefined ? {} : { trace: { ...place, at: Date.now() } }),
  };
}

/** What came of a call, as the state of a run keeps it. */
export function storedCall(outcome: CallOutcome, call: ParsedCall): StoredCall {
  const { id, name, providerItems, wire } = call;
  const args = sentArguments(call);
  const items = { ...(providerItems === undefined ? {} : { providerItems }), ...(wire ? { wire } : {}) };
  if (!isUnanswered(outcome))
    return { status: 'settled', record: { ...storedRecord(outcome), rawArguments: args }, ...items };
  const { suspension, inner } = outcome;
  if (suspension === undefined) return { status: 'held', id, name, arguments: args, ...items };
  const runs = inner === undefined || inner.length === 0 ? {} : { inner };
  return { status: 'waiting', id, name, arguments: args, ...suspension, ...runs, ...items };
}

/** A kept call, to be made again unless it has its answer. */
export function restoredCall(stored: StoredCall, place: CallPlace): ParsedCall {
  if (stored.status === 'settled') {
    const record = restoredRecord(stored.record);
    const { id, name, rawArguments } = record;
    const { providerItems, wire } = stored;
    const sent = { id, name, arguments: rawArguments as ParsedCall['arguments'], providerItems };
    return { ...parseCall(sent, place), record, wire };
  }
  const call: ParsedCall = { ...parseCall(stored, place), ...(stored.wire ? { wire: stored.wire } : {}) };
  if (stored.status === 'held') return call;
  const known = { ...call, ...(stored.inner === undefined ? {} : { inner: stored.inner }) };
  if (stored.status === 'begun')
    return {
      ...known,
      ...{ journal: stored.journal, hasBegun: true, asJob: stored.asJob ?? false },
      ...(stored.readOnly ? { readOnly: true } : {}),
    };
  const { waits, journal } = stored;
  return waits.length > 0 ? { ...known, journal, suspension: { waits, journal } } : { ...known, journal };
}

/** The record of a call as the state of a run keeps it. */
function storedRecord(record: CallRecord): StoredCallRecord {
  const { rawArguments, arguments: args, result } = record;
  return {
    ...record,
    rawArguments: plainJson(rawArguments),
    arguments: plainJson(args) as StoredCallRecord['arguments'],
    result: storedResult(result),
  };
}

/** The record of a call from the state of a run; its error, if it had one, is gone. */
export function restoredRecord({ result, ...record }: StoredCallRecord): CallRecord {
  return { ...record, result: new ToolResult(result) };
}

/**
 * As the model sent them, whatever the tool has done to the object since. Arguments that JSON cannot say were
 * none that could be used.
 */
function sentArguments({ arguments: args, text }: ParsedCall): ParsedCall['arguments'] {
  if (typeof args === 'string') return args;
  const sent = text === undefined ? plainJson(args) : JSON.parse(text);
  return (sent ?? '') as ParsedCall['arguments'];
}

/** One wait of a suspended run, with the call that has it. */
interface OpenWait {
  readonly pending: PendingCall;
  readonly call: StoredWaitingCall;
  readonly wait: Wait;
}

/** What a state waits for, in the order of its calls. */
export function openWaits(state: Pick<RunState, 'runId' | 'iterations' | 'open'>): readonly OpenWait[] {
  return state.open.calls.flatMap((call) =>
    call.status === 'waiting'
      ? call.waits.map((wait) => ({ call, wait, pending: pendingCall(state, call, wait) }))
      : [],
  );
}

/** What a call of a run that goes on waits for; nothing where JSON cannot say it, because then it cannot wait. */
export function pendingOf(run: LoopRun, outcome: CallOutcome, call: ParsedCall): readonly PendingCall[] {
  try {
    return openWaits({ ...run, open: { content: '', calls: [storedCall(outcome, call)] } }).map(
      ({ pending }) => pending,
    );
  } catch {
    return [];
  }
}

function pendingCall(
  state: Pick<RunState, 'runId' | 'iterations'>,
  { id: callId, name: tool, journal }: StoredWaitingCall,
  { index, inner, ...wait }: Wait,
): PendingCall {
  const { kind, message, schema } = wait;
  const { arguments: args } = journal;
  // The iteration: models use ids again, and a yes to one call must never count for a later one.
  const place = [state.runId, state.iterations, callId, tool, args, kind, index];
  const about = inner === undefined ? [...place, message, schema] : [...place, message, schema, inner.id];
  const digest = nodeCrypto().hash('sha256', canonicalJson(about), 'base64url').slice(0, 22);
  const asked = { id: `${kind}_${digest}`, callId, tool, arguments: args, ...withoutEmpty(wait) };
  if (inner === undefined) return asked;
  const { run: _, id: __, path = [], ...innermost } = inner;
  return { ...asked, ...innermost, path: [{ callId, tool }, ...path] };
}

/** A state shows nothing of what is undefined. */
function withoutEmpty<Value extends object>(value: Value): Value {
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined)) as Value;
}

let check: ResultChecker | undefined;

/** A state that was validated, and what it waits for. */
export interface ValidState {
  readonly state: RunState;
  readonly waits: readonly OpenWait[];
}

/**
 * Takes the state of a suspended run from outside; the copy is the run's own, because tools may change what
 * they are given.
 *
 * @throws ToolwrightError `InvalidState` (515) where it is not a state, or where it was changed: with a secret
 *   anywhere, without one as far as `pending` shows it.
 */
export function validateState(given: unknown, secret: string | undefined): ValidState {
  if (given === undefined)
    throw invalid('There is no state: the run was not suspended, so there is nothing to go on from.');
  const faults = stateFaults(given);
  if (faults.length > 0) {
    const told = faults.slice(0, 5).map(({ path, message }) => `${path || 'it'} ${message}`);
    throw invalid(`This is no state of a suspended run of this version: ${told.join('; ')}.`);
  }
  const state = plainJson(given) as RunState;
  if (secret !== undefined && !isSignedWith(state, secret))
    throw invalid('The state of the run was changed, or signed with another secret.');
  const [fault] = historyFaults(state.messages);
  if (fault !== undefined) throw invalid(`The history of the state is none: ${fault.problem}.`);
  const waits = openWaits(state);
  if (canonicalJson(waits.map(({ pending }) => pending)) !== canonicalJson(state.pending))
    throw invalid('The state of the run was changed: its pending calls are not those of its open message.');
  return { state, waits };
}

/** What of a state is not as the loop relies on it. */
function stateFaults(state: unknown): readonly ArgumentFault[] {
  check ??= createResultChecker(RUN_STATE_SCHEMA);
  return check(state);
}

function invalid(message: string): ToolwrightError {
  return new ToolwrightError('InvalidState', message);
}

/** Something that is kept outside and taken back. */
interface Signable {
  readonly signature?: string;
}

let madeSecret: string | undefined;

/**
 * Signs what names owners where no secret is configured: what this process gave out is known here again, and
 * what comes from elsewhere counts as unsigned. Made when it is needed: Workers allow no randomness before that.
 */
function processSecret(): string {
  madeSecret ??= nodeCrypto().randomBytes(32).toString('base64url');
  return madeSecret;
}

/** With what something is signed. */
interface SigningKey {
  readonly secret: string | undefined;
  /** It names owners: it is signed without a secret, too. */
  readonly isOwned: boolean;
}

/** The state with its signature; without one where it needs none and there is no secret. */
export function signState<State extends Signable>(state: State, { secret, isOwned }: SigningKey): State {
  const { signature: _, ...unsigned } = state;
  const key = secret ?? (isOwned ? processSecret() : undefined);
  const signature = key === undefined ? {} : { signature: signatureOf(unsigned, key) };
  return { ...unsigned, ...signature } as State;
}

/** Whether nobody without the secret changed the state; without a secret, whether this process signed it. */
export function isSignedWith({ signature, ...unsigned }: Signable, secret = processSecret()): boolean {
  if (typeof signature !== 'string') return false;
  const expected = Buffer.from(signatureOf(unsigned, secret));
  const given = Buffer.from(signature);
  return given.length === expected.length && nodeCrypto().timingSafeEqual(given, expected);
}

function signatureOf(unsigned: object, secret: string): string {
  return nodeCrypto().createHmac('sha256', secret).update(canonicalJson(unsigned)).digest('base64url');
}
