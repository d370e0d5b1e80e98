import type { CallRecord } from '../contract/call-record.js';
import type { Usage } from '../contract/llm-provider.js';
import type { Message } from '../contract/message.js';
import type { RunState } from '../contract/run-state.js';
import type { LoopStatus, ToolLoopResult } from './loop-result.js';
import { restoredRecord } from './stored-call.js';

/** What grows while a run goes on. */
export interface LoopState {
  /** Only ever appended to. */
  readonly messages: Message[];
  readonly toolCalls: CallRecord[];
  iterations: number;
  usage: Usage;
  /** The last reply said nothing, and the model is asked once more. */
  isAskedAgain: boolean;
}

const NO_USAGE: Usage = { inputTokens: 0, outputTokens: 0, totalTokens: 0 };

/** A run that has not begun; the input array stays the caller's. */
export function beginState(messages: readonly Message[]): LoopState {
  return { messages: [...messages], toolCalls: [], iterations: 0, usage: NO_USAGE, isAskedAgain: false };
}

/** How far a run has come at a moment when every call of its history has its answer; plain JSON. */
export type RunProgress = Pick<
  RunState,
  'owner' | 'tools' | 'model' | 'messages' | 'toolCalls' | 'iterations' | 'usage' | 'retries' | 'guard'
>;

/** A run that had begun before. */
export function resumeState({ messages, toolCalls, iterations, usage }: RunProgress): LoopState {
  const records = toolCalls.map(restoredRecord);
  return { messages: [...messages], toolCalls: records, iterations, usage, isAskedAgain: false };
}

/** Adds the tokens of one reply, where it told them. */
export function addUsage(state: LoopState, usage: Usage | undefined): void {
  if (usage === undefined) return;
  state.usage = {
    inputTokens: sum(state.usage.inputTokens, usage.inputTokens),
    outputTokens: sum(state.usage.outputTokens, usage.outputTokens),
    totalTokens: sum(state.usage.totalTokens, usage.totalTokens),
  };
}

function sum(one: number, other: number): number {
  return Math.min(one + other, Number.MAX_SAFE_INTEGER);
}

/** How a run ends. */
export interface LoopEnd {
  readonly status: LoopStatus;
  readonly content?: string;
  /** Of a suspended run. */
  readonly state?: RunState;
  readonly error?: Error;
}

/** The outcome of a run that ends now. */
export function endState(run: LoopState, { status, content = '', state, error }: LoopEnd): ToolLoopResult {
  const { messages, toolCalls, iterations, usage } = run;
  return {
    content,
    iterations,
    status,
    messages,
    toolCalls,
    usage,
    ...(state ? { pending: state.pending, state } : {}),
    ...(error ? { error } : {}),
  };
}
