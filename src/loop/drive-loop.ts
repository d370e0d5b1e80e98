import type { LLMResponse } from '../contract/llm-provider.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { abortedRun, withoutReply } from './aborted-run.js';
import { answerCalls } from './answer-calls.js';
import { beginRun, type LoopRun, type ResumedRun, type RunStart, type RunSurroundings } from './begin-run.js';
import { detectCalls } from './detect-calls.js';
import { noteInnerRun } from './inner-runs.js';
import { keepRun } from './keep-run.js';
import type { EventSink } from './loop-event.js';
import type { ToolLoopResult } from './loop-result.js';
import { addUsage, endState, type LoopEnd } from './loop-state.js';
import { readCall } from './read-call.js';
import { type Reply, requestReply } from './request-reply.js';
import type { ResumeConfig } from './resume-options.js';
import { restoredCall } from './stored-call.js';
import { type OpenMessage, suspendRun } from './suspend-run.js';
import { assistantMessage } from './write-messages.js';

/** The one loop: ask, run the calls, answer them, ask again. */
export async function driveLoop(
  config: ResumeConfig,
  start: RunStart,
  surroundings: RunSurroundings,
): Promise<ToolLoopResult> {
  const run = beginRun(config, start, surroundings);
  await run.sink?.({ type: 'run-start' });
  const ended = endState(run.state, await goRound(run));
  noteInnerRun(ended.state, run.resumed?.runId);
  const result = await keepRun(ended, surroundings.keep ?? config.store);
  await run.sink?.({ type: 'run-end', result });
  return result;
}

async function goRound(run: LoopRun): Promise<LoopEnd> {
  const { state, maxIterations, resumed } = run;
  if (resumed !== undefined) {
    const end = await goOn(run, resumed);
    if (end !== undefined) return end;
  }
  while (state.iterations < maxIterations) {
    const end = await step(run);
    if (end !== undefined) return end;
  }
  return run.signal?.aborted ? abortedRun(run.signal) : atLimit(run);
}

/** The message at which the run was suspended: its calls, unless some are still to be answered. */
async function goOn(run: LoopRun, { content, calls }: ResumedRun): Promise<LoopEnd | undefined> {
  if (calls.some((call) => call.status === 'waiting' && call.waits.length > 0) && !run.signal?.aborted)
    return stillSuspended(run, { content, calls });
  const message = { content, calls: calls.map(restoredCall), finishReason: 'tool_calls' } as const;
  const end = await answerCalls(run, message);
  run.onStep?.(run, end);
  return end;
}

function stillSuspended(run: LoopRun, open: OpenMessage): LoopEnd {
  const state = suspendRun(run, open);
  if (state !== undefined) return { status: 'suspended', state };
  throw new ToolwrightError('InvalidAnswer', 'The run was not resumed; its answers cannot be kept as JSON.');
}

/** One request and the calls it leads to; the end, if it is one. */
async function step(run: LoopRun): Promise<LoopEnd | undefined> {
  const { state } = run;
  const reply = detectCalls(await request(run, { withTools: true }), {
    detector: run.config.detector,
    tools: run.tools,
  });
  if (!reply.ok) return withoutReply(reply, run.signal);
  const { response } = reply;
  addUsage(state, response.usage);
  const calls = run.numberCalls(response.toolCalls).map(readCall);
  const { content, finishReason } = response;
  const end =
    calls.length === 0
      ? answeredInText(run, response)
      : await answerCalls(run, { content, calls, finishReason });
  if (calls.length > 0) state.isAskedAgain = false;
  run.onStep?.(run, end);
  if (run.sink) await tellStepEnd(run, response);
  return end;
}

/** The model has said its last word, unless it has said nothing at all: then it is asked once more. */
function answeredInText(run: LoopRun, { content, finishReason }: LLMResponse): LoopEnd | undefined {
  const { state, maxIterations } = run;
  if (content.trim() !== '' || hasSpoken(run)) {
    state.messages.push(assistantMessage(content, []));
    return { status: 'completed', content };
  }
  if (!state.isAskedAgain && state.iterations < maxIterations) {
    state.isAskedAgain = true;
    return undefined;
  }
  const message = `The model replied with neither text nor calls (finish reason: ${finishReason}).`;
  return { status: 'failed', error: new ToolwrightError('EmptyReply', message) };
}

/** Whether a tool of the run has given the user an answer already. */
function hasSpoken({ state, tools }: LoopRun): boolean {
  return state.toolCalls.some(({ name, status, result }) => {
    const isTold = Boolean(result.forUser) && !result.silent;
    return isTold || (status === 'success' && tools.offered(name)?.returnDirect);
  });
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

function ask(
  { config, state, tools, signal, sink, hasReader }: LoopRun,
  { withTools }: Offer,
): Promise<Reply> {
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
      options: hasTools ? (config.llmOptions ?? {}) : withoutToolOptions(config.llmOptions ?? {}),
      ...(hasTools ? { tools: definitions } : {}),
      ...(signal ? { signal } : {}),
    },
    sink && hasReader?.() !== false ? (text) => sink({ type: 'text-delta', text }) : undefined,
  );
}

/** Servers refuse options about tools in a request that offers none. */
function withoutToolOptions(options: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  if (!('tool_choice' in options) && !('parallel_tool_calls' in options)) return options;
  const { tool_choice: _, parallel_tool_calls: __, ...others } = options;
  return others;
}

async function atLimit(run: LoopRun): Promise<LoopEnd> {
  const { config, state, maxIterations } = run;
  const message =
    maxIterations === 0
      ? 'The run made no request: maxIterations is 0.'
      : `The run made ${state.iterations} requests and the model still wanted tools (maxIterations: ${maxIterations}).`;
  const error = new ToolwrightError('ToolLoopLimitReached', message);
  if (config.onLimit === 'throw') throw error;
  if (config.onLimit !== 'answer' || maxIterations === 0) return { status: 'limit', error };
  const reply = await request(run, { withTools: false });
  if (!reply.ok) return withoutReply(reply, run.signal);
  const { content, usage } = reply.response;
  addUsage(state, usage);
  // Calls that come although none were offered are left out: nobody will answer them.
  state.messages.push(assistantMessage(content, []));
  const end = { status: 'limit', content, error } as const;
  run.onStep?.(run, end);
  await tellStepEnd(run, reply.response);
  return end;
}
