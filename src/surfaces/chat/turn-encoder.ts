import type { PendingCall } from '../../core/contract/call.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import {
  canonicalJson,
  type Fields,
  filterFields,
  isRecord,
  withoutUndefined,
} from '../../core/kernel/json.js';
import type { ConversationView } from '../../run/conversation/stored-turns.js';

/** Turn and step of a call; no turn for a run outside of a conversation. */
interface CallPlace {
  readonly turn?: string;
  readonly iteration?: unknown;
}

/** The place of output before the turn's first step. */
function placeOfTurn(number: unknown): CallPlace {
  return typeof number === 'number' ? { turn: `turn-${number}` } : {};
}

/**
 * The id of a call for clients. Models reuse ids in other steps and turns, but clients treat calls with the same id as
 * one. The place is a prefix, so that ids of a model cannot imitate others.
 */
function shownCallId({ turn, iteration }: CallPlace, callId: string): string {
  return turn === undefined ? callId : `${turn}.${iteration}.${callId}`;
}

/** Pending calls, with their turn and step. */
export type Asking = Pick<ConversationView, 'pending' | 'turn' | 'iteration'>;

/** The client's id of a pending call. */
export function shownPendingId(
  { turn, iteration }: Omit<Asking, 'pending'>,
  { callId, path }: PendingCall,
): string {
  // Clients see only the call that contains the agent, not the agent's own calls.
  return shownCallId({ ...placeOfTurn(turn?.number), iteration }, path?.[0]?.callId ?? callId);
}

/** What the approver of a call sees in addition to the call. */
function approvalDescriptor(wait: PendingCall | JsonObject): JsonObject | undefined {
  const { path, tool, arguments: args, message, title, description, risk, ...others } = wait as PendingCall;
  const { decisions, mayRemember, approver, expiresAt } = others;
  // The call that is shown is the one that contains the agent.
  const inner = path && { tool, arguments: args };
  const fields = { ...inner, message, title, description, risk, decisions, mayRemember, approver, expiresAt };
  const given = withoutUndefined(fields);
  return Object.keys(given).length === 0 ? undefined : (given as unknown as JsonObject);
}

/** The checked arguments of a call that waits, as its tool will receive them; `shown` if an agent within it waits. */
function checkedInput(wait: JsonObject | undefined, shown: unknown): unknown {
  return wait === undefined || wait.path !== undefined ? shown : (wait.arguments ?? shown);
}

/** Describes the error of a failed turn for its reader. */
export type DescribeTurnError = (error: JsonObject) => string;

/** The result of calls that a step or turn left without a result. */
const NOT_MADE = 'This call was not executed.';
const NOT_ENDED = 'The turn ended before this call finished.';

function userText(result: unknown): string {
  const { silent, forUser, forLLM } = isRecord(result) ? result : {};
  return silent ? '' : String(forUser || (forLLM ?? ''));
}

interface ShownCall {
  /** The call's id for clients. */
  readonly toolCallId: string;
  /** `input`: its arguments are being streamed; `waiting`: for an answer. */
  readonly phase: 'input' | 'running' | 'waiting' | 'ended';
}

/**
 * Encodes the events of a turn for a front end, from its `turn-start` on. The same events give the same chunks in every
 * process.
 */
abstract class TurnEncoder<Chunk, Call extends ShownCall> {
  protected readonly describeError: DescribeTurnError;
  /** By the ids that the model gave them. */
  protected readonly calls = new Map<string, Call>();
  protected place: CallPlace = {};
  protected isStepOpen = false;

  constructor(describeError: DescribeTurnError) {
    this.describeError = describeError;
  }

  encode(event: JsonObject): Chunk[] {
    switch (event.type) {
      case 'turn-start':
        return this.beginTurn(event);
      case 'user-message':
        return [...this.write('text', String(event.text)), ...this.endPart()];
      case 'run-start':
        return this.isStepOpen && !this.#hasCalls() ? this.dropStep() : [];
      case 'step-start': {
        // A repeated request starts its step again: everything shown of the step is removed, even a complete reply.
        const { iteration } = event;
        if (this.place.iteration === iteration && (this.isStepOpen || !this.#hasCalls())) {
          const begun = this.isStepOpen ? [] : this.reopenStep();
          this.isStepOpen = true;
          return [...begun, ...this.dropStep()];
        }
        const ended = this.endStep();
        this.calls.clear();
        this.place = { ...this.place, iteration };
        this.isStepOpen = true;
        return [...ended, ...this.beginStep()];
      }
      case 'request-retry':
        return this.dropStep();
      case 'text-delta':
        return this.write('text', String(event.text));
      case 'reasoning-delta':
        return this.write('reasoning', String(event.text));
      case 'attachment':
        return this.attach((event.attachment ?? {}) as JsonObject);
      case 'reply-end':
        return this.endPart();
      case 'step-end':
        return this.endStep();
      case 'answers-taken':
        return this.takeAnswers(event);
      case 'turn-suspended':
      case 'turn-end':
        return this.endTurn(event);
      default:
        return this.#encodeCall(event, String(event.callId));
    }
  }

  #encodeCall(event: JsonObject, callId: string): Chunk[] {
    const call = this.calls.get(callId);
    switch (event.type) {
      case 'call-input-start':
        return call === undefined ? [...this.endPart(), ...this.beginInput(callId, String(event.tool))] : [];
      case 'call-input-delta':
        return call?.phase === 'input' ? this.writeInput(call, String(event.text)) : [];
      case 'call-start':
        return this.beginCall(callId, event, event.arguments);
      case 'call-progress':
        return this.progress(callId, event);
      case 'call-event':
        return this.agentEvent(callId, event);
      case 'call-suspended':
        return this.suspendCall(callId, event);
      case 'call-end':
        return this.endCall(callId, event);
      default:
        return [];
    }
  }

  protected beginTurn({ turn }: JsonObject): Chunk[] {
    this.place = placeOfTurn(isRecord(turn) ? turn.number : undefined);
    return [];
  }

  protected endStep(): Chunk[] {
    const ended = this.endPart();
    if (!this.isStepOpen) return ended;
    this.isStepOpen = false;
    return [...ended, ...this.closeCalls(({ phase }) => phase === 'input'), this.stepEnd()];
  }

  /** Ends calls that will get no result. */
  protected closeCalls(isLeft: (call: Call) => boolean): Chunk[] {
    const left = [...this.calls].filter(([, call]) => isLeft(call));
    for (const [id, call] of left) this.calls.set(id, { ...call, phase: 'ended' });
    return left.flatMap(([, call]) => this.closeCall(call));
  }

  protected shownId(callId: string): string {
    return this.calls.get(callId)?.toolCallId ?? shownCallId(this.place, callId);
  }

  #hasCalls(): boolean {
    return [...this.calls.values()].some(({ phase }) => phase !== 'input');
  }

  protected abstract beginStep(): Chunk[];
  protected abstract reopenStep(): Chunk[];
  /** Removes what was shown of the step. */
  protected abstract dropStep(): Chunk[];
  protected abstract stepEnd(): Chunk;
  protected abstract write(kind: 'text' | 'reasoning', delta: string): Chunk[];
  /** Ends the text or reasoning that is being streamed. */
  protected abstract endPart(): Chunk[];
  protected abstract attach(attachment: JsonObject): Chunk[];
  protected abstract beginInput(callId: string, tool: string): Chunk[];
  protected abstract writeInput(call: Call, delta: string): Chunk[];
  /** Also called for a call that continues after its answer and was shown before. */
  protected abstract beginCall(callId: string, event: JsonObject, input: unknown): Chunk[];
  protected abstract progress(callId: string, event: JsonObject): Chunk[];
  /** An event of the agent within a call. The agent's result is the output of the call. */
  protected abstract agentEvent(callId: string, event: JsonObject): Chunk[];
  protected abstract suspendCall(callId: string, event: JsonObject): Chunk[];
  protected abstract endCall(callId: string, event: JsonObject): Chunk[];
  /** The calls that waited for these answers continue. */
  protected takeAnswers(_event: JsonObject): Chunk[] {
    return [];
  }
  protected abstract closeCall(call: Call): Chunk[];
  protected abstract endTurn(event: JsonObject): Chunk[];
}

export type UiMessageChunk = { readonly type: string } & Fields;

interface UiCall extends ShownCall {
  readonly toolName: string;
  readonly input: unknown;
  /** Progress was sent as preliminary output. */
  readonly hasOutput?: boolean;
  /** It last waited for something other than an approval; the client's part may have the answer as its output. */
  readonly hasAsked?: boolean;
  /** An approval was requested for it. */
  readonly approval?: { readonly id: string; readonly isAnswered: boolean; readonly reason?: unknown };
}

/** Encodes a turn in the AI SDK's UI message stream protocol. */
export class UiMessageEncoder extends TurnEncoder<UiMessageChunk, UiCall> {
  /** Empty before the first `turn-start`. */
  messageId = '';
  /** The text or reasoning that is being streamed. */
  #open: { readonly kind: 'text' | 'reasoning'; readonly id: string } | undefined;
  /** Number of texts, reasonings and attachments so far. */
  #parts = 0;
  /** Nothing of the step has been shown. */
  #isStepEmpty = true;

  protected override beginTurn(event: JsonObject): UiMessageChunk[] {
    super.beginTurn(event);
    this.messageId = this.place.turn ?? String(event.messageId);
    this.calls.clear();
    this.#open = undefined;
    this.isStepOpen = false;
    this.#parts = 0;
    return [{ type: 'start', messageId: this.messageId }];
  }

  protected beginStep(): UiMessageChunk[] {
    this.#isStepEmpty = true;
    return [{ type: 'start-step' }];
  }

  protected reopenStep(): UiMessageChunk[] {
    return [];
  }

  protected dropStep(): UiMessageChunk[] {
    if (!this.isStepOpen || this.#isStepEmpty) return [];
    this.#open = undefined;
    this.calls.clear();
    this.#isStepEmpty = true;
    return [{ type: 'reset-step' }];
  }

  protected stepEnd(): UiMessageChunk {
    return { type: 'finish-step' };
  }

  protected write(kind: 'text' | 'reasoning', delta: string): UiMessageChunk[] {
    if (this.#open?.kind === kind) return [{ type: `${kind}-delta`, id: this.#open.id, delta }];
    const ended = this.endPart();
    const id = `${kind}-${this.#newPart()}`;
    this.#open = { kind, id };
    return [...ended, { type: `${kind}-start`, id }, { type: `${kind}-delta`, id, delta }];
  }

  protected endPart(): UiMessageChunk[] {
    const open = this.#open;
    this.#open = undefined;
    return open === undefined ? [] : [{ type: `${open.kind}-end`, id: open.id }];
  }

  #newPart(): number {
    this.#isStepEmpty = false;
    this.#parts += 1;
    return this.#parts;
  }

  /** Does not end an open text, because sources occur in the middle of sentences. */
  protected attach({ type, url, title, mimeType, filename }: JsonObject): UiMessageChunk[] {
    const sourceId = `source-${this.#newPart()}`;
    if (type === 'file') return [{ type: 'file', url, mediaType: mimeType }];
    if (type === 'page') return [withoutUndefined({ type: 'source-url', sourceId, url, title })];
    const mediaType = mimeType ?? 'application/octet-stream';
    return [withoutUndefined({ type: 'source-document', sourceId, mediaType, title, filename })];
  }

  protected beginInput(callId: string, toolName: string): UiMessageChunk[] {
    const toolCallId = this.shownId(callId);
    this.#setCall(callId, { toolCallId, toolName, input: null, phase: 'input' });
    return [{ type: 'tool-input-start', toolCallId, toolName }];
  }

  protected writeInput({ toolCallId }: UiCall, inputTextDelta: string): UiMessageChunk[] {
    return [{ type: 'tool-input-delta', toolCallId, inputTextDelta }];
  }

  protected beginCall(callId: string, { tool }: JsonObject, input: unknown): UiMessageChunk[] {
    const known = this.calls.get(callId);
    if (known?.phase === 'running' || known?.phase === 'waiting') {
      this.#setCall(callId, { ...known, phase: 'running' });
      return [];
    }
    const shown = { toolCallId: this.shownId(callId), toolName: String(tool), input: input ?? null };
    return [...this.endPart(), inputChunk(this.#setCall(callId, { ...shown, phase: 'running' }))];
  }

  /** Progress is sent as preliminary output, and as data for other parts of a user interface. */
  protected progress(callId: string, { tool, update }: JsonObject): UiMessageChunk[] {
    const call = this.calls.get(callId);
    const toolCallId = this.shownId(callId);
    const data = { callId: toolCallId, tool, update };
    const progress = { type: 'data-progress', id: toolCallId, data, transient: true };
    if (call?.phase !== 'running') return [progress];
    this.#setCall(callId, { ...answered(call), hasOutput: true });
    const output = { type: 'tool-output-available', toolCallId, output: update ?? null, preliminary: true };
    return [progress, ...approvalChunks(call, 'success'), output];
  }

  protected agentEvent(callId: string, { tool, event }: JsonObject): UiMessageChunk[] {
    const { type, ...own } = (event ?? {}) as JsonObject;
    const fields = AGENT_EVENTS.get(type);
    if (fields === undefined) return [];
    const id = this.shownId(callId);
    const shown = { type, ...Object.fromEntries(fields.map((name) => [name, own[name]])) };
    return [{ type: 'data-agent', id, data: { callId: id, agent: tool, event: shown }, transient: true }];
  }

  protected suspendCall(callId: string, event: JsonObject): UiMessageChunk[] {
    const pending = Array.isArray(event.pending) ? (event.pending as readonly JsonObject[]) : [];
    const begun = this.#beginUnlessKnown(callId, event, pending[0]?.arguments);
    const before = this.calls.get(callId) as UiCall;
    const call = { ...before, input: checkedInput(pending[0], before.input) };
    const asked = pending.find(({ kind }) => kind === 'approval');
    // Clients would send their last answer again if the part were not set back.
    const isSetBack =
      asked === undefined
        ? before.hasAsked || before.approval !== undefined
        : canonicalJson(call.input) !== canonicalJson(before.input);
    const approval = asked && { id: String(asked.id), isAnswered: false };
    this.#setCall(callId, {
      ...(approval === undefined ? answered(call) : { ...call, approval }),
      phase: 'waiting',
      hasOutput: false,
      hasAsked: asked === undefined,
    });
    return [
      ...begun,
      ...(asked === undefined ? approvalChunks(call, 'success') : []),
      ...(call.hasOutput || isSetBack ? [inputChunk(call)] : []),
      ...pending.flatMap((wait) => waitChunks(call, wait)),
    ];
  }

  protected endCall(callId: string, event: JsonObject): UiMessageChunk[] {
    const begun = this.#beginUnlessKnown(callId, event, undefined);
    const call = this.calls.get(callId) as UiCall;
    this.#setCall(callId, { ...call, phase: 'ended' });
    // The arguments after an edit replace those of the model.
    const edited = event.edited === undefined ? [] : [inputChunk({ ...call, input: event.arguments })];
    return [...begun, ...edited, ...approvalChunks(call, event.status), outcomeChunk(call, event)];
  }

  /** A reader that has just come must not be asked again; the end of the call has what was answered. */
  protected override takeAnswers({ ids, reasons }: JsonObject): UiMessageChunk[] {
    const taken: readonly unknown[] = Array.isArray(ids) ? ids : [];
    return [...this.calls].flatMap(([callId, call]) => {
      const { approval } = call;
      if (approval === undefined || !taken.includes(approval.id)) return [];
      const reason = isRecord(reasons) ? reasons[approval.id] : undefined;
      this.#setCall(callId, { ...call, approval: { ...approval, reason } });
      return [inputChunk(call)];
    });
  }

  #beginUnlessKnown(callId: string, event: JsonObject, input: unknown): UiMessageChunk[] {
    const { phase = 'input' } = this.calls.get(callId) ?? {};
    return phase === 'input' ? this.beginCall(callId, event, input) : [];
  }

  protected closeCall({ toolCallId, toolName, input, phase }: UiCall): UiMessageChunk[] {
    return phase === 'input'
      ? [{ type: 'tool-input-error', toolCallId, toolName, input, errorText: NOT_MADE }]
      : [{ type: 'tool-output-error', toolCallId, errorText: NOT_ENDED }];
  }

  protected endTurn({ type, status, error, output, usage }: JsonObject): UiMessageChunk[] {
    if (type === 'turn-suspended') return [...this.endStep(), { type: 'finish', finishReason: 'tool-calls' }];
    const ended = [
      ...this.endPart(),
      ...this.closeCalls(({ phase }) => phase !== 'ended'),
      ...this.endStep(),
      // Clients with `sendAutomaticallyWhen` would send a message again if its last step had only finished calls.
      ...(this.calls.size > 0 ? [...this.beginStep(), this.stepEnd()] : []),
    ];
    const metadata = usage === undefined ? {} : { messageMetadata: { usage } };
    if (status === 'aborted') {
      // With metadata, the client takes over the last step, which `abort` alone does not do.
      const counted = usage === undefined ? [] : [{ type: 'message-metadata', ...metadata }];
      return [...ended, ...counted, { type: 'abort' }];
    }
    if (status === 'failed') {
      const errorText = this.describeError((error ?? {}) as JsonObject);
      return [...ended, { type: 'error', errorText }, { type: 'finish', finishReason: 'error', ...metadata }];
    }
    const data = output === undefined ? [] : [{ type: 'data-output', data: output }];
    const finishReason = status === 'completed' ? 'stop' : 'other';
    return [...ended, ...data, { type: 'finish', finishReason, ...metadata }];
  }

  #setCall(callId: string, call: UiCall): UiCall {
    this.calls.set(callId, call);
    this.#isStepEmpty = false;
    return call;
  }
}

/** The fields of an agent's events that are shown; results of its calls are not. */
const AGENT_EVENTS: ReadonlyMap<unknown, readonly string[]> = new Map([
  ['run-start', []],
  ['call-start', ['callId', 'tool', 'arguments']],
  ['call-end', ['callId', 'tool', 'status']],
  ['run-end', ['status']],
]);

function inputChunk({ toolCallId, toolName, input }: UiCall): UiMessageChunk {
  return { type: 'tool-input-available', toolCallId, toolName, input };
}

function waitChunks(call: UiCall, wait: JsonObject): readonly UiMessageChunk[] {
  const { id, kind, message, schema, expiresAt } = wait;
  const { toolCallId, toolName: tool } = call;
  if (kind === 'approval') {
    const request = { type: 'tool-approval-request', approvalId: String(id), toolCallId };
    return [withoutUndefined({ ...request, approvalDescriptor: approvalDescriptor(wait) })];
  }
  if (kind === 'client') return [];
  const data = withoutUndefined({ id, callId: toolCallId, tool, message, schema, expiresAt });
  return [{ type: `data-${String(kind)}`, id: String(id), data }];
}

/** The approval response that the call's outcome implies; the events contain no other record of it. */
function approvalChunks({ approval }: UiCall, status: unknown): readonly UiMessageChunk[] {
  if (approval === undefined || approval.isAnswered || status === 'aborted' || status === 'not_run')
    return [];
  const { id: approvalId, reason } = approval;
  const approved = status !== 'refused';
  return [withoutUndefined({ type: 'tool-approval-response', approvalId, approved, reason })];
}

function answered(call: UiCall): UiCall {
  return call.approval === undefined ? call : { ...call, approval: { ...call.approval, isAnswered: true } };
}

function outcomeChunk({ toolCallId, toolName, input, approval }: UiCall, event: JsonObject): UiMessageChunk {
  const text = userText(event.result);
  switch (event.status) {
    case 'success':
    case 'started':
      return { type: 'tool-output-available', toolCallId, output: text };
    case 'rejected':
      return { type: 'tool-input-error', toolCallId, toolName, input, errorText: text };
    case 'refused':
      if (approval !== undefined) return { type: 'tool-output-denied', toolCallId };
  }
  return { type: 'tool-output-error', toolCallId, errorText: text };
}

export type AgUiEvent = { readonly type: string } & Fields;

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

/** A message of the turn, which grows while it is streamed. */
interface TurnMessage extends AgUiMessage {
  content?: string;
  toolCalls?: MessageCall[];
}

interface AgUiCall extends ShownCall {
  /** Absent if the call started before this stream. */
  readonly shown?: MessageCall;
}

export interface AgUiEncoderOptions {
  /** Prefix of message ids in a run that is not a turn of a conversation. */
  readonly runId?: string;
  readonly describeError: DescribeTurnError;
  /** The client's own messages, for snapshots. */
  readonly messages: readonly AgUiMessage[];
  /** The client's own state, for snapshots. */
  readonly state?: unknown;
}

/** Encodes a turn as AG-UI 1.0 events. RUN_STARTED is not included, because it depends on the reader. */
export class AgUiEncoder extends TurnEncoder<AgUiEvent, AgUiCall> {
  readonly #options: AgUiEncoderOptions;
  /** The messages that a client builds from the turn's events so far. */
  readonly messages: TurnMessage[] = [];
  /** Run ids of agents by the calls that contain them; AG-UI needs the same id at the end of a subagent. */
  readonly #agents = new Map<string, string>();
  #agentRuns = 0;
  #parts = 0;
  /** The text or reasoning that is being streamed. */
  #open: TurnMessage | undefined;
  /** Number of messages before the step. */
  #firstMessage = 0;
  /** The message to which calls of the step belong. */
  #parent: TurnMessage | undefined;

  constructor(options: AgUiEncoderOptions) {
    super(options.describeError);
    this.#options = options;
  }

  protected beginStep(): AgUiEvent[] {
    this.#parent = undefined;
    this.#firstMessage = this.messages.length;
    return this.reopenStep();
  }

  protected reopenStep(): AgUiEvent[] {
    return [{ type: 'STEP_STARTED', stepName: `step-${this.place.iteration}` }];
  }

  /** AG-UI can only remove output by sending a snapshot of all messages. */
  protected dropStep(): AgUiEvent[] {
    if (!this.isStepOpen) return [];
    const cutOff = [...this.calls.values()].filter(({ phase }) => phase === 'input');
    const closed = [
      ...this.endPart(),
      ...cutOff.map(({ toolCallId }) => ({ type: 'TOOL_CALL_END', toolCallId })),
    ];
    const dropped = this.messages.splice(this.#firstMessage);
    this.calls.clear();
    this.#parent = undefined;
    return dropped.length === 0 ? closed : [...closed, this.#snapshot()];
  }

  protected stepEnd(): AgUiEvent {
    return { type: 'STEP_FINISHED', stepName: `step-${this.place.iteration}` };
  }

  protected write(kind: 'text' | 'reasoning', delta: string): AgUiEvent[] {
    if (delta === '') return [];
    const [type, role] = kind === 'text' ? ['TEXT_MESSAGE', 'assistant'] : ['REASONING_MESSAGE', 'reasoning'];
    if (this.#open?.role === role) {
      this.#open.content += delta;
      return [{ type: `${type}_CONTENT`, messageId: this.#open.id, delta }];
    }
    const ended = this.endPart();
    this.#open = this.#add({ id: this.#newId(), role, content: delta });
    this.#parent = kind === 'text' ? this.#open : undefined;
    const { id: messageId } = this.#open;
    return [
      ...ended,
      ...(kind === 'text' ? [] : [{ type: 'REASONING_START', messageId }]),
      { type: `${type}_START`, messageId, role },
      { type: `${type}_CONTENT`, messageId, delta },
    ];
  }

  protected endPart(): AgUiEvent[] {
    if (this.#open === undefined) return [];
    const { id: messageId, role } = this.#open;
    this.#open = undefined;
    if (role === 'assistant') return [{ type: 'TEXT_MESSAGE_END', messageId }];
    return [
      { type: 'REASONING_MESSAGE_END', messageId },
      { type: 'REASONING_END', messageId },
    ];
  }

  #add(message: TurnMessage): TurnMessage {
    this.messages.push(message);
    return message;
  }

  protected attach(attachment: JsonObject): AgUiEvent[] {
    return [{ type: 'CUSTOM', name: 'attachment', value: attachment }];
  }

  protected beginInput(callId: string, tool: string): AgUiEvent[] {
    const toolCallId = shownCallId(this.place, callId);
    const { shown, start } = this.#callStart(toolCallId, tool, '');
    this.calls.set(callId, { toolCallId, phase: 'input', shown });
    return [start];
  }

  #callStart(toolCallId: string, toolCallName: string, args: string) {
    this.#parent ??= this.#add({ id: this.#newId(), role: 'assistant' });
    const { id: parentMessageId, toolCalls = [] } = this.#parent;
    const named = { name: toolCallName, arguments: args };
    const shown: MessageCall = { id: toolCallId, type: 'function', function: named };
    this.#parent.toolCalls = [...toolCalls, shown];
    return { shown, start: { type: 'TOOL_CALL_START', toolCallId, toolCallName, parentMessageId } };
  }

  protected writeInput({ toolCallId, shown }: AgUiCall, delta: string): AgUiEvent[] {
    if (delta === '') return [];
    if (shown !== undefined) shown.function.arguments += delta;
    return [{ type: 'TOOL_CALL_ARGS', toolCallId, delta }];
  }

  protected beginCall(callId: string, { tool }: JsonObject, input: unknown): AgUiEvent[] {
    const known = this.calls.get(callId);
    const toolCallId = this.shownId(callId);
    this.calls.set(callId, { ...known, toolCallId, phase: 'running' });
    const end = { type: 'TOOL_CALL_END', toolCallId };
    if (known !== undefined) return known.phase === 'input' ? [end] : [];
    // The call started before this stream.
    if (this.place.iteration === undefined) return [];
    const args = typeof input === 'string' ? input : JSON.stringify(input ?? {});
    const ended = this.endPart();
    const { shown, start } = this.#callStart(toolCallId, String(tool), args);
    this.calls.set(callId, { toolCallId, phase: 'running', shown });
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
      : 'The agent stopped before it finished.';
    return [{ type: 'SUBAGENT_ERROR', subagentRunId, message, code: String(status) }];
  }

  protected suspendCall(callId: string, event: JsonObject): AgUiEvent[] {
    const [first] = Array.isArray(event.pending) ? (event.pending as readonly JsonObject[]) : [];
    const begun = this.beginCall(callId, event, first?.arguments);
    const { shown } = this.calls.get(callId) ?? {};
    const input = checkedInput(first, undefined);
    // The snapshot before the interrupt shows them.
    if (shown !== undefined && input !== undefined) shown.function.arguments = JSON.stringify(input);
    return begun;
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
    const message: TurnMessage = { id: messageId, role: 'tool', content, toolCallId, metadata };
    // A call that is executed again, after a crash, has another result.
    const index = this.messages.findLastIndex(({ id }) => id === messageId);
    if (index < 0) this.#add(message);
    else this.messages[index] = message;
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
        return { type: 'RUN_ERROR', message: 'The run reached its limit.', code: 'limit' };
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
  const { id, kind, tool, arguments: args, message, schema, expiresAt, title, mayRemember } = wait;
  const of = withoutUndefined({ id, toolCallId, expiresAt });
  switch (kind) {
    case 'question':
      return {
        ...of,
        reason: 'input_required',
        message: message ?? tool,
        responseSchema: typeof schema === 'object' ? schema : {},
      };
    case 'approval': {
      const remember = {
        type: 'object',
        description: 'Remember this approval for later calls, too.',
        properties: {
          scope: { enum: mayRemember?.scopes },
          expires: { type: 'string', format: 'date-time' },
        },
        required: ['scope'],
      };
      return {
        ...of,
        reason: 'tool_call',
        message: message ?? title ?? `May ‘${tool}’ be called?`,
        responseSchema: mayRemember
          ? { ...APPROVAL, properties: { ...APPROVAL.properties, remember } }
          : APPROVAL,
        metadata: { toolwright: { tool, arguments: args, ...approvalDescriptor(wait) } },
      };
    }
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
    editedArgs: {
      type: 'object',
      description: 'All arguments of the call; they replace its current arguments.',
    },
  },
  required: ['approved'],
};

function agUiUsage(usage: unknown): { readonly usage?: readonly object[] } {
  const { inputTokens, outputTokens, totalTokens, reasoningTokens, ...cache } = Object(usage) as Fields;
  if (!totalTokens) return {};
  const counts = {
    inputTokens,
    outputTokens,
    totalTokens,
    reasoningTokens,
    cachedInputTokens: cache.cacheReadTokens,
    cacheWriteInputTokens: cache.cacheWriteTokens,
  };
  return { usage: [filterFields(counts, (_name, count) => Number.isSafeInteger(count))] };
}
