import type { CallRecord } from '../contract/call-record.js';
import type { CallScope } from '../contract/call-scope.js';
import type { LLMResponse } from '../contract/llm-provider.js';
import type { Message } from '../contract/message.js';
import type { ToolResult } from '../contract/tool-result.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { resultText } from '../registry/result-text.js';
import { ToolRegistry } from '../registry/tool-registry.js';
import type { ToolLoopConfig } from './loop-config.js';
import type { ToolLoopResult } from './loop-result.js';
import { addUsage, beginState, endState, type LoopEnd, type LoopState } from './loop-state.js';
import { createCallNumberer } from './number-calls.js';
import { type Reply, requestReply } from './request-reply.js';
import { RetryBudget } from './retry-budget.js';
import { answerTruncated, runCalls } from './run-calls.js';
import { assistantMessage, toolMessage } from './write-messages.js';

const DEFAULTS = { maxIterations: 20, maxRetries: 2, toolTimeoutMs: 120_000 } as const;

/** The one loop: ask, run the calls, answer them, ask again (design §1, invariants 1 and 6). */
export async function driveLoop(
  config: ToolLoopConfig,
  messages: readonly Message[],
  scope: CallScope = {},
): Promise<ToolLoopResult> {
  const run = beginRun(config, messages, scope);
  const { state, maxIterations } = run;
  while (state.iterations < maxIterations) {
    const end = await step(run);
    if (end !== undefined) return endState(state, end);
  }
  return endState(state, run.signal?.aborted ? aborted() : await atLimit(run));
}

interface Run {
  readonly config: ToolLoopConfig;
  readonly state: LoopState;
  readonly tools: ToolRegistry;
  readonly scope: CallScope;
  readonly signal: AbortSignal | undefined;
  readonly retries: RetryBudget;
  readonly numberCalls: ReturnType<typeof createCallNumberer>;
  readonly maxIterations: number;
}

function beginRun(config: ToolLoopConfig, messages: readonly Message[], scope: CallScope): Run {
  if (typeof config?.provider?.chat !== 'function')
    throw new TypeError('config.provider must have a chat method');
  const state = beginState(messages);
  const tools =
    config.tools instanceof ToolRegistry
      ? config.tools
      : new ToolRegistry().register(...(config.tools ?? []));
  const signal = joinSignals(config.signal, scope.signal);
  return {
    config,
    state,
    tools,
    signal,
    scope: { ...scope, signal },
    retries: new RetryBudget(config.maxRetries ?? DEFAULTS.maxRetries, (name) => tools.offered(name)),
    numberCalls: createCallNumberer(state.messages),
    maxIterations: config.maxIterations ?? DEFAULTS.maxIterations,
  };
}

function joinSignals(one: AbortSignal | undefined, other: AbortSignal | undefined): AbortSignal | undefined {
  return one && other && one !== other ? AbortSignal.any([one, other]) : (one ?? other);
}

/** One request and the calls it leads to; the end, if it is one. */
async function step(run: Run): Promise<LoopEnd | undefined> {
  const { state } = run;
  const reply = await request(run, { withTools: true });
  if (!reply.ok) return noReply(reply);
  const { response } = reply;
  const calls = run.numberCalls(response.toolCalls);
  state.messages.push(assistantMessage(response.content, calls));
  if (calls.length === 0) return { status: 'completed', content: response.content };
  const records = await answerCalls(run, { ...response, toolCalls: calls });
  if (run.signal?.aborted) return aborted();
  const exhausted = run.retries.spend(records);
  if (exhausted !== undefined) return { status: 'failed', error: exhausted };
  return direct(run, records);
}

async function request(
  { config, state, tools, signal }: Run,
  { withTools }: { withTools: boolean },
): Promise<Reply> {
  if (signal?.aborted) return { ok: false, reason: 'aborted' };
  const definitions = tools.toProviderDefs();
  state.iterations += 1;
  const reply = await requestReply(config.provider, {
    model: config.model,
    // A copy: providers and tests keep what they were given, and the history goes on growing.
    messages: [...state.messages],
    options: config.llmOptions ?? {},
    ...(withTools && definitions.length > 0 ? { tools: definitions } : {}),
    ...(signal ? { signal } : {}),
  });
  if (reply.ok) addUsage(state, reply.response.usage);
  return reply;
}

async function answerCalls(run: Run, response: LLMResponse): Promise<readonly CallRecord[]> {
  const { config, state, tools, scope, retries } = run;
  const { finishReason, toolCalls: calls } = response;
  const isTruncated = finishReason === 'length' || finishReason === 'content_filter';
  const records = isTruncated
    ? answerTruncated(calls, finishReason)
    : await runCalls({
        calls,
        tools,
        scope,
        messages: state.messages,
        retries,
        maxConcurrency: config.maxConcurrency ?? Number.POSITIVE_INFINITY,
        options: {
          toolTimeoutMs: config.toolTimeoutMs ?? DEFAULTS.toolTimeoutMs,
          onAsyncResult: config.onAsyncResult,
          ...(config.logger ? { logger: config.logger } : {}),
        },
      });
  for (const record of records) {
    state.messages.push(toolMessage(record.id, record.result));
    state.toolCalls.push(record);
  }
  return records;
}

/** Where every call was of a `returnDirect` tool and succeeded, the results are the answer. */
function direct({ tools }: Run, records: readonly CallRecord[]): LoopEnd | undefined {
  const isDirect = records.every(
    ({ name, status }) => status === 'success' && tools.offered(name)?.returnDirect,
  );
  if (!isDirect) return undefined;
  return {
    status: 'completed',
    content: records.map(({ result }) => directText(result)).join('\n'),
  };
}

function directText(result: ToolResult): string {
  return result.silent || !result.forUser ? resultText(result) : result.forUser;
}

async function atLimit(run: Run): Promise<LoopEnd> {
  const { config, state, maxIterations } = run;
  const message = `The run made ${state.iterations} requests and the model still wanted tools (maxIterations: ${maxIterations}).`;
  const error = new ToolwrightError('ToolLoopLimitReached', message);
  if (config.onLimit === 'throw') throw error;
  if (config.onLimit !== 'answer' || maxIterations === 0) return { status: 'limit', error };
  const reply = await request(run, { withTools: false });
  if (!reply.ok) return noReply(reply);
  const { content } = reply.response;
  // Calls that come although none were offered are left out: nobody will answer them.
  state.messages.push(assistantMessage(content, []));
  return { status: 'limit', content, error };
}

function noReply(reply: Extract<Reply, { ok: false }>): LoopEnd {
  return reply.reason === 'aborted' ? aborted() : { status: 'failed', error: reply.error };
}

function aborted(): LoopEnd {
  return { status: 'aborted', error: new ToolwrightError('RunAborted', 'The run was aborted.') };
}
