import type { CallRecord } from '../contract/call-record.js';
import type { FinishReason, LLMResponse } from '../contract/llm-provider.js';
import type { Message } from '../contract/message.js';
import type { ToolResult } from '../contract/tool-result.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { resultText } from '../registry/result-text.js';
import { beginRun, type LoopRun, type RunSurroundings } from './begin-run.js';
import type { ToolLoopConfig } from './loop-config.js';
import type { EventSink } from './loop-event.js';
import type { ToolLoopResult } from './loop-result.js';
import { addUsage, endState, type LoopEnd } from './loop-state.js';
import { type ReadCall, readCall } from './read-call.js';
import { type Reply, requestReply } from './request-reply.js';
import { answerTruncated, runCalls } from './run-calls.js';
import { assistantMessage, toolMessage } from './write-messages.js';

/** The one loop: ask, run the calls, answer them, ask again (design §1, invariants 1 and 6). */
export async function driveLoop(
  config: ToolLoopConfig,
  messages: readonly Message[],
  surroundings: RunSurroundings,
): Promise<ToolLoopResult> {
  const run = beginRun(config, messages, surroundings);
  await run.sink?.({ type: 'run-start' });
  const result = endState(run.state, await goRound(run));
  await run.sink?.({ type: 'run-end', result });
  return result;
}

async function goRound(run: LoopRun): Promise<LoopEnd> {
  const { state, maxIterations } = run;
  while (state.iterations < maxIterations) {
    const end = await step(run);
    if (end !== undefined) return end;
  }
  return run.signal?.aborted ? aborted() : atLimit(run);
}

/** One request and the calls it leads to; the end, if it is one. */
async function step(run: LoopRun): Promise<LoopEnd | undefined> {
  const { state } = run;
  const reply = await request(run, { withTools: true });
  if (!reply.ok) return noReply(reply);
  const { response } = reply;
  addUsage(state, response.usage);
  const calls = run.numberCalls(response.toolCalls).map(readCall);
  state.messages.push(assistantMessage(response.content, calls));
  const end =
    calls.length === 0
      ? ({ status: 'completed', content: response.content } as const)
      : await answerCalls(run, { calls, finishReason: response.finishReason });
  if (run.sink) await tellStepEnd(run, response);
  return end;
}

async function tellStepEnd({ sink, state }: LoopRun, { finishReason, usage }: LLMResponse): Promise<void> {
  await sink?.({ type: 'step-end', iteration: state.iterations, finishReason, usage });
}

/** Whether the model is offered the tools. */
interface Offer {
  readonly withTools: boolean;
}

/** A step that nobody watches waits for nobody: each wait costs as much as a small tool. */
function request(run: LoopRun, offer: Offer): Promise<Reply> {
  return run.sink === undefined ? ask(run, offer) : announceAndAsk(run, run.sink, offer);
}

async function announceAndAsk(run: LoopRun, sink: EventSink, offer: Offer): Promise<Reply> {
  if (run.signal?.aborted) return ABORTED;
  await sink({ type: 'step-start', iteration: run.state.iterations + 1 });
  // The reader may have aborted the run on hearing that; then nothing is asked.
  return ask(run, offer);
}

const ABORTED: Reply = { ok: false, reason: 'aborted' };

function ask({ config, state, tools, signal, sink }: LoopRun, { withTools }: Offer): Promise<Reply> {
  if (signal?.aborted) return Promise.resolve(ABORTED);
  const definitions = tools.toProviderDefs();
  state.iterations += 1;
  const hasTools = withTools && definitions.length > 0;
  return requestReply(
    config.provider,
    {
      model: config.model,
      // A copy: providers and tests keep what they were given, and the history goes on growing.
      messages: state.messages.slice(),
      options: withTools ? (config.llmOptions ?? {}) : withoutToolOptions(config.llmOptions ?? {}),
      ...(hasTools ? { tools: definitions } : {}),
      ...(signal ? { signal } : {}),
    },
    sink && ((text) => sink({ type: 'text-delta', text })),
  );
}

/** Servers refuse options about tools in a request that offers none. */
function withoutToolOptions(options: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { tool_choice: _, parallel_tool_calls: __, ...others } = options;
  return others;
}

/** The calls of a reply. */
interface ReplyCalls {
  readonly calls: readonly ReadCall[];
  readonly finishReason: FinishReason;
}

async function answerCalls(run: LoopRun, reply: ReplyCalls): Promise<LoopEnd | undefined> {
  const { state, retries, guard, signal } = run;
  const records = await makeCalls(run, reply);
  const verdict = guard?.watch(records);
  for (const record of records) {
    state.messages.push(toolMessage(record.id, record.result, verdict?.notes.get(record.id)));
    state.toolCalls.push(record);
  }
  if (signal?.aborted) return aborted();
  const error = retries.spend(records) ?? verdict?.error;
  return error === undefined ? direct(run, records) : { status: 'failed', error };
}

function makeCalls(
  { config, invoke, state, tools, scope, retries, sink }: LoopRun,
  { finishReason, calls }: ReplyCalls,
): readonly CallRecord[] | Promise<readonly CallRecord[]> {
  const isTruncated = finishReason === 'length' || finishReason === 'content_filter';
  if (isTruncated) return answerTruncated({ calls, sink }, finishReason);
  return runCalls({
    calls,
    tools,
    scope,
    messages: state.messages,
    retries,
    maxConcurrency: config.maxConcurrency ?? Number.POSITIVE_INFINITY,
    invoke,
    sink,
  });
}

/** Where every call was of a `returnDirect` tool and succeeded, the results are the answer. */
function direct({ tools }: LoopRun, records: readonly CallRecord[]): LoopEnd | undefined {
  const isDirect = records.every(
    ({ name, status }) => status === 'success' && tools.offered(name)?.returnDirect,
  );
  if (!isDirect) return undefined;
  return { status: 'completed', content: records.map(({ result }) => directText(result)).join('\n') };
}

function directText(result: ToolResult): string {
  return result.silent || !result.forUser ? resultText(result) : result.forUser;
}

async function atLimit(run: LoopRun): Promise<LoopEnd> {
  const { config, state, maxIterations } = run;
  const message = `The run made ${state.iterations} requests and the model still wanted tools (maxIterations: ${maxIterations}).`;
  const error = new ToolwrightError('ToolLoopLimitReached', message);
  if (config.onLimit === 'throw') throw error;
  if (config.onLimit !== 'answer' || maxIterations === 0) return { status: 'limit', error };
  const reply = await request(run, { withTools: false });
  if (!reply.ok) return noReply(reply);
  const { content, usage } = reply.response;
  addUsage(state, usage);
  // Calls that come although none were offered are left out: nobody will answer them.
  state.messages.push(assistantMessage(content, []));
  await tellStepEnd(run, reply.response);
  return { status: 'limit', content, error };
}

function noReply(reply: Extract<Reply, { ok: false }>): LoopEnd {
  return reply.reason === 'aborted' ? aborted() : { status: 'failed', error: reply.error };
}

function aborted(): LoopEnd {
  return { status: 'aborted', error: new ToolwrightError('RunAborted', 'The run was aborted.') };
}
