import type { CallScope, CallStatus, HookMoment, HookNote } from '../../core/contract/call.js';
import type { EndedCall, HookedCall, Hooks } from '../../core/contract/hooks.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { ArgumentFault, ToolDefinition } from '../../core/contract/tool.js';
import { ToolResult, toolResult } from '../../core/contract/tool-result.js';
import { andThen, firstGiven, isThenable, withinLimits } from '../../core/kernel/async.js';
import { copyOfJson, isRecord, plainJson } from '../../core/kernel/json.js';
import { logThrown } from './call-log.js';
import { readRaw } from './check-arguments.js';
import {
  type Block,
  type CallEnvironment,
  type CallOutcome,
  type CallRequest,
  isRepeated,
  type MaybeLater,
} from './invocation.js';
import { failedResult } from './result-text.js';

/** The allowed fields of a hook's return value; other fields are a mistake, and the hook counts as failed. */
const WORDS: Readonly<Record<HookMoment, readonly string[]>> = {
  beforeCall: ['arguments', 'faults', 'refuse', 'note'],
  beforeRun: ['result', 'refuse', 'note'],
  afterCall: ['result', 'refuse', 'note'],
  beforeRequest: ['request', 'refuse', 'note'],
  afterResponse: ['response', 'refuse', 'note'],
  onError: ['result', 'response', 'note'],
};

/** The validated return value of a hook. */
export interface HookAnswer {
  readonly arguments?: JsonObject;
  readonly faults?: readonly ArgumentFault[];
  readonly result?: ToolResult;
  readonly request?: unknown;
  readonly response?: unknown;
  readonly refuse?: unknown;
  readonly note?: unknown;
}

const NO_ANSWER: HookAnswer = {};

/** A return value of the loop's own hooks in `beforeRun`: the call is held until its run continues. */
export class HeldCall {
  /** Typed as `never`, because other hooks cannot return it. */
  static readonly word = new HeldCall() as never;
}

/** The return value of a hook, or what prevents the call from continuing. */
interface Asked extends HookAnswer {
  readonly block?: Block;
}

/** How `beforeCall` hooks ended a call, if they did. */
type BeforeCallEnd =
  | Block
  | { readonly type: 'rejected'; readonly faults: readonly ArgumentFault[] }
  | undefined;

/** A hook with its name in notes and messages. */
export interface NamedHook {
  readonly name: string;
  readonly hook: Hooks;
}

/**
 * Validates the return value of a hook; arguments become plain JSON, and the result a `ToolResult`.
 *
 * @throws TypeError for an invalid return value.
 */
export function answerOf(moment: HookMoment, said: unknown): HookAnswer {
  if (said === undefined || said === null) return NO_ANSWER;
  const known = WORDS[moment];
  if (!isRecord(said))
    throw new TypeError(`${moment} returned a ${typeof said} instead of { ${known.join(', ')} }`);
  const unknown = Object.keys(said).filter((key) => !known.includes(key));
  if (unknown.length > 0)
    throw new TypeError(`${moment} returned ${unknown.join(', ')}; it may return only ${known.join(', ')}`);
  const { refuse, arguments: args, faults, result } = said;
  if (refuse !== undefined && typeof refuse !== 'string')
    throw new TypeError(`${moment} returned a \`refuse\` that is not a string; it must be the reason`);
  const isFault = (fault: unknown): boolean =>
    isRecord(fault) && typeof fault.path === 'string' && typeof fault.message === 'string';
  if (faults !== undefined && !(Array.isArray(faults) && faults.length > 0 && faults.every(isFault)))
    throw new TypeError(`${moment} returned \`faults\` that are not a list of { path, message }`);
  if (args !== undefined) {
    const plain = plainJson(args);
    if (!isRecord(plain)) throw new TypeError('`arguments` are not a JSON object');
    return { ...said, arguments: plain as JsonObject };
  }
  if (result === undefined || ToolResult.is(result)) return said;
  if (typeof result !== 'string') throw new TypeError('`result` is neither a ToolResult nor a string');
  return { ...said, result: toolResult(result) };
}

/** The hooks of an environment by function, each in the order of the list. */
export type HooksByMoment = Readonly<Record<HookMoment, readonly NamedHook[]>>;

export function hooksByMoment(hooks: readonly Hooks[]): HooksByMoment {
  const named = hooks.map((hook, index): NamedHook => ({ name: hook.name ?? `hook ${index + 1}`, hook }));
  const having = (moment: HookMoment) => named.filter(({ hook }) => hook[moment] !== undefined);
  return {
    beforeCall: having('beforeCall'),
    beforeRun: having('beforeRun'),
    afterCall: having('afterCall'),
    beforeRequest: having('beforeRequest'),
    afterResponse: having('afterResponse'),
    onError: having('onError'),
  };
}

/** The facts about a call that its hooks depend on; they may change its request. */
interface CallOfHooks {
  request: CallRequest;
  readonly environment: CallEnvironment;
  readonly scope: CallScope;
  readonly attempt: number;
  readonly tool: ToolDefinition | undefined;
  readonly checked: JsonObject | undefined;
}

/**
 * The hooks of a registry or a run, for one call, run in order. Its methods return a promise only if a hook does, and
 * never throw or reject.
 */
export class CallHooks {
  /** As it arrived, before any hook. */
  readonly #request: CallRequest;
  /** The arguments as they arrived, before any hook. */
  readonly rawArguments: unknown;
  /** The notes of hooks so far. */
  readonly notes: HookNote[] = [];
  /**
   * Refusal of a repeated call. It is held back until the call would run, because the call may already have been
   * executed.
   */
  #refusal: Block | undefined;
  /** A hook answered the call instead of the tool. */
  isAnswered = false;
  /** A hook replaced the failure of the tool. */
  hidesFailure = false;

  constructor(
    private readonly hooks: HooksByMoment,
    private readonly call: CallOfHooks,
  ) {
    this.#request = call.request;
    // The tool may change its arguments. A copy is needed only for a record or a context.
    const isUnseen = !call.environment.isRecorded && call.tool?.ignoresContext;
    this.rawArguments = isUnseen ? call.request.arguments : copyOfJson(call.request.arguments);
  }

  /** The arguments as they arrived, as text if there is one. */
  get sent(): unknown {
    return this.#request.text ?? this.rawArguments;
  }

  /** The arguments that were approved may differ from those of the model. */
  get mayRewrite(): boolean {
    return this.hooks.beforeCall.length > 0;
  }

  /** Runs `beforeCall` hooks, and writes their arguments into the request. */
  beforeCall(): MaybeLater<BeforeCallEnd> {
    const { journal } = this.#request;
    const read = this.#request.read ?? readRaw(this.#request.arguments);
    // Unreadable arguments are rejected next, and nothing runs.
    if (!read.ok) return undefined;
    // An approver was asked about these arguments, so they must not change.
    const settled = journal?.arguments;
    let args = settled ?? read.value;
    const ended = this.#askAll(
      'beforeCall',
      (hook) => hook.beforeCall?.(this.#seen(args)),
      (named, { block, faults, arguments: given }): BeforeCallEnd => {
        if (block !== undefined && !isRepeated(this.#request)) return block;
        // A refusal would wrongly report that the call was not executed, although it may have been.
        this.#refusal ??= block;
        if (settled !== undefined) return undefined;
        if (faults !== undefined) {
          this.#note(named, { did: 'refused', in: 'beforeCall' });
          return { type: 'rejected', faults };
        }
        if (given === undefined) return undefined;
        args = given;
        this.#note(named, { did: 'rewrote', in: 'beforeCall' });
        return undefined;
      },
    );
    return andThen(ended, (end) => {
      if (end !== undefined || args === (settled ?? read.value)) return end;
      // As if these arguments had arrived; if repaired arguments are not accepted, they stay refused.
      this.call.request = {
        ...this.#request,
        id: this.#request.id,
        arguments: args,
        text: JSON.stringify(args),
        read: { ok: true, value: args, repairs: read.repairs },
      };
      return undefined;
    });
  }

  /** Runs `beforeRun` hooks: returns what prevents the tool from running now, if anything does. */
  beforeRun(): MaybeLater<Block | undefined> {
    if (this.#refusal !== undefined) return this.#refusal;
    return this.#askAll(
      'beforeRun',
      (hook) => hook.beforeRun?.(this.#seen()),
      (named, { block, result }): Block | undefined => {
        if (block !== undefined || result === undefined) return block;
        this.#note(named, { did: 'answered', in: 'beforeRun' });
        this.isAnswered = true;
        return { type: 'returned', value: result };
      },
    );
  }

  /** The outcome of the call after `onError` and `afterCall`. */
  after(outcome: CallOutcome): MaybeLater<CallOutcome> {
    const { status, result: original } = outcome;
    const { isAnswered } = this;
    return andThen(this.#ended({ status, original, isCompletion: false, isAnswered }), (result) => {
      if (result === original) return outcome;
      // The status follows the new result's error flag; everything else stays.
      const now = result.isError ? 'error' : 'success';
      this.hidesFailure = status === 'error' && now === 'success' && !isAnswered;
      return { ...outcome, result, status: status === 'success' || status === 'error' ? now : status };
    });
  }

  /** The same for the result of started work. */
  completed(original: ToolResult): MaybeLater<ToolResult> {
    const status = original.isError ? 'error' : 'success';
    return this.#ended({ status, original, isCompletion: true, isAnswered: false });
  }

  #ended(end: Omit<EndedCall, keyof HookedCall | 'result'>): MaybeLater<ToolResult> {
    const { status, original } = end;
    let result = original;
    const { isCompletion, isAnswered } = end;
    const seen = (): EndedCall => {
      const call = this.#seen();
      return { ...call, status, original, isCompletion, isAnswered, result };
    };
    const rewrite = (named: NamedHook, moment: HookMoment, { result: given }: HookAnswer): void => {
      if (given === undefined) return;
      this.#note(named, { did: 'rewrote', in: moment });
      result = given;
    };
    const isFailed = status === 'error' || status === 'timed_out';
    const reported = isFailed
      ? this.#askAll(
          'onError',
          (hook) => hook.onError?.({ of: 'call', error: original.error, call: seen() }),
          // A hook that only observes errors has nothing to withhold.
          (named, said) => rewrite(named, 'onError', said),
        )
      : undefined;
    const asked = andThen(reported, () =>
      this.#askAll(
        'afterCall',
        (hook) => hook.afterCall?.(seen()),
        (named, { block, ...said }) => {
          if (block === undefined) {
            rewrite(named, 'afterCall', said);
            return;
          }
          // The text still states that the call was executed.
          const { name } = this.#request;
          const reason = block.type === 'refused' ? block.reason : 'it could not be checked';
          const hasRun = RAN.has(status) && !isAnswered;
          const what = hasRun
            ? `The tool '${name}' ran, but its result`
            : `The result of the call of '${name}' (${status})`;
          result = failedResult('ResultWithheld', `${what} is withheld: ${reason}.`);
        },
      ),
    );
    // Whether a completion follows does not depend on the text.
    return andThen(asked, () =>
      result.async === original.async ? result : new ToolResult({ ...result, async: original.async }),
    );
  }

  #askAll<Given>(
    moment: HookMoment,
    ask: (hook: Hooks) => unknown,
    take: (named: NamedHook, asked: Asked) => Given,
  ): MaybeLater<Given | undefined> {
    return firstGiven<NamedHook, Given>(this.hooks[moment], (named) =>
      andThen(this.#ask(named, moment, ask), (asked) => take(named, asked)),
    );
  }

  /** Runs one hook within the limits of the call. */
  #ask(named: NamedHook, moment: HookMoment, ask: (hook: Hooks) => unknown): MaybeLater<Asked> {
    const { scope, environment } = this.call;
    const isBefore = moment === 'beforeCall' || moment === 'beforeRun';
    const read = (answer: unknown): Asked => {
      if (answer instanceof HeldCall) return { block: { type: 'held' } };
      const said = answerOf(moment, answer);
      if (said.note !== undefined)
        this.#note(named, { did: 'noted', in: moment, note: plainJson(said.note) });
      if (said.refuse === undefined) return said;
      this.#note(named, { did: isBefore ? 'refused' : 'withheld', in: moment });
      return { block: { type: 'refused', reason: String(said.refuse) } };
    };
    const fail = (error: unknown): Asked => {
      if (isBefore && scope.signal?.aborted) return { block: { type: 'aborted' } };
      this.#note(named, { did: 'failed', in: moment });
      logThrown(this.call, `The hook '${named.name}' failed in ${moment}`, error);
      // The model does not see why it failed.
      return { block: { type: 'refused', reason: `the hook '${named.name}' failed` } };
    };
    try {
      const answer = ask(named.hook);
      if (answer === undefined) return NO_ANSWER;
      if (!isThenable(answer)) return read(answer);
      // After a call, hooks are awaited even if the run was aborted.
      const limits = { signal: isBefore ? scope.signal : undefined, timeoutMs: environment.toolTimeoutMs };
      return withinLimits(answer, limits).then(read).catch(fail);
    } catch (error) {
      return fail(error);
    }
  }

  #note({ name }: NamedHook, note: Omit<HookNote, 'hook'>): void {
    this.notes.push({ hook: name, ...note });
  }

  /** The call as a hook sees it, with a copy of its arguments. */
  #seen(args = this.call.checked): HookedCall {
    const { scope, attempt, tool } = this.call;
    const { id, name, place } = this.#request;
    const seen: { -readonly [Key in keyof HookedCall]: HookedCall[Key] } = {
      callId: id,
      name,
      scope,
      attempt,
      isRepeated: isRepeated(this.#request),
    };
    if (tool !== undefined) seen.tool = tool;
    if (args !== undefined) seen.arguments = copyOfJson(args) as JsonObject;
    if (place !== undefined) seen.runId = place.runId;
    return seen;
  }
}

const RAN: ReadonlySet<CallStatus> = new Set(['success', 'error', 'timed_out', 'started']);
