import { canonicalJson } from '../checking/canonical-json.js';
import type { CallRecord, CallStatus } from '../contract/call-record.js';
import type { JsonObject } from '../contract/json-schema.js';
import type { Suspension } from '../contract/suspension.js';
import type { ToolDefinition } from '../contract/tool-definition.js';
import type { ToolResult } from '../contract/tool-result.js';
import { copyOfJson } from '../kernel/copy-of-json.js';
import { namesByNearness } from '../kernel/nearest-name.js';
import { CallContext } from './call-context.js';
import { CallLog } from './call-log.js';
import { type CallPlan, planOf } from './call-plan.js';
import { checkArguments, type ReadyArguments } from './check-arguments.js';
import { concludeRun } from './conclude-run.js';
import { errorMessage } from './error-message.js';
import { failedResult } from './failed-result.js';
import type { CallEnvironment, CallRequest, Invocation } from './invocation.js';
import { performOpen } from './perform-open.js';
import type { PerformedCall } from './performed-call.js';
import { awaitWork, type Ended, runTool, type ToolRun } from './run-tool.js';
import { writeEnding } from './write-ending.js';

/** Takes from an answered call what its caller wants of it. */
export type AnswerOf<Answer> = (invocation: Invocation) => Answer;

/**
 * The staircase every call takes, whoever makes it: find ▸ read ▸ check ▸ allow ▸ run ▸ write.
 * Each step can end the call with a result; nothing is thrown. Synchronous as long as the tool is, and one
 * promise where it is not: a promise for each step would cost more than the steps.
 */
export function callTool<Answer>(
  call: CallRequest,
  environment: CallEnvironment,
  answerOf: AnswerOf<Answer>,
): Answer | Promise<Answer> {
  return new Staircase(call, environment, answerOf).climb();
}

/** What a call came to, as data: the call itself is no part of it. */
export function invocationOf(call: Invocation): Invocation {
  const { result, record } = call;
  if (call.status !== 'suspended') return { status: call.status, result, record };
  return { status: call.status, suspension: call.suspension, result, record };
}

const NONE: readonly string[] = [];

/** One call on its way up. What a step finds out, the next ones read here. */
class Staircase<Answer> implements ToolRun<Answer> {
  readonly call: CallRequest;
  readonly environment: CallEnvironment;
  readonly log: CallLog;
  /** When the call began, by `performance.now()`; 0 where nobody wants to know. */
  readonly since: number;
  tool!: ToolDefinition;
  plan!: CallPlan;
  args!: JsonObject;
  sent: unknown;
  context: CallContext | undefined;
  result!: ToolResult;
  suspension: Suspension | undefined;
  readonly #answerOf: AnswerOf<Answer>;

  #ready: ReadyArguments | undefined;
  #status: CallStatus = 'error';
  #durationMs = 0;
  #taskId: string | undefined;

  constructor(call: CallRequest, environment: CallEnvironment, answerOf: AnswerOf<Answer>) {
    const { logger, isTimed } = environment;
    this.call = call;
    this.sent = call.arguments;
    this.environment = environment;
    this.log = logger === undefined ? CallLog.none : new CallLog(environment, call);
    this.since = logger !== undefined || isTimed ? performance.now() : 0;
    this.#answerOf = answerOf;
  }

  get status(): Invocation['status'] {
    return this.#status === 'started' || this.#status === 'suspended' ? this.#status : 'settled';
  }

  /** Written only for those who ask: most calls are made for their result. */
  get record(): CallRecord {
    const usable = this.#ready?.ok ? this.#ready : undefined;
    return {
      id: this.call.id,
      name: this.call.name,
      rawArguments: this.sent,
      arguments: usable?.value,
      repairs: usable?.repairs ?? NONE,
      removed: usable?.removed ?? NONE,
      attempts: this.environment.attempt ?? 1,
      durationMs: this.#durationMs,
      status: this.#status,
      taskId: this.#taskId,
      result: this.result,
    };
  }

  /** find ▸ read ▸ check */
  climb(): Answer | Promise<Answer> {
    const { call, environment } = this;
    try {
      const tool = environment.find(call.name);
      if (tool === undefined) return this.#notFound();
      this.tool = tool;
      this.plan = planOf(tool, environment);
      const ready = checkArguments(tool, this.plan, call);
      return ready instanceof Promise ? this.#checkLater(ready) : this.#proceed(ready);
    } catch (cause) {
      return this.#broken(cause);
    }
  }

  #notFound(): Answer {
    this.log.notFound();
    const message = notFound(this.call.name, this.environment);
    return this.#end({ status: 'rejected', result: failedResult('ToolNotFound', message) });
  }

  /** Rules of a class may be asynchronous, and then they may hang like any tool: the same limits hold. */
  #checkLater(checking: Promise<ReadyArguments>): Promise<Answer> {
    const onEnd = (ended: Ended): Answer | Promise<Answer> => {
      if (ended.how === 'threw') return this.#broken(ended.error);
      return ended.how === 'returned' ? this.#proceed(ended.value as ReadyArguments) : this.onEnd(ended);
    };
    const { call, environment, log, tool } = this;
    return awaitWork<Answer>({ call, environment, log, tool, args: {}, context: undefined, onEnd }, checking);
  }

  /** allow ▸ run */
  #proceed(ready: ReadyArguments): Answer | Promise<Answer> {
    this.#ready = ready;
    if (!ready.ok) return this.#rejected(ready);
    if (this.log.isRead) this.log.mended(ready);
    this.args = ready.hydrated ?? ready.value;
    // The tool may change what it is given; nobody looks at what was sent where there is no record and no context.
    if (this.environment.isTimed || !this.tool.ignoresContext) this.sent = copyOfJson(this.call.arguments);
    return this.#isPlain ? this.#runPlainly(ready.value) : this.#runOpen(ready);
  }

  #rejected({ faults, message }: ReadyArguments & { readonly ok: false }): Answer {
    if (this.log.isRead) this.log.rejected(faults, performance.now() - this.since);
    return this.#end({ status: 'rejected', result: failedResult('InvalidArguments', message) });
  }

  /** Nothing to wait for before the body runs, and nothing that may follow its answer. */
  get #isPlain(): boolean {
    const { plan, environment, call } = this;
    if (plan.isShared || plan.isGuarded || call.journal !== undefined) return false;
    return environment.onAsyncResult === undefined && environment.policies === undefined;
  }

  #runPlainly(checked: JsonObject): Answer | Promise<Answer> {
    if (this.log.isRead) this.log.started(checked);
    if (!this.tool.ignoresContext) this.context = new CallContext(this);
    return runTool(this);
  }

  /** A call that waits for its turn or its permission, or whose work may outlive its answer. */
  #runOpen(ready: ReadyArguments & { readonly ok: true }): Promise<Answer> {
    const { environment, log, since, tool, plan, args, sent } = this;
    const call = withJournalFor(ready.value, this.call);
    return performOpen({ call, environment, log, since, tool, plan, args, sent, checked: ready.value })
      .then((performed) => {
        this.#taskId = performed.taskId;
        return this.#end(performed);
      })
      .catch((cause) => this.#broken(cause));
  }

  /** write */
  onEnd(ended: Ended): Answer | Promise<Answer> {
    try {
      if (this.context?.replay !== undefined) return this.#concludeLater(ended, this.context);
      return this.#answer(writeEnding(this, ended));
    } catch (cause) {
      return this.#broken(cause);
    }
  }

  /** The body used `ask` or `once`. */
  async #concludeLater(ended: Ended, context: CallContext): Promise<Answer> {
    const checked = this.#ready?.ok ? this.#ready.value : {};
    return this.#answer(await concludeRun(this, { ended, checked, context }));
  }

  #answer(performed: PerformedCall): Answer | Promise<Answer> {
    if (this.log.isRead) this.log.performed(performed, performance.now() - this.since);
    this.context?.unfollow();
    return this.context?.isOpen ? this.#close(performed) : this.#end(performed);
  }

  async #close(performed: PerformedCall): Promise<Answer> {
    await this.context?.close();
    return this.#end(performed);
  }

  /** Only a tool's declaration gets here: a schema that is none, a factory, a constructor, a getter. */
  #broken(cause: unknown): Answer {
    const message = `The tool '${this.call.name}' cannot be called: ${errorMessage(cause)}`;
    const result = failedResult('InvalidToolSignature', message, cause);
    this.log.ended(result, performance.now() - this.since);
    return this.#end({ status: 'error', result });
  }

  #end({ status, result, suspension }: PerformedCall): Answer {
    this.#status = status;
    this.result = result;
    this.suspension = suspension;
    if (this.since !== 0) this.#durationMs = performance.now() - this.since;
    return this.#answerOf(this as Invocation);
  }
}

/** What was said about other arguments does not count: a changed schema may have changed a default. */
function withJournalFor(checked: JsonObject, call: CallRequest): CallRequest {
  const { id, name, arguments: args, read, text, journal } = call;
  if (journal === undefined || canonicalJson(checked) === canonicalJson(journal.arguments)) return call;
  return { id, name, arguments: args, read, text };
}

const MAX_SUGGESTED = 3;

function notFound(given: unknown, { names }: CallEnvironment): string {
  const name = typeof given === 'string' ? given : String(JSON.stringify(given));
  const near = namesByNearness(name, names?.() ?? NONE).slice(0, MAX_SUGGESTED);
  const suggestion = near.length === 0 ? '' : `\nDid you mean ${near.join(', ')}?`;
  return `tool not found: ${name}${suggestion}`;
}
