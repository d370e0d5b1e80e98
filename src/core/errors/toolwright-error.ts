const BRAND = Symbol.for('toolwright.ToolwrightError');

/**
 * An error of the framework. `name` and `code` are those of the table in `docs/reference/errors.md`.
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
    this.code = CODES[name];
  }

  /**
   * The HTTP status of an error that the answer to a run has caused: 400, 403, 404 or 409. With `status` and `expose`,
   * it has the form of the package http-errors, so NestJS, Express, Fastify and Koa respond with it by themselves.
   */
  get statusCode(): StatusCode | undefined {
    return STATUS_CODES[this.name];
  }

  /** The same as `statusCode`. */
  get status(): StatusCode | undefined {
    return STATUS_CODES[this.name];
  }

  /** Whether the message may be sent to the client: only with a `statusCode`. */
  get expose(): boolean {
    return this.statusCode !== undefined;
  }

  /** Whether a value is an error of the framework, including errors of another copy of this package. */
  static is(value: unknown): value is ToolwrightError {
    return typeof value === 'object' && value !== null && BRAND in value;
  }
}

Object.defineProperty(ToolwrightError.prototype, BRAND, { value: true });

type StatusCode = 400 | 403 | 404 | 409;

const STATUS_CODES: { readonly [Name in ErrorName]?: StatusCode } = {
  InvalidAnswer: 400,
  InvalidState: 400,
  RunNotAllowed: 403,
  RunNotFound: 404,
  RunClaimed: 409,
  RunNotSuspended: 409,
  DefinitionChanged: 409,
};

/** A table row: the error number, the problem, and the fix. */
export interface ErrorEntry {
  readonly code: number;
  readonly happened: string;
  readonly remedy: string;
}

/** The numbers are separate from the texts, so that applications that do not read the texts do not bundle them. */
const CODES = {
  ToolNotFound: 500,
  ToolExecutionFailed: 501,
  InvalidToolSignature: 502,
  ToolRetriesExhausted: 503,
  ToolLoopLimitReached: 504,
  ToolLoopStuck: 505,
  InvalidArguments: 506,
  ToolTimedOut: 507,
  RunAborted: 508,
  ProviderFailed: 509,
  ReplyTruncated: 510,
  NotExecutableHere: 511,
  ToolRefused: 512,
  InvalidResult: 513,
  InvalidAnswer: 514,
  InvalidState: 515,
  RunNotFound: 516,
  RunClaimed: 517,
  RunStoreFailed: 518,
  TaskCancelled: 519,
  TaskInterrupted: 520,
  InvalidOptions: 521,
  EmptyReply: 522,
  RunNotAllowed: 523,
  ToolDeadlock: 524,
  InvalidOutput: 525,
  ConversationNotReady: 526,
  RunNotSuspended: 527,
  OutcomeUnknown: 528,
  DefinitionChanged: 529,
  RequestRefused: 536,
  ResultWithheld: 537,
  BudgetSpent: 538,
  PriceUnknown: 539,
  AnswerExpired: 540,
  AgentsTooDeep: 541,
  SandboxUnavailable: 543,
} as const;

/** The name of an error of the framework. */
export type ErrorName = keyof typeof CODES;

/** Every error of the framework. A test compares this table with `docs/reference/errors.md`. */
export const ERROR_TABLE = {
  ToolNotFound: {
    code: 500,
    happened: 'A call named a tool that is not registered, or that a view hides.',
    remedy: 'Nothing, if the model mistyped. Otherwise register the tool or widen the view.',
  },
  ToolExecutionFailed: {
    code: 501,
    happened: 'A tool threw, rejected or returned an Error.',
    remedy: 'Read `cause`. The model has received the message.',
  },
  InvalidToolSignature: {
    code: 502,
    happened: 'A tool cannot be registered or discovered as it is declared.',
    remedy: 'Fix the declaration; the message names the place and the fix.',
  },
  ToolRetriesExhausted: {
    code: 503,
    happened: 'The model sent unusable calls of one tool more often than `maxRetries` allows.',
    remedy: 'Make the schema or the description clearer, or raise `maxRetries` or the tool’s `retries`.',
  },
  ToolLoopLimitReached: {
    code: 504,
    happened: 'The run made `maxIterations` requests, and the model still called tools.',
    remedy: 'Raise `maxIterations`, or set `onLimit: "answer"` to make a last request without tools.',
  },
  ToolLoopStuck: {
    code: 505,
    happened: 'The model repeated the same call with the same result.',
    remedy: 'Let the tool’s result say what to do next, or adjust `loopGuard`.',
  },
  InvalidArguments: {
    code: 506,
    happened: 'The arguments of a call are not a JSON object, or do not fit the tool’s schema.',
    remedy: 'Nothing: the model receives every fault.',
  },
  ToolTimedOut: {
    code: 507,
    happened: 'A call took longer than its `timeoutMs` or the run’s `toolTimeoutMs`.',
    remedy: 'Use `context.signal` in the tool, raise the limit, or run the work in the background.',
  },
  RunAborted: {
    code: 508,
    happened: 'The signal of the run was aborted.',
    remedy: 'Nothing, if you aborted it. `messages` can be continued.',
  },
  ProviderFailed: {
    code: 509,
    happened: 'The provider gave no usable reply.',
    remedy: 'Read `cause`. `messages` can be continued.',
  },
  ReplyTruncated: {
    code: 510,
    happened: 'The reply ended by length or by a content filter before its calls were complete.',
    remedy: 'Raise the token limit in `llmOptions`; the calls did not run.',
  },
  NotExecutableHere: {
    code: 511,
    happened: 'A call needs an approval or is executed by the client, so it did not run here.',
    remedy: 'Use a run, which suspends for it; `execute` and `call` cannot ask.',
  },
  ToolRefused: {
    code: 512,
    happened: 'A policy refused a call, or threw.',
    remedy: 'Nothing, if that was intended. Otherwise fix the policy.',
  },
  InvalidResult: {
    code: 513,
    happened: 'A tool returned a value that its own `output` schema does not describe.',
    remedy: 'Fix the tool or its `output`.',
  },
  InvalidAnswer: {
    code: 514,
    happened: 'An answer names a call that is not pending, comes twice, or does not fit the question.',
    remedy: 'Answer the entries of `pending`, by their ids.',
  },
  InvalidState: {
    code: 515,
    happened: 'A state or a snapshot was changed, or belongs to another version.',
    remedy: 'Continue with the state that you received, and with the same `stateSecret`.',
  },
  RunNotFound: {
    code: 516,
    happened: 'The store has no suspended run with that id: it has ended, or was never stored there.',
    remedy: 'Give the same `store` to the loop that starts the run.',
  },
  RunClaimed: {
    code: 517,
    happened:
      'Another process continues the run or has ended it; or a new run has the `runId` of another run.',
    remedy: 'Load the run again to see its outcome. A new run needs its own `runId`.',
  },
  RunStoreFailed: {
    code: 518,
    happened: 'The store could not save a run.',
    remedy: 'Read `cause`. The result still has `state` and `pending`; save them yourself.',
  },
  TaskCancelled: {
    code: 519,
    happened: 'Started work was cancelled.',
    remedy: 'Nothing, if you cancelled it. Use `context.signal` in the tool.',
  },
  TaskInterrupted: {
    code: 520,
    happened: 'The process ended before started work was done.',
    remedy: 'Look up the outcome in the tool’s system, or let the model start it again.',
  },
  InvalidOptions: {
    code: 521,
    happened: 'Options are misspelled, wrong or missing.',
    remedy: 'Fix them; `faults` names each and its fix. Nothing has run.',
  },
  EmptyReply: {
    code: 522,
    happened: 'The model replied twice in a row with neither text nor calls.',
    remedy: 'Check the token limit and the prompt. `messages` can be continued.',
  },
  RunNotAllowed: {
    code: 523,
    happened:
      'A run was resumed for another owner, its owner is not certain, or a person may not approve a call.',
    remedy:
      'Resume with the owner’s `scope`, set `stateSecret` if states leave the process, and let a person approve whom `approver` accepts.',
  },
  ToolDeadlock: {
    code: 524,
    happened: 'A call would have waited forever for a call that waits for it.',
    remedy: 'Do not let tools that have `setContext` or `setCallback` call each other in a circle.',
  },
  InvalidOutput: {
    code: 525,
    happened: 'A run with an `output` schema ended without an answer that fits it.',
    remedy: 'Read `content`, the model’s answer; loosen the schema, or use another model.',
  },
  ConversationNotReady: {
    code: 526,
    happened:
      'A conversation cannot be continued or edited while a turn runs or waits, or has nothing to continue from.',
    remedy: 'Wait with `idle()`, answer or abort what is pending, or call `prompt`.',
  },
  RunNotSuspended: {
    code: 527,
    happened: 'A run is not suspended: it was already answered, or its process ended while it was running.',
    remedy: 'Let `recoverRuns` continue it.',
  },
  OutcomeUnknown: {
    code: 528,
    happened: 'A call was interrupted, so its outcome is not known.',
    remedy:
      'Look it up in the tool’s system; give the tool `reconcile`, or let a person decide (`onUnknown`).',
  },
  DefinitionChanged: {
    code: 529,
    happened:
      'A tool was changed while a job or an approval of its call waited, and the arguments no longer fit or would change.',
    remedy:
      'Let the model start it again; approve the call as it is now, refuse it, or cancel the run. While calls wait, only add optional parameters without a default.',
  },
  RequestRefused: {
    code: 536,
    happened: 'A hook refused a request or its reply, or a hook, `prepareStep` or `compactHistory` failed.',
    remedy: 'Nothing, if that was intended. Otherwise fix the function; read `cause`.',
  },
  ResultWithheld: {
    code: 537,
    happened: 'A hook withheld the result of a call, or it failed. The tool may have run.',
    remedy: 'Nothing, if that was intended. Otherwise fix the hook; the log has the error.',
  },
  BudgetSpent: {
    code: 538,
    happened: 'The next step could cost more than the rest of a budget; it was not made.',
    remedy: 'Raise the budget, or wait for the next window. `messages` can be continued.',
  },
  PriceUnknown: {
    code: 539,
    happened: 'A run has a budget for its cost, and the price of its model is not known.',
    remedy: 'Give the model a price: `budget: { prices: { ...PRICES, model: { input, output } } }`.',
  },
  AnswerExpired: {
    code: 540,
    happened: 'A call waited for an answer until its time ran out.',
    remedy: 'Nothing, if that was intended. Otherwise allow more time: `answerWithinMs`, `expiresInMs`.',
  },
  AgentsTooDeep: {
    code: 541,
    happened: 'Agents called each other deeper than allowed.',
    remedy: 'Look for agents that call each other in a circle, or raise `maxDepth` of `agentAsTool`.',
  },
  SandboxUnavailable: {
    code: 543,
    happened: 'A command needs a sandbox, and this machine cannot provide one.',
    remedy:
      "Install what the message names, set `sandbox: 'external'` in a disposable container, or use mode `ask`.",
  },
} as const satisfies { readonly [Name in ErrorName]: ErrorEntry & { readonly code: (typeof CODES)[Name] } };
