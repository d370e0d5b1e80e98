import { isRecord } from '../kernel/json.js';
import { listOf, type OptionRule, protecting } from '../kernel/options.js';
import type { CallScope, CallStatus } from './call.js';
import type { JsonObject } from './json-schema.js';
import type { LLMRequest, LLMResponse } from './llm-provider.js';
import type { ArgumentFault, ToolDefinition } from './tool.js';
import type { ToolResult } from './tool-result.js';

/** A call as hooks see it. Changes to this object have no effect: hooks return what is to be done. */
export interface HookedCall {
  readonly callId: string;
  /** As the model named it. */
  readonly name: string;
  /** Absent where there is no such tool. */
  readonly tool?: ToolDefinition;
  /**
   * A copy, in JSON form: in `beforeCall` as the model sent them, from then on as they fit the schema. Absent where
   * the model sent none that can be read.
   */
  readonly arguments?: JsonObject;
  readonly scope: CallScope;
  /** Absent outside of a run. */
  readonly runId?: string;
  /** The number of this attempt of the model at this tool; 1 is the first. */
  readonly attempt: number;
  /** It is made again: it waited, is done as a job, or its process crashed. Its arguments are unchanged. */
  readonly isRepeated: boolean;
}

/** A call that has ended, and with what. */
export interface EndedCall extends HookedCall {
  readonly status: CallStatus;
  /** As the hooks before have left it. */
  readonly result: ToolResult;
  /** As the call itself ended, whatever hooks have made of it. */
  readonly original: ToolResult;
  /** It is what started work has come to, after the call was answered. */
  readonly isCompletion: boolean;
  /** A hook has answered it in place of the tool (`beforeRun`). */
  readonly isAnswered: boolean;
}

/** A request as hooks see it. */
export interface HookedRequest {
  readonly runId: string;
  /** Number of the request in its run, from 1; the same where it is made again. */
  readonly step: number;
  /** Its `messages` are the whole history of the run, whatever of it the request carries. */
  readonly scope: CallScope;
}

/** What failed: a call (the tool threw, or took too long), or a request. */
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
  /** Why not, as the end of a sentence: `'it is not for clerks'`. */
  readonly refuse: string;
}

/** Nothing changes; or it is refused, or its arguments are rejected, or it goes on with these arguments. */
export type BeforeCall =
  | undefined
  | Refused
  | (Noted & { readonly arguments?: JsonObject })
  /** As arguments that do not fit: the model may correct them. */
  | (Noted & { readonly faults: readonly ArgumentFault[] });

/** Nothing changes; or it is refused, or answered with this in place of running the tool. */
export type BeforeRun = undefined | Refused | (Noted & { readonly result?: ToolResult | string });

/** Nothing changes; or the result is withheld, or is this one. */
export type AfterCall = undefined | Refused | (Noted & { readonly result?: ToolResult | string });

/** Nothing changes; or the request is not made, or is this one. */
export type BeforeRequest = undefined | Refused | (Noted & { readonly request?: LLMRequest });

/** Nothing changes; or the reply is not used, or is this one. */
export type AfterResponse = undefined | Refused | (Noted & { readonly response?: LLMResponse });

/** Nothing changes; or this stands for what failed: a result of a call, a reply of a request. */
export type OnError =
  | undefined
  | (Noted & { readonly result?: ToolResult | string; readonly response?: LLMResponse });

// biome-ignore lint/suspicious/noConfusingVoidType: a hook may have no return statement at all
type Said<Word> = Word | void | Promise<Word | void>;

/**
 * What surrounds calls and requests. Each function may say nothing, rewrite, refuse or add a note; several hooks are
 * asked in the order of their list, each with what those before it have made of it.
 *
 * A hook that throws, takes longer than the call may, or says what cannot be meant fails closed: before a call or a
 * request, that is refused; behind it, what came of it is withheld, and is told to have been done.
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
  /** For logs, notes and messages; default: its place in the list, `hook 1`. */
  readonly name?: string;
  /** Before the arguments are checked and anybody is asked: the only moment at which they may be rewritten. */
  beforeCall?(call: HookedCall): Said<BeforeCall>;
  /** The arguments are valid, the call is allowed and approved, and the tool would run now. */
  beforeRun?(call: HookedCall): Said<BeforeRun>;
  /** The call has ended, however it did; also what started work comes to, whose notes nobody hears. */
  afterCall?(call: EndedCall): Said<AfterCall>;
  /** Before each request to a model, those that are made again too. What is rewritten stays out of the history. */
  beforeRequest?(request: LLMRequest, about: HookedRequest): Said<BeforeRequest>;
  /** A reply has come. It enters the history, and its calls are made, as hooks leave it. */
  afterResponse?(
    response: LLMResponse,
    about: HookedRequest & { readonly request: LLMRequest },
  ): Said<AfterResponse>;
  /** A call or a request failed; before `afterCall`, and before the request is made again. */
  onError?(failure: HookedFailure): Said<OnError>;
  /**
   * `afterResponse` rewrites and refuses nothing, so that text is streamed at once. Default: where there is an
   * `afterResponse`, text is streamed once that has returned.
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

/** A misspelled hook would be a rule that never runs. An instance of a class may have other members. */
function problemsOf(hook: Readonly<Record<string, unknown>>): readonly string[] {
  const isPlain = Object.getPrototypeOf(hook) === Object.prototype;
  const own = isPlain ? Object.keys(hook) : [];
  const unknown = own.filter((name) => ![...MOMENTS, 'name', 'onlyReads'].includes(name));
  const wrong = MOMENTS.filter((name) => hook[name] !== undefined && typeof hook[name] !== 'function');
  const isEmpty = MOMENTS.every((name) => hook[name] === undefined);
  const { name, onlyReads } = hook;
  return [
    ...unknown.map(
      (key) => `has \`${key}\`, which is nothing of a hook: ${MOMENTS.join(', ')}, name, onlyReads`,
    ),
    ...wrong.map((key) => `has a \`${key}\` that is no function`),
    ...(isEmpty ? ['has none of the functions of a hook'] : []),
    ...(name === undefined || (typeof name === 'string' && name.trim() !== '')
      ? []
      : ['has a `name` that is not a text']),
    ...(onlyReads === undefined || typeof onlyReads === 'boolean'
      ? []
      : ['has an `onlyReads` that is not true or false']),
  ];
}

/** What the option `hooks` may be. */
export const HOOKS: OptionRule = protecting(listOf(HOOK, `[${FIX}]`));
