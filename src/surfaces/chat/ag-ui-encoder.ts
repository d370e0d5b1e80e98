import type { PendingCall } from '../../core/contract/call.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import { isRecord, withoutUndefined } from '../../core/kernel/json.js';
import {
  approvalDescriptor,
  type DescribeTurnError,
  NOT_ENDED,
  NOT_MADE,
  type ShownCall,
  shownCallId,
  TurnEncoder,
  userText,
} from './turn-encoder.js';

export type AgUiEvent = { readonly type: string } & Readonly<Record<string, unknown>>;

export interface AgUiMessage {
  readonly id: string;
  readonly role: string;
  readonly content?: unknown;
  readonly toolCallId?: string;
  readonly toolCalls?: readonly unknown[];
  readonly metadata?: object;
}

/** A tool call of a message; its arguments grow while they are streamed. */
interface MessageCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; arguments: string };
}

/** An output of a turn, in order. */
type TurnItem = { readonly message: AgUiMessage } | { readonly parent: string; readonly call: MessageCall };

interface AgUiEncoderOptions {
  /** Prefix of message ids in a run that is not a turn of a conversation. */
  readonly runId?: string;
  readonly describeError: DescribeTurnError;
  /** The client's own messages, for snapshots. */
  readonly messages: readonly AgUiMessage[];
  /** The client's own state, for snapshots. */
  readonly state?: unknown;
}

/** Encodes a turn as AG-UI 1.0 events. RUN_STARTED is not included, because it depends on the reader. */
export class AgUiEncoder extends TurnEncoder<AgUiEvent, ShownCall> {
  readonly #options: AgUiEncoderOptions;
  readonly #items: TurnItem[] = [];
  /** Run ids of agents by the calls that contain them; AG-UI needs the same id at the end of a subagent. */
  readonly #agents = new Map<string, string>();
  #agentRuns = 0;
  #parts = 0;
  /** The text or reasoning that is being streamed. */
  #open: { readonly kind: 'text' | 'reasoning'; readonly id: string; text: string } | undefined;
  /** Number of items before the step. */
  #firstItem = 0;
  /** The message to which calls of the step belong. */
  #parent: string | undefined;

  constructor(options: AgUiEncoderOptions) {
    super(options.describeError);
    this.#options = options;
  }

  /** The messages that a client builds from the turn's events so far. */
  get messages(): readonly AgUiMessage[] {
    const messages = new Map<string, AgUiMessage>();
    for (const item of this.#items) {
      if ('message' in item) messages.set(item.message.id, item.message);
      else {
        const message = messages.get(item.parent) ?? { id: item.parent, role: 'assistant' };
        messages.set(item.parent, { ...message, toolCalls: [...(message.toolCalls ?? []), item.call] });
      }
    }
    return [...messages.values()];
  }

  protected beginStep(): AgUiEvent[] {
    this.#parent = undefined;
    this.#firstItem = this.#items.length;
    return this.reopenStep();
  }

  protected reopenStep(): AgUiEvent[] {
    return [{ type: 'STEP_STARTED', stepName: `step-${this.step?.iteration}` }];
  }

  /** AG-UI can only remove output by sending a snapshot of all messages. */
  protected dropStep(): AgUiEvent[] {
    if (!this.step?.isOpen) return [];
    const cutOff = [...this.calls.values()].filter(({ phase }) => phase === 'input');
    const closed = [
      ...this.endPart(),
      ...cutOff.map(({ toolCallId }) => ({ type: 'TOOL_CALL_END', toolCallId })),
    ];
    const dropped = this.#items.splice(this.#firstItem);
    this.calls.clear();
    this.#parent = undefined;
    return dropped.length === 0 ? closed : [...closed, this.#snapshot()];
  }

  protected stepEnd(): AgUiEvent {
    return { type: 'STEP_FINISHED', stepName: `step-${this.step?.iteration}` };
  }

  protected write(kind: 'text' | 'reasoning', delta: string): AgUiEvent[] {
    if (delta === '') return [];
    const type = kind === 'text' ? 'TEXT_MESSAGE' : 'REASONING_MESSAGE';
    if (this.#open?.kind === kind) {
      this.#open.text += delta;
      return [{ type: `${type}_CONTENT`, messageId: this.#open.id, delta }];
    }
    const ended = this.endPart();
    const messageId = this.#newId();
    this.#open = { kind, id: messageId, text: delta };
    this.#parent = kind === 'text' ? messageId : undefined;
    return [
      ...ended,
      ...(kind === 'text' ? [] : [{ type: 'REASONING_START', messageId }]),
      { type: `${type}_START`, messageId, role: kind === 'text' ? 'assistant' : 'reasoning' },
      { type: `${type}_CONTENT`, messageId, delta },
    ];
  }

  protected endPart(): AgUiEvent[] {
    if (this.#open === undefined) return [];
    const { kind, id, text } = this.#open;
    this.#open = undefined;
    const role = kind === 'text' ? 'assistant' : 'reasoning';
    this.#items.push({ message: { id, role, content: text } });
    if (kind === 'text') return [{ type: 'TEXT_MESSAGE_END', messageId: id }];
    return [
      { type: 'REASONING_MESSAGE_END', messageId: id },
      { type: 'REASONING_END', messageId: id },
    ];
  }

  protected attach(attachment: JsonObject): AgUiEvent[] {
    return [{ type: 'CUSTOM', name: 'attachment', value: attachment }];
  }

  protected beginInput(callId: string, tool: string): AgUiEvent[] {
    const toolCallId = shownCallId(this.place, callId);
    this.calls.set(callId, { toolCallId, phase: 'input' });
    return [this.#callStart(toolCallId, tool, '')];
  }

  #callStart(toolCallId: string, name: string, args: string): AgUiEvent {
    this.#parent ??= this.#newId();
    const call: MessageCall = { id: toolCallId, type: 'function', function: { name, arguments: args } };
    this.#items.push({ parent: this.#parent, call });
    return { type: 'TOOL_CALL_START', toolCallId, toolCallName: name, parentMessageId: this.#parent };
  }

  protected writeInput({ toolCallId }: ShownCall, delta: string): AgUiEvent[] {
    if (delta === '') return [];
    const item = this.#items.findLast((each) => 'call' in each && each.call.id === toolCallId);
    if (item !== undefined && 'call' in item) item.call.function.arguments += delta;
    return [{ type: 'TOOL_CALL_ARGS', toolCallId, delta }];
  }

  protected beginCall(callId: string, { tool }: JsonObject, input: unknown): AgUiEvent[] {
    const known = this.calls.get(callId);
    const toolCallId = this.shownId(callId);
    this.calls.set(callId, { toolCallId, phase: 'running' });
    const end = { type: 'TOOL_CALL_END', toolCallId };
    if (known !== undefined) return known.phase === 'input' ? [end] : [];
    // The call started before this stream.
    if (this.step === undefined) return [];
    const args = typeof input === 'string' ? input : JSON.stringify(input ?? {});
    const ended = this.endPart();
    const start = this.#callStart(toolCallId, String(tool), args);
    return [...ended, start, { type: 'TOOL_CALL_ARGS', toolCallId, delta: args }, end];
  }

  protected progress(callId: string, { tool, update }: JsonObject): AgUiEvent[] {
    const toolCallId = this.shownId(callId);
    const content = { toolCallId, tool, update: update ?? null };
    const messageId = `${toolCallId}.progress`;
    return [{ type: 'ACTIVITY_SNAPSHOT', messageId, activityType: 'tool-progress', content }];
  }

  /** Agents within calls are AG-UI subagents. Their calls are shown, but not the results of these. */
  protected agentEvent(callId: string, { tool: agent, event }: JsonObject): AgUiEvent[] {
    if (!isRecord(event)) return [];
    const { type, callId: innerId, tool, status } = event;
    const parentToolCallId = this.shownId(callId);
    if (type === 'run-start') {
      const left = this.#endAgent(parentToolCallId, { status: 'aborted' });
      this.#agentRuns += 1;
      const subagentRunId = `${parentToolCallId}.agent-${this.#agentRuns}`;
      this.#agents.set(parentToolCallId, subagentRunId);
      return [...left, { type: 'SUBAGENT_STARTED', subagentRunId, name: String(agent), parentToolCallId }];
    }
    const subagentRunId = this.#agents.get(parentToolCallId);
    if (subagentRunId === undefined) return [];
    if (type === 'run-end') return this.#endAgent(parentToolCallId, event as JsonObject);
    if (type !== 'call-start' && type !== 'call-end') return [];
    const content = { tool, status: type === 'call-start' ? 'running' : status };
    const messageId = `${subagentRunId}.${innerId}`;
    return [{ type: 'ACTIVITY_SNAPSHOT', messageId, activityType: 'agent-call', content, subagentRunId }];
  }

  #endAgent(toolCallId: string, { status, error }: JsonObject): AgUiEvent[] {
    const subagentRunId = this.#agents.get(toolCallId);
    if (subagentRunId === undefined) return [];
    this.#agents.delete(toolCallId);
    if (status === 'completed') return [{ type: 'SUBAGENT_FINISHED', subagentRunId }];
    if (status === 'suspended')
      return [{ type: 'SUBAGENT_FINISHED', subagentRunId, outcome: { type: 'suspended' } }];
    const message = isRecord(error)
      ? this.describeError(error as JsonObject)
      : 'The agent ended before it was done.';
    return [{ type: 'SUBAGENT_ERROR', subagentRunId, message, code: String(status) }];
  }

  protected suspendCall(callId: string, event: JsonObject): AgUiEvent[] {
    const [first] = Array.isArray(event.pending) ? event.pending : [];
    return this.beginCall(callId, event, isRecord(first) ? first.arguments : undefined);
  }

  protected endCall(callId: string, event: JsonObject): AgUiEvent[] {
    const begun = this.beginCall(callId, event, undefined);
    const toolCallId = this.shownId(callId);
    this.calls.set(callId, { toolCallId, phase: 'ended' });
    const edited = event.edited === undefined ? {} : { editedArgs: event.arguments };
    const metadata = { status: event.status, ...edited };
    return [...begun, this.#result(toolCallId, userText(event.result), metadata)];
  }

  #result(toolCallId: string, content: string, metadata: object): AgUiEvent {
    const messageId = `${toolCallId}.result`;
    this.#items.push({ message: { id: messageId, role: 'tool', content, toolCallId, metadata } });
    return { type: 'TOOL_CALL_RESULT', messageId, toolCallId, role: 'tool', content, metadata };
  }

  protected closeCall({ toolCallId, phase }: ShownCall): AgUiEvent[] {
    if (phase !== 'input') return [this.#result(toolCallId, NOT_ENDED, { status: 'aborted' })];
    return [{ type: 'TOOL_CALL_END', toolCallId }, this.#result(toolCallId, NOT_MADE, { status: 'not_run' })];
  }

  protected endTurn(event: JsonObject): AgUiEvent[] {
    const isOver = event.type === 'turn-end';
    const ended = [
      ...this.endPart(),
      ...[...this.#agents.keys()].flatMap((id) =>
        this.#endAgent(id, { status: isOver ? 'aborted' : 'suspended' }),
      ),
      ...(isOver ? this.closeCalls(({ phase }) => phase !== 'ended') : []),
      ...this.endStep(),
    ];
    const { state } = this.#options;
    const toolwright = { status: event.status, pending: isOver ? [] : (event.pending ?? []) };
    return [
      ...ended,
      { type: 'STATE_SNAPSHOT', snapshot: { ...(isRecord(state) ? state : {}), toolwright } },
      ...(isOver ? [] : [this.#snapshot()]),
      { ...this.#outcome(event), ...agUiUsage(event.usage) },
    ];
  }

  /** Calls that wait for a person become interrupts; calls that the client executes stay pending. */
  #outcome({ status, error, content, output, pending }: JsonObject): AgUiEvent {
    switch (status) {
      case 'suspended': {
        const waits = (pending ?? []) as unknown as readonly PendingCall[];
        const interrupts = waits
          .filter(({ kind }) => kind !== 'client')
          .map((wait) => interruptOf(wait, this.shownId(wait.callId)));
        if (interrupts.length > 0)
          return { type: 'RUN_FINISHED', outcome: { type: 'interrupt', interrupts } };
        const pendingToolCallIds = waits.map(({ callId }) => this.shownId(callId));
        return { type: 'RUN_FINISHED', outcome: { type: 'success', pendingToolCallIds } };
      }
      case 'aborted':
        return { type: 'RUN_FINISHED', outcome: { type: 'cancelled' } };
      case 'failed': {
        const message = this.describeError((error ?? {}) as JsonObject);
        return { type: 'RUN_ERROR', message, code: 'failed' };
      }
      case 'limit':
        return { type: 'RUN_ERROR', message: 'The run came to its limit.', code: 'limit' };
      default:
        return { type: 'RUN_FINISHED', result: output ?? content ?? '', outcome: { type: 'success' } };
    }
  }

  #snapshot(): AgUiEvent {
    const own = this.messages;
    const ids = new Set(own.map(({ id }) => id));
    const before = this.#options.messages.filter(({ id }) => !ids.has(id));
    // The client has its own ids for the results of its own tools.
    const given = new Set(before.map(({ toolCallId }) => toolCallId).filter((id) => id !== undefined));
    const added = own.filter(({ toolCallId }) => toolCallId === undefined || !given.has(toolCallId));
    return { type: 'MESSAGES_SNAPSHOT', messages: [...before, ...added] };
  }

  #newId(): string {
    this.#parts += 1;
    return `${this.place.turn ?? this.#options.runId}.${this.#parts}`;
  }
}

function interruptOf(wait: PendingCall, toolCallId: string): object {
  const { id, kind, tool, message, schema, expiresAt, title, mayRemember } = wait;
  const of = withoutUndefined({ id, toolCallId, expiresAt });
  const described = approvalDescriptor(wait);
  switch (kind) {
    case 'question':
      return {
        ...of,
        reason: 'input_required',
        message: message ?? tool,
        responseSchema: typeof schema === 'object' ? schema : {},
      };
    case 'approval':
      return withoutUndefined({
        ...of,
        reason: 'tool_call',
        message: message ?? title ?? `May ‘${tool}’ be called?`,
        responseSchema: approvalSchema(mayRemember),
        metadata: described && { toolwright: described },
      });
    default:
      // Only an operator can decide about a call whose process crashed.
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

function agUiUsage(usage: unknown): { readonly usage?: readonly object[] } {
  const { cacheReadTokens, cacheWriteTokens, ...others } = Object(usage) as Readonly<Record<string, unknown>>;
  if (!others.totalTokens) return {};
  const { inputTokens, outputTokens, totalTokens, reasoningTokens } = others;
  const counts = {
    ...{ inputTokens, outputTokens, totalTokens, reasoningTokens },
    ...{ cachedInputTokens: cacheReadTokens, cacheWriteInputTokens: cacheWriteTokens },
  };
  const known = Object.entries(counts).filter(([, count]) => Number.isSafeInteger(count));
  return { usage: [Object.fromEntries(known)] };
}
