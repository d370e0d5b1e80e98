import type { CallStatus, HookMoment, HookNote } from '../contract/call.js';
import type { EndedCall, HookedCall, Hooks } from '../contract/hooks.js';
import type { JsonObject } from '../contract/json-schema.js';
import type { ArgumentFault, ToolDefinition } from '../contract/tool.js';
import { ToolResult, toolResult } from '../contract/tool-result.js';
import { withinLimits } from '../kernel/async.js';
import { copyOfJson, isRecord, plainJson } from '../kernel/json.js';
import { readRaw } from './check-arguments.js';
import type { Call, CallHooks, ReceivedCall } from './context.js';
import type { BodyEnd, CallEnd, CallRequest, HeldEnd } from './invocation.js';
import { failedResult } from './result-text.js';

/** What a hook says is one of these; anything else is a slip, and counts as a hook that failed. */
const WORDS: Readonly<Record<HookMoment, readonly string[]>> = {
  beforeCall: ['arguments', 'faults', 'refuse', 'note'],
  beforeRun: ['result', 'refuse', 'note'],
  afterCall: ['result', 'refuse', 'note'],
  beforeRequest: ['request', 'refuse', 'note'],
  afterResponse: ['response', 'refuse', 'note'],
  onError: ['result', 'response', 'note'],
};

/** What a hook said, as far as it is something. */
export interface SaidWord {
  readonly arguments?: JsonObject;
  readonly faults?: readonly ArgumentFault[];
  readonly result?: ToolResult;
  readonly request?: unknown;
  readonly response?: unknown;
  readonly refuse?: unknown;
  readonly note?: unknown;
}

const NOTHING: SaidWord = {};

/** What the loop's own hooks may say in `beforeRun`: the call is not made now, and will be when its run goes on. */
export class HeldCall {
  /** `never` among the words of hooks, because others cannot say it. */
  static readonly word = new HeldCall() as never;
}

/** What one hook said, or what keeps the call from going on. */
type Asked =
  | { readonly said: SaidWord; readonly obstacle?: undefined }
  | { readonly said?: undefined; readonly obstacle: BodyEnd | HeldEnd };

/** A hook by the name that notes and messages give it. */
export interface NamedHook {
  readonly name: string;
  readonly hook: Hooks;
}

/** The hooks of a list that have this function, in order. */
export function hooksWith(hooks: readonly Hooks[], moment: HookMoment): readonly NamedHook[] {
  return hooks.flatMap((hook, index) =>
    hook[moment] === undefined ? [] : [{ name: hook.name ?? `hook ${index + 1}`, hook }],
  );
}

/**
 * What a hook said, with its arguments as plain JSON and its result as one.
 *
 * @throws TypeError for what a hook cannot have meant.
 */
export function wordOf(moment: HookMoment, said: unknown): SaidWord {
  if (said === undefined || said === null) return NOTHING;
  const known = WORDS[moment];
  if (!isRecord(said)) throw new TypeError(`${moment} said ${typeof said}, and not { ${known.join(', ')} }`);
  const unknown = Object.keys(said).filter((key) => !known.includes(key));
  if (unknown.length > 0)
    throw new TypeError(`${moment} said ${unknown.join(', ')}, and knows only ${known.join(', ')}`);
  const { refuse, arguments: args, faults, result } = said;
  if (refuse !== undefined && typeof refuse !== 'string')
    throw new TypeError(`${moment} said \`refuse\` without a reason, which is a text`);
  if (faults !== undefined && !areFaults(faults))
    throw new TypeError(`${moment} said \`faults\` that are no list of { path, message }`);
  if (args !== undefined) return { ...said, arguments: plainArguments(args) };
  return result === undefined ? said : { ...said, result: plainResult(result) };
}

function areFaults(faults: unknown): faults is readonly ArgumentFault[] {
  const isFault = (fault: unknown): boolean =>
    isRecord(fault) && typeof fault.path === 'string' && typeof fault.message === 'string';
  return Array.isArray(faults) && faults.length > 0 && faults.every(isFault);
}

function plainArguments(args: unknown): JsonObject {
  const plain = plainJson(args);
  if (isRecord(plain)) return plain as JsonObject;
  throw new TypeError('`arguments` are no JSON object');
}

function plainResult(result: unknown): ToolResult {
  if (typeof result === 'string') return toolResult(result);
  if (ToolResult.is(result)) return result;
  throw new TypeError('`result` is neither a ToolResult nor a text');
}

/** The hooks of one call, asked in order. */
export class HookedCallLife implements CallHooks {
  isHeard = false;
  readonly #hooks: readonly Hooks[];
  readonly #received: ReceivedCall;
  /** As it came, before any hook. */
  readonly #request: CallRequest;
  readonly rawArguments: unknown;
  readonly #notes: HookNote[] = [];
  /** Said of a call that is made again, and held until it would run: it may have been done before. */
  #refusal: BodyEnd | undefined;
  isAnswered = false;

  constructor(hooks: readonly Hooks[], received: ReceivedCall) {
    this.#hooks = hooks;
    this.#received = received;
    this.#request = received.request;
    // Whatever the tool does to its arguments later.
    this.rawArguments = copyOfJson(received.request.arguments);
  }

  async before(tool: ToolDefinition): ReturnType<CallHooks['before']> {
    const { journal } = this.#request;
    const read = this.#request.read ?? readRaw(this.#request.arguments);
    const asked = hooksWith(this.#hooks, 'beforeCall');
    // What cannot be read is rejected next, and nothing runs.
    if (!read.ok || asked.length === 0) return { request: this.#request };
    // Somebody has been asked about these: nothing changes them any more.
    const settled = journal?.arguments;
    let args = settled ?? read.value;
    for (const named of asked) {
      const word = await this.#ask(named, 'beforeCall', (hook) => hook.beforeCall?.(this.#seen(tool, args)));
      const obstacle = word.obstacle as BodyEnd | undefined;
      if (obstacle !== undefined && !this.#isRepeated) return { end: obstacle };
      // Of a call that may have been done before, a refusal would tell that it was not.
      this.#refusal ??= obstacle;
      const { arguments: rewritten, faults } = word.said ?? NOTHING;
      // Nothing corrects those that somebody was asked about.
      if (faults !== undefined && settled === undefined) {
        this.#note(named, { did: 'refused', in: 'beforeCall' });
        return { request: this.#request, faults };
      }
      if (rewritten === undefined || settled !== undefined) continue;
      args = rewritten as JsonObject;
      this.#note(named, { did: 'rewrote', in: 'beforeCall' });
    }
    return { request: args === read.value ? this.#request : withArguments(this.#request, args) };
  }

  get sent(): unknown {
    return this.#request.text ?? this.rawArguments;
  }

  get notes(): readonly HookNote[] {
    return this.#notes;
  }

  get #isRepeated(): boolean {
    return this.#request.journal !== undefined || this.#request.hasBegun === true;
  }

  async beforeRun(call: Call): Promise<BodyEnd | HeldEnd | undefined> {
    if (this.#refusal !== undefined) return this.#refusal;
    for (const named of hooksWith(this.#hooks, 'beforeRun')) {
      const word = await this.#ask(named, 'beforeRun', (hook) =>
        hook.beforeRun?.(this.#seen(call.tool, call.checked)),
      );
      if (word.obstacle !== undefined) return word.obstacle;
      const { result } = word.said;
      if (result === undefined) continue;
      this.#note(named, { did: 'answered', in: 'beforeRun' });
      this.isAnswered = true;
      return { how: 'returned', value: result };
    }
    return undefined;
  }

  async after(end: CallEnd, call: Partial<Pick<Call, 'tool' | 'checked'>>): Promise<CallEnd> {
    this.isHeard = true;
    const { status, result: original } = end;
    const known = { ...this.#seen(call.tool, call.checked), status, original, isAnswered: this.isAnswered };
    const result = await this.#heard({ ...known, result: original, isCompletion: false });
    if (result === original) return end;
    return { ...end, result, status: statusAfter(status, result) };
  }

  async completed(call: Call, original: ToolResult): Promise<ToolResult> {
    const status = original.isError ? 'error' : 'success';
    const known = { ...this.#seen(call.tool, call.checked), status, original, isAnswered: false } as const;
    return this.#heard({ ...known, result: original, isCompletion: true });
  }

  async #heard(ended: EndedCall): Promise<ToolResult> {
    const { status, original } = ended;
    let { result } = ended;
    if (status === 'error' || status === 'timed_out')
      for (const named of hooksWith(this.#hooks, 'onError')) {
        const failure = { of: 'call', error: original.error, call: { ...ended, result } } as const;
        const { said } = await this.#ask(named, 'onError', (hook) => hook.onError?.(failure));
        // One that only hears of errors has nothing to withhold.
        result = this.#rewritten(named, 'onError', said?.result) ?? result;
      }
    for (const named of hooksWith(this.#hooks, 'afterCall')) {
      const seen = { ...ended, result };
      const { said, obstacle } = await this.#ask(named, 'afterCall', (hook) => hook.afterCall?.(seen));
      result =
        obstacle === undefined
          ? (this.#rewritten(named, 'afterCall', said?.result) ?? result)
          : withheld(ended, obstacle as BodyEnd);
    }
    // Whether there is something to come is no matter of words.
    return result.async === original.async ? result : new ToolResult({ ...result, async: original.async });
  }

  #rewritten(named: NamedHook, moment: HookMoment, result: unknown): ToolResult | undefined {
    if (result !== undefined) this.#note(named, { did: 'rewrote', in: moment });
    return result as ToolResult | undefined;
  }

  /** Asks one hook within the limits of the call. */
  async #ask(named: NamedHook, moment: HookMoment, ask: (hook: Hooks) => unknown): Promise<Asked> {
    const { scope, environment } = this.#received;
    const isBefore = moment === 'beforeCall' || moment === 'beforeRun';
    // What has happened is heard to its end, also where the run was aborted.
    const limits = { signal: isBefore ? scope.signal : undefined, timeoutMs: environment.toolTimeoutMs };
    try {
      const answer = await withinLimits(ask(named.hook), limits);
      if (answer instanceof HeldCall) return { obstacle: { how: 'held' } };
      const said = wordOf(moment, answer);
      if (said.note !== undefined)
        this.#note(named, { did: 'noted', in: moment, note: plainJson(said.note) });
      if (said.refuse === undefined) return { said };
      this.#note(named, { did: isBefore ? 'refused' : 'withheld', in: moment });
      return { obstacle: { how: 'refused', reason: String(said.refuse) } };
    } catch (error) {
      return {
        obstacle: isBefore && scope.signal?.aborted ? { how: 'aborted' } : this.#failed(named, moment, error),
      };
    }
  }

  /** Why it failed is no business of the model. */
  #failed(named: NamedHook, moment: HookMoment, error: unknown): BodyEnd {
    this.#note(named, { did: 'failed', in: moment });
    this.#received.log.ignored(`The hook '${named.name}' failed in ${moment}`, { error });
    return { how: 'refused', reason: `the hook '${named.name}' failed` };
  }

  #note({ name }: NamedHook, note: Omit<HookNote, 'hook'>): void {
    this.#notes.push({ hook: name, ...note });
  }

  #seen(tool: ToolDefinition | undefined, args: JsonObject | undefined): HookedCall {
    const { scope, attempt } = this.#received;
    const { id, name, place } = this.#request;
    return {
      callId: id,
      name,
      ...(tool === undefined ? {} : { tool }),
      ...(args === undefined ? {} : { arguments: copyOfJson(args) as JsonObject }),
      scope,
      ...(place === undefined ? {} : { runId: place.runId }),
      attempt,
      isRepeated: this.#isRepeated,
    };
  }
}

/** The call as if these arguments had come; what cannot be taken of repaired ones stays so. */
function withArguments(request: CallRequest, args: JsonObject): CallRequest {
  const repairs = request.read?.ok ? request.read.repairs : [];
  const text = JSON.stringify(args);
  return { ...request, id: request.id, arguments: args, text, read: { ok: true, value: args, repairs } };
}

/** What is told in place of a result that must not be seen: that it was done stays true. */
function withheld({ name, status, isAnswered }: EndedCall, obstacle: BodyEnd): ToolResult {
  const reason = obstacle.how === 'refused' ? obstacle.reason : 'it could not be looked at';
  const hasRun = RAN.has(status) && !isAnswered;
  const what = hasRun
    ? `The tool '${name}' ran, but what came of it`
    : `What came of the call of '${name}' (${status})`;
  return failedResult('ResultWithheld', `${what} is withheld: ${reason}.`);
}

const RAN: ReadonlySet<CallStatus> = new Set(['success', 'error', 'timed_out', 'started']);

/** A result that is an error now, or is none any more; all else that happened stays as it was. */
function statusAfter(status: CallStatus, { isError }: ToolResult): CallStatus {
  if (status === 'success' && isError) return 'error';
  return status === 'error' && !isError ? 'success' : status;
}
