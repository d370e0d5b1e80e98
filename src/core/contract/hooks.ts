import { type Fields, isRecord } from '../kernel/json.js';
import { BOOLEAN, FILLED_TEXT, listOf, type OptionRule, protecting } from '../kernel/options.js';
import type { CallScope, CallStatus } from './call.js';
import type { JsonObject } from './json-schema.js';
import type { LLMRequest, LLMResponse } from './llm-provider.js';
import type { ArgumentFault, ToolDefinition } from './tool.js';
import type { ToolResult } from './tool-result.js';

/** A call as hooks see it. Changes to this object have no effect; hooks return the changes. */
export interface HookedCall {
  readonly callId: string;
  /** As the model named it. */
  readonly name: string;
  /** Absent if there is no such tool. */
  readonly tool?: ToolDefinition;
  /**
   * A copy, in JSON form: in `beforeCall` as the model sent them, later as they match the schema. Absent if the model
   * sent no valid JSON.
   */
  readonly arguments?: JsonObject;
  readonly scope: CallScope;
  /** Absent outside a run. */
  readonly runId?: string;
  /** The number of the model's attempt at this tool; 1 is the first. */
  readonly attempt: number;
  /** The call is executed again: it waited, runs as a job, or its process crashed. Its arguments are unchanged. */
  readonly isRepeated: boolean;
}

/** A call that has ended, with its result. */
export interface EndedCall extends HookedCall {
  readonly status: CallStatus;
  /** The result after the earlier hooks. */
  readonly result: ToolResult;
  /** The result of the call itself, before any hook. */
  readonly original: ToolResult;
  /** The result is that of started work, which was completed after the call was answered. */
  readonly isCompletion: boolean;
  /** A hook answered the call instead of the tool (`beforeRun`). */
  readonly isAnswered: boolean;
}

/** A request as hooks see it. */
export interface HookedRequest {
  readonly runId: string;
  /** Number of the request in its run, from 1; retries have the same number. */
  readonly step: number;
  /** The scope of the run. Its `messages` are the run's whole history, even if the request contains less. */
  readonly scope: CallScope;
}

/** The failure of a call (the tool threw or timed out) or of a request. */
export type HookedFailure =
  | { readonly of: 'call'; readonly error: unknown; readonly call: EndedCall }
  | {
      readonly of: 'request';
      readonly error: Error;
      readonly request: LLMRequest;
      readonly about: HookedRequest;
    };

interface Noted {
  /** Any JSON, for the record of the call, or for the event `reply-end` of the request. */
  readonly note?: unknown;
}

interface Refused extends Noted {
  /** The reason, as the end of a sentence: `'it is not for clerks'`. */
  readonly refuse: string;
}

/** No change, a refusal, rejected arguments, or other arguments. */
export type BeforeCall =
  | undefined
  | Refused
  | (Noted & { readonly arguments?: JsonObject })
  /** Rejects the arguments as invalid: the model may correct them. */
  | (Noted & { readonly faults: readonly ArgumentFault[] });

/** No change, a refusal, or a result that replaces the execution of the tool. */
export type BeforeRun = undefined | Refused | (Noted & { readonly result?: ToolResult | string });

/** No change, a refusal that withholds the result, or another result. */
export type AfterCall = undefined | Refused | (Noted & { readonly result?: ToolResult | string });

/** No change, a refusal to send the request, or another request. */
export type BeforeRequest = undefined | Refused | (Noted & { readonly request?: LLMRequest });

/** No change, a refusal to use the reply, or another reply. */
export type AfterResponse = undefined | Refused | (Noted & { readonly response?: LLMResponse });

/** No change, or a replacement for the failure: a result of a call, or a reply to a request. */
export type OnError =
  | undefined
  | (Noted & { readonly result?: ToolResult | string; readonly response?: LLMResponse });

// biome-ignore lint/suspicious/noConfusingVoidType: a hook may have no return statement at all
type Said<Word> = Word | void | Promise<Word | void>;

/**
 * Functions around calls and requests. Each function may return nothing, rewrite, refuse or add a note. Several hooks
 * run in the order of their list; each receives the changes of the hooks before it.
 *
 * A hook fails closed if it throws, takes longer than the call's timeout, or returns an invalid value. Before a call
 * or a request, the call or request is refused. Afterwards, the result is withheld, and the message reports that the
 * call was executed.
 *
 * @example
 * ```ts
 * const stamped: Hooks = {
 *   name: 'tenant',
 *   beforeCall: ({ tool, arguments: args, scope }) =>
 *     tool?.annotations?.readOnly ? undefined : { arguments: { ...args, tenant: scope.data?.tenant } },
 * };
 * const tools = new ToolRegistry({ hooks: [stamped] }).register(...discoverTools());
 * ```
 */
export interface Hooks {
  /** For logs, notes and messages; default: its position in the list, `hook 1`. */
  readonly name?: string;
  /** Called before the arguments are checked and before approvals. Only this function may rewrite arguments. */
  beforeCall?(call: HookedCall): Said<BeforeCall>;
  /** Called right before the tool runs: the arguments are valid, and the call is allowed and approved. */
  beforeRun?(call: HookedCall): Said<BeforeRun>;
  /**
   * Called when the call has ended with any status, and when started work is completed; the notes of the latter are
   * discarded.
   */
  afterCall?(call: EndedCall): Said<AfterCall>;
  /**
   * Called before each request to a model, including retries. The history does not change if the request is
   * rewritten.
   */
  beforeRequest?(request: LLMRequest, about: HookedRequest): Said<BeforeRequest>;
  /**
   * Called when a reply has arrived. The hooks' version of the reply enters the history, and its calls are executed.
   */
  afterResponse?(
    response: LLMResponse,
    about: HookedRequest & { readonly request: LLMRequest },
  ): Said<AfterResponse>;
  /** Called after a failed call or request, before `afterCall` and before a retry of the request. */
  onError?(failure: HookedFailure): Said<OnError>;
  /**
   * `afterResponse` never rewrites or refuses, so that text is streamed immediately; default: text is streamed after
   * `afterResponse` has returned.
   */
  readonly onlyReads?: boolean;
}

const MOMENTS: readonly string[] = [
  ...['beforeCall', 'beforeRun', 'afterCall', 'beforeRequest', 'afterResponse', 'onError'],
];
const FIX = "{ name: 'audit', afterCall: ({ name, status }) => … }";

const HOOK: OptionRule = {
  accepts: (value) => isRecord(value) && problemsOf(value).length === 0,
  fix: FIX,
  explain: (value, option) =>
    isRecord(value)
      ? problemsOf(value).map((problem) => ({ option, problem: `${option} ${problem}`, fix: FIX }))
      : [],
};

/** A misspelled hook would never run. Instances of classes may have other members. */
function problemsOf(hook: Fields): readonly string[] {
  const isPlain = Object.getPrototypeOf(hook) === Object.prototype;
  const own = isPlain ? Object.keys(hook) : [];
  const unknown = own.filter((name) => ![...MOMENTS, 'name', 'onlyReads'].includes(name));
  const wrong = MOMENTS.filter((name) => hook[name] !== undefined && typeof hook[name] !== 'function');
  const isEmpty = MOMENTS.every((name) => hook[name] === undefined);
  const { name, onlyReads } = hook;
  const problems = [
    ...unknown.map(
      (key) => `has the unknown key \`${key}\`; a hook has ${MOMENTS.join(', ')}, name, onlyReads`,
    ),
    ...wrong.map((key) => `has a \`${key}\` that is not a function`),
  ];
  if (isEmpty) problems.push('has no function of a hook');
  if (name !== undefined && !FILLED_TEXT.accepts(name))
    problems.push('has a `name` that is not a non-empty string');
  if (onlyReads !== undefined && !BOOLEAN.accepts(onlyReads))
    problems.push('has an `onlyReads` that is not true or false');
  return problems;
}

/** The rule for the option `hooks`. */
export const HOOKS: OptionRule = protecting(listOf(HOOK, `[${FIX}]`));
