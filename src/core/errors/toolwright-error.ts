const BRAND = Symbol.for('toolwright.ToolwrightError');

/**
 * An error of the framework. `name` and `code` are those of the table in `docs/errors.md`.
 *
 * @example
 * ```ts
 * if (ToolwrightError.is(run.error) && run.error.code === 504) askTheUserToGoOn();
 * ```
 */
export class ToolwrightError extends Error {
  declare readonly name: ErrorName;
  /** The number of the error: 500 for `ToolNotFound`, … */
  readonly code: number;

  constructor(name: ErrorName, message: string, options?: ErrorOptions) {
    super(message, options);
    // Plain assignment fails where `Error.prototype` is frozen.
    Object.defineProperty(this, 'name', {
      value: name,
      configurable: true,
      enumerable: true,
      writable: true,
    });
    this.code = ERROR_TABLE[name].code;
  }

  /** Whether a value is an error of the framework, also one made by another copy of this package. */
  static is(value: unknown): value is ToolwrightError {
    return typeof value === 'object' && value !== null && BRAND in value;
  }
}

Object.defineProperty(ToolwrightError.prototype, BRAND, { value: true });

/** One row: the number that travels, what happened, and what to do about it. */
export interface ErrorEntry {
  readonly code: number;
  readonly happened: string;
  readonly remedy: string;
}

/**
 * Every error of the framework. `docs/errors.md` shows the same
 * rows; a test compares the two.
 */
export const ERROR_TABLE = {
  ToolNotFound: {
    code: 500,
    happened: 'A call named a tool that is not registered, or that the view in use hides.',
    remedy: 'Nothing, if the model mistyped: it is told. Otherwise register the tool or widen the view.',
  },
  ToolExecutionFailed: {
    code: 501,
    happened: 'A tool threw, rejected or returned an Error.',
    remedy: 'Read `cause`: it is what the tool threw. The model has been given the message.',
  },
  InvalidToolSignature: {
    code: 502,
    happened: 'A tool cannot be registered or discovered as it is declared.',
    remedy: 'Mend the declaration; the message names the class, the method, the parameter and the fix.',
  },
  ToolRetriesExhausted: {
    code: 503,
    happened: 'The model sent unusable calls of one tool more often than `maxRetries` allows.',
    remedy: 'Make the schema or the description clearer, or raise `maxRetries` or the tool’s `retries`.',
  },
  ToolLoopLimitReached: {
    code: 504,
    happened: 'The run made `maxIterations` requests and the model still wanted tools.',
    remedy: 'Raise `maxIterations`, or set `onLimit: "answer"` to ask once more without tools.',
  },
  ToolLoopStuck: {
    code: 505,
    happened: 'The model repeated the same call with the same result until the loop guard stopped it.',
    remedy: 'Let the tool’s result say what to do next, or adjust the loop guard.',
  },
  InvalidArguments: {
    code: 506,
    happened: 'The arguments of a call are no JSON object or do not fit the tool’s schema.',
    remedy: 'Nothing: the model is told every fault and may try again.',
  },
  ToolTimedOut: {
    code: 507,
    happened: 'A call took longer than its `timeoutMs` or the run’s `toolTimeoutMs`.',
    remedy: 'Heed `context.signal` in the tool, raise the limit, or run the work in the background.',
  },
  RunAborted: {
    code: 508,
    happened: 'The signal of the run was aborted; its open calls were answered with this error.',
    remedy: 'Nothing, if you aborted it. The history in `messages` is valid and can be continued.',
  },
  ProviderFailed: {
    code: 509,
    happened: 'The provider gave no usable reply.',
    remedy: 'Read `cause`: it is what the provider threw. The history in `messages` is valid.',
  },
  ReplyTruncated: {
    code: 510,
    happened: 'The reply ended by length or by a content filter before its calls were complete.',
    remedy: 'Raise the token limit in `llmOptions`; the calls were answered and not run.',
  },
  NotExecutableHere: {
    code: 511,
    happened: 'A call needs an approval or is executed by the client, so it was not run here.',
    remedy: 'Let a run suspend for it; `execute` and `call` have nobody to ask.',
  },
  ToolRefused: {
    code: 512,
    happened: 'A policy did not allow a call, or threw.',
    remedy: 'Nothing, if that was meant: the model is told the reason. Otherwise fix the policy.',
  },
  InvalidResult: {
    code: 513,
    happened: 'A tool returned a value that its own `output` schema does not describe.',
    remedy: 'Mend the tool or its `output`; the model was told that the call failed.',
  },
  InvalidAnswer: {
    code: 514,
    happened: 'An answer names nothing that is pending, comes twice, or does not fit what was asked.',
    remedy: 'Answer what `pending` lists, by its ids. The suspended run is as it was.',
  },
  InvalidState: {
    code: 515,
    happened: 'A run’s state or a conversation’s snapshot is none of this version, or was changed.',
    remedy: 'Go on with it exactly as it was given, and with the same `stateSecret`.',
  },
  RunNotFound: {
    code: 516,
    happened: 'The store has no suspended run of that id: it has ended, or was never kept there.',
    remedy: 'Give the loop that runs first the same `store`; a run that has ended needs no answer.',
  },
  RunClaimed: {
    code: 517,
    happened:
      'Another process is resuming the run, or took it over when the claim had run out, or ended it; or a run was to begin with the `runId` of another.',
    remedy:
      'Nothing: the other one goes on with it. Load the run again to see what came of it. A run that is to begin needs a `runId` of its own.',
  },
  RunStoreFailed: {
    code: 518,
    happened: 'The store could not keep a run.',
    remedy: 'Read `cause`. The result has `state` and `pending` all the same; keep them yourself.',
  },
  TaskCancelled: {
    code: 519,
    happened: 'The work that a call had started was cancelled, before it ran or while it ran.',
    remedy: 'Nothing, if you cancelled it. Heed `context.signal` in the tool, so that it stops too.',
  },
  TaskInterrupted: {
    code: 520,
    happened: 'The process ended before the work that a call had started was done.',
    remedy: 'Look in the tool’s own system for what came of it, or let the model start it again.',
  },
  InvalidOptions: {
    code: 521,
    happened: 'Options are misspelt, have values that they cannot have, or are missing.',
    remedy: 'Mend them; `faults` names every one of them and what to write. Nothing has run.',
  },
  EmptyReply: {
    code: 522,
    happened: 'The model replied twice in a row with neither text nor calls.',
    remedy:
      'Look at the token limit and the prompt. The history in `messages` is valid and can be continued.',
  },
  RunNotAllowed: {
    code: 523,
    happened:
      'A run was to be resumed on behalf of another owner than it has, or its owner is not certain; or a call was approved by somebody who may not approve it.',
    remedy:
      'Resume with the owner’s `scope`, and give `stateSecret` where states leave the process; let somebody approve whom `approval.approver` of the tool accepts.',
  },
  ToolDeadlock: {
    code: 524,
    happened: 'A call would have waited for ever: for one that waits for the tool which made this call.',
    remedy: 'Let tools that have `setContext` or `setCallback` not call each other crosswise.',
  },
  InvalidOutput: {
    code: 525,
    happened:
      'A run with an `output` schema ended without an answer that fits it, though it was asked for twice.',
    remedy:
      'Read `content` of the result, which is what the model said; loosen the schema, or take another model.',
  },
  ConversationNotReady: {
    code: 526,
    happened:
      'A conversation was told to go on, to change or to be edited while a turn runs or waits, or has nothing to go on from.',
    remedy: 'Wait with `idle()`, answer or abort what is pending, or `prompt`. Nothing was changed.',
  },
  RunNotSuspended: {
    code: 527,
    happened:
      'A run was to be resumed that is not suspended: it was answered already, or its process died while it was under way.',
    remedy: 'Let `recoverRuns` go on with it; then answer what it waits for, if anything.',
  },
  OutcomeUnknown: {
    code: 528,
    happened: 'The process died while a call ran, and nobody can tell whether it was done.',
    remedy: 'Look in the tool’s own system; give the tool `reconcile`, or let a person say (`onUnknown`).',
  },
  DefinitionChanged: {
    code: 529,
    happened:
      'A tool was changed after work with it had been started on an engine, or an approval of its call had been asked for, and the arguments no longer fit or would be others.',
    remedy:
      'Let the model start it again; approve the call with arguments that fit, refuse it, or cancel the run. While jobs and calls wait, add parameters as optional ones without a default only.',
  },
  RequestRefused: {
    code: 536,
    happened: 'A hook did not let a request be made or its reply be used, or it failed.',
    remedy: 'Nothing, if that was meant. Otherwise fix the hook: `cause` is what it threw.',
  },
  ResultWithheld: {
    code: 537,
    happened: 'A hook did not let the result of a call be seen, or it failed. The tool may have run.',
    remedy: 'Nothing, if that was meant. Otherwise fix the hook; the log has what it threw.',
  },
  BudgetSpent: {
    code: 538,
    happened:
      'What comes next may take more than is left of a budget; it was not done, and the run has ended.',
    remedy:
      'Give it more, or wait for the next window. The history in `messages` is valid and can be continued.',
  },
  PriceUnknown: {
    code: 539,
    happened: 'A run has a budget for its cost, and nobody knows what its model costs.',
    remedy: 'Give the model a price: `budget: { prices: { ...PRICES, model: { input, output } } }`.',
  },
  AnswerExpired: {
    code: 540,
    happened: 'Nobody answered what a call waited for until its answer expired; the call was refused.',
    remedy: 'Nothing, if that was meant. Otherwise give more time: `answerWithinMs`, `expiresInMs`.',
  },
  AgentsTooDeep: {
    code: 541,
    happened: 'An agent that is a tool was called by agents that were called by agents, more than it allows.',
    remedy: 'Look for agents that call each other in a circle, or raise `maxDepth` of `agentAsTool`.',
  },
  SandboxUnavailable: {
    code: 543,
    happened: 'A sandbox for commands was wanted, and this machine cannot make one.',
    remedy:
      "Install what the message names, state `sandbox: 'external'` where the process runs in a disposable container, or use mode `ask`.",
  },
} as const satisfies Record<string, ErrorEntry>;

/** The name of an error of the framework. */
export type ErrorName = keyof typeof ERROR_TABLE;
