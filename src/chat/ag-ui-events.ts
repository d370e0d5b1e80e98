import type { PendingCall } from '../contract/call.js';
import type { JsonObject, JsonSchema } from '../contract/json-schema.js';
import { approvalDescriptor, type DescribeError } from './shown-calls.js';

/** An event of AG-UI 1.0. */
export type AgUiEvent = { readonly type: string } & Readonly<Record<string, unknown>>;

/** A message as AG-UI has it. */
export interface AgUiMessage {
  readonly id: string;
  readonly role: string;
  readonly content?: unknown;
  readonly toolCallId?: string;
  readonly toolCalls?: readonly unknown[];
  readonly metadata?: object;
}

/** Something that a turn has said, in order. */
export type ToldItem =
  | { readonly kind: 'text' | 'reasoning'; readonly id: string; readonly text: string }
  | {
      readonly kind: 'call';
      readonly id: string;
      readonly parent: string;
      readonly tool: string;
      args: string;
    }
  | {
      readonly kind: 'result';
      readonly id: string;
      readonly callId: string;
      readonly text: string;
      readonly metadata: object;
    };

/** The messages that clients make of what a turn has said. */
export function messagesOf(items: readonly ToldItem[]): readonly AgUiMessage[] {
  const messages = new Map<string, AgUiMessage>();
  for (const item of items) {
    if (item.kind === 'call') addCall(messages, item);
    else messages.set(item.id, messageOf(item));
  }
  return [...messages.values()];
}

function messageOf(item: Exclude<ToldItem, { readonly kind: 'call' }>): AgUiMessage {
  const { id, text: content } = item;
  if (item.kind === 'result')
    return { id, role: 'tool', content, toolCallId: item.callId, metadata: item.metadata };
  return { id, role: item.kind === 'text' ? 'assistant' : 'reasoning', content };
}

function addCall(
  messages: Map<string, AgUiMessage>,
  { id, parent, tool, args }: Extract<ToldItem, { readonly kind: 'call' }>,
): void {
  const message = messages.get(parent) ?? { id: parent, role: 'assistant' };
  const call = { id, type: 'function', function: { name: tool, arguments: args } };
  messages.set(parent, { ...message, toolCalls: [...(message.toolCalls ?? []), call] });
}

interface OutcomeWords {
  readonly describeError: DescribeError;
  /** The id by which the client knows a call. */
  readonly shownId: (callId: string) => string;
}

/** How a run ends for AG-UI: what waits for a person is an interrupt, what the client executes is left to it. */
export function agUiOutcome(event: JsonObject, { describeError, shownId }: OutcomeWords): AgUiEvent {
  const { status, error, content, output, pending } = event;
  switch (status) {
    case 'suspended':
      return suspended((pending ?? []) as unknown as readonly PendingCall[], shownId);
    case 'aborted':
      return { type: 'RUN_FINISHED', outcome: { type: 'cancelled' } };
    case 'failed':
      return { type: 'RUN_ERROR', message: describeError((error ?? {}) as JsonObject), code: 'failed' };
    case 'limit':
      return { type: 'RUN_ERROR', message: 'The run came to its limit.', code: 'limit' };
    default:
      return { type: 'RUN_FINISHED', result: output ?? content ?? '', outcome: { type: 'success' } };
  }
}

function suspended(pending: readonly PendingCall[], shownId: OutcomeWords['shownId']): AgUiEvent {
  const interrupts = pending
    .filter(({ kind }) => kind !== 'client')
    .map((wait) => interruptOf(wait, shownId(wait.callId)));
  const pendingToolCallIds = pending
    .filter(({ kind }) => kind === 'client')
    .map(({ callId }) => shownId(callId));
  if (interrupts.length > 0) return { type: 'RUN_FINISHED', outcome: { type: 'interrupt', interrupts } };
  return { type: 'RUN_FINISHED', outcome: { type: 'success', pendingToolCallIds } };
}

function interruptOf(wait: PendingCall, toolCallId: string): object {
  const { id, kind, tool, message, schema, expiresAt, title, mayRemember } = wait;
  const of = { id, toolCallId, ...(expiresAt === undefined ? {} : { expiresAt }) };
  switch (kind) {
    case 'question':
      return { ...of, reason: 'input_required', message: message ?? tool, responseSchema: schemaOf(schema) };
    case 'approval':
      return {
        ...of,
        reason: 'tool_call',
        message: message ?? title ?? `May ‘${tool}’ be called?`,
        responseSchema: approvalSchema(mayRemember),
        ...withMetadata(approvalDescriptor(wait)),
      };
    default:
      // Nobody but an operator can say what came of a call whose process died.
      return { ...of, reason: `toolwright:${kind}`, message: message ?? tool };
  }
}

const APPROVAL = {
  type: 'object',
  properties: {
    approved: { type: 'boolean' },
    reason: { type: 'string' },
    editedArgs: { type: 'object', description: 'All arguments of the call, in place of those that it has.' },
  },
  required: ['approved'],
};

function approvalSchema(mayRemember: PendingCall['mayRemember']): object {
  if (mayRemember === undefined) return APPROVAL;
  const remember = {
    type: 'object',
    description: 'The yes is to stand for later calls, too.',
    properties: { scope: { enum: mayRemember.scopes }, expires: { type: 'string', format: 'date-time' } },
    required: ['scope'],
  };
  return { ...APPROVAL, properties: { ...APPROVAL.properties, remember } };
}

function withMetadata(toolwright: JsonObject | undefined): object {
  return toolwright === undefined ? {} : { metadata: { toolwright } };
}

function schemaOf(schema: JsonSchema | undefined): object {
  return typeof schema === 'object' ? schema : {};
}

/** The tokens of a turn, in the words of AG-UI. */
export function agUiUsage(usage: unknown): { readonly usage?: readonly object[] } {
  const {
    inputTokens,
    outputTokens,
    totalTokens,
    reasoningTokens,
    cacheReadTokens: cachedInputTokens,
    cacheWriteTokens: cacheWriteInputTokens,
  } = (usage ?? {}) as Readonly<Record<string, unknown>>;
  if (!totalTokens) return {};
  const counts = {
    ...{ inputTokens, outputTokens, totalTokens },
    ...{ reasoningTokens, cachedInputTokens, cacheWriteInputTokens },
  };
  const told = Object.entries(counts).filter(([, count]) => Number.isSafeInteger(count));
  return { usage: [Object.fromEntries(told)] };
}
