import {
  type CallRecord,
  type Conversations,
  complete,
  discoverTools,
  type ErrorName,
  type KeptEvent,
  type LogFields,
  type Logger,
  type LoopStatus,
  type Message,
  type PendingCall,
  type RunState,
  type RunStore,
  resumeStoredRun,
  resumeToolLoop,
  runToolLoop,
  streamResumedToolLoop,
  streamToolLoop,
  type ToolCallResult,
  type ToolDefinition,
  type ToolLoopConfig,
  type ToolLoopResult,
  ToolRegistry,
  type ToolResult,
  type ToolSchema,
  ToolwrightError,
  type Usage,
} from 'toolwright';
import { createLogger as createWinstonLogger } from 'toolwright/winston';
import { z } from 'zod';
import type { Equal, Expect } from './expect-type.js';

type Run = Awaited<ReturnType<typeof runToolLoop>>;
type Block = Awaited<ReturnType<typeof complete>>['content'][number];
type CallBlock = Extract<Block, { type: 'toolCall' }>;

export type Claims = [
  Expect<Run extends ToolLoopResult ? (ToolLoopResult extends Run ? true : false) : false>,
  Expect<Equal<Run['status'], LoopStatus>>,
  Expect<Equal<LoopStatus, 'completed' | 'limit' | 'suspended' | 'aborted' | 'failed' | 'budget'>>,
  Expect<Equal<Run['content'], string>>,
  Expect<Equal<Run['messages'], readonly Message[]>>,
  Expect<Equal<Run['toolCalls'], readonly CallRecord[]>>,
  Expect<Equal<Run['usage'], Usage>>,
  Expect<Equal<Run['error'], Error | undefined>>,
  Expect<Equal<CallRecord['result'], ToolResult>>,
  Expect<Equal<CallRecord['rawArguments'], unknown>>,
  Expect<Equal<CallBlock['name'], string>>,
  Expect<Equal<Block['type'], 'text' | 'toolCall'>>,
  Expect<Equal<ReturnType<ToolRegistry['execute']>, Promise<ToolResult>>>,
  Expect<Equal<ReturnType<ToolRegistry['executeWithContext']>, Promise<ToolResult>>>,
  Expect<Equal<ReturnType<ToolRegistry['call']>, Promise<ToolCallResult>>>,
  Expect<Equal<ReturnType<ToolRegistry['get']>, ToolDefinition | undefined>>,
  Expect<Equal<ReturnType<ToolRegistry['toProviderDefs']>, readonly ToolSchema[]>>,
  Expect<Equal<Parameters<ToolRegistry['execute']>[1], unknown>>,
  Expect<Equal<ReturnType<typeof discoverTools>[number], ToolDefinition>>,
  Expect<Equal<ToolwrightError['name'], ErrorName>>,
  Expect<Equal<ToolwrightError['code'], number>>,
];

/** A winston logger is a `Logger`. */
export const logger: Logger = createWinstonLogger();

/** The fields of a log entry may have any type. */
export type Fields = Expect<Equal<LogFields[string], unknown>>;

/** `ToolwrightError.is` accepts any thrown value. */
export function codeOf(thrown: unknown): number | undefined {
  return ToolwrightError.is(thrown) ? thrown.code : undefined;
}

export const registry: ToolRegistry = new ToolRegistry().register(() => [...discoverTools()][0]!);

/** The `type` of an event narrows its other properties. */
export async function read(conversations: Conversations): Promise<string> {
  for await (const { event } of conversations.events('c1')) {
    if (event.type === 'turn-start') return `${event.turn.number.toFixed()} ${event.turn.key.trim()}`;
    if (event.type === 'call-end')
      return `${event.tool.trim()} ${event.result.forLLM.trim()} ${event.taskId?.trim()}`;
    if (event.type === 'call-event' && event.event.type === 'text-delta') return event.event.text.trim();
    if (event.type === 'turn-end')
      return `${event.status} ${event.error?.message.trim()} ${event.content?.trim()}`;
    if (event.type === 'answers-refused') return `${event.isLate} ${event.error.code?.toFixed()}`;
    if (event.type === 'turn-suspended') for (const { id } of event.pending ?? []) id.trim();
    // Unknown properties may be read, because newer versions may add some.
    if (event.type === 'run-start' && event.newer === undefined) return '';
    // @ts-expect-error: there is no such event.
    if (event.type === 'turn-begin') return '';
  }
  return '';
}

export type Events = [
  Expect<Equal<Extract<KeptEvent, { type: 'call-suspended' }>['pending'], readonly PendingCall[]>>,
  Expect<Equal<Extract<KeptEvent, { type: 'user-message' }>['text'], string>>,
  Expect<Equal<Extract<KeptEvent, { type: 'run-end' }>['status'], LoopStatus>>,
];

/** Every way to start or resume a run has the type of its `output`. */
export async function degreesOf(
  given: ToolLoopConfig,
  { state, store }: { readonly state: RunState; readonly store: RunStore },
): Promise<readonly (number | undefined)[]> {
  const config = { ...given, output: z.object({ degrees: z.number() }) };
  const runs = [
    await runToolLoop(config, []),
    await streamToolLoop(config, []).result,
    await resumeToolLoop(config, state, []),
    await streamResumedToolLoop(config, state, []).result,
    await resumeStoredRun(config, { store, runId: 'r1' }, []),
  ];
  return runs.map(({ output }) => output?.degrees);
}
