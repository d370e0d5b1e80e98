import type { JsonObject } from '../../core/contract/json-schema.js';
import {
  approvalDescriptor,
  NOT_ENDED,
  NOT_MADE,
  type ShownCall,
  TurnEncoder,
  userText,
} from './turn-encoder.js';

export type UiMessageChunk = { readonly type: string } & Readonly<Record<string, unknown>>;

interface UiCall extends ShownCall {
  readonly toolName: string;
  readonly input: unknown;
  /** Progress was sent as preliminary output. */
  readonly hasOutput?: boolean;
  /** An approval was requested for it. */
  readonly approval?: { readonly id: string; readonly isAnswered: boolean };
}

/** Encodes a turn in the AI SDK's UI message stream protocol. */
export class UiMessageEncoder extends TurnEncoder<UiMessageChunk, UiCall> {
  #messageId = '';
  /** The text or reasoning that is being streamed. */
  #open: { readonly kind: 'text' | 'reasoning'; readonly id: string } | undefined;
  /** Number of texts, reasonings and attachments so far. */
  #parts = 0;
  /** Nothing of the step has been shown. */
  #isStepEmpty = true;

  /** Empty before the first `turn-start`. */
  get messageId(): string {
    return this.#messageId;
  }

  protected override beginTurn(event: JsonObject): UiMessageChunk[] {
    super.beginTurn(event);
    this.#messageId = this.place.turn ?? String(event.messageId);
    this.calls.clear();
    this.#open = undefined;
    this.step = undefined;
    this.#parts = 0;
    return [{ type: 'start', messageId: this.#messageId }];
  }

  protected beginStep(): UiMessageChunk[] {
    this.#isStepEmpty = true;
    return [{ type: 'start-step' }];
  }

  protected reopenStep(): UiMessageChunk[] {
    return [];
  }

  protected dropStep(): UiMessageChunk[] {
    if (!this.step?.isOpen || this.#isStepEmpty) return [];
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
    if (type === 'page')
      return [{ type: 'source-url', sourceId, url, ...(title !== undefined && { title }) }];
    const mediaType = mimeType ?? 'application/octet-stream';
    const document = { type: 'source-document', sourceId, mediaType, title };
    return [{ ...document, ...(filename !== undefined && { filename }) }];
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
    const call = this.calls.get(callId) as UiCall;
    const asked = pending.find(({ kind }) => kind === 'approval');
    const approval = asked && { id: String(asked.id), isAnswered: false };
    this.#setCall(callId, {
      ...(approval === undefined ? answered(call) : { ...call, approval }),
      phase: 'waiting',
      hasOutput: false,
    });
    return [
      ...begun,
      ...(asked === undefined ? approvalChunks(call, 'success') : []),
      ...(call.hasOutput ? [inputChunk(call)] : []),
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
    ];
    if (status === 'aborted') return [...ended, { type: 'abort' }];
    const metadata = usage === undefined ? {} : { messageMetadata: { usage } };
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
    const described = approvalDescriptor(wait);
    const more = described === undefined ? {} : { approvalDescriptor: described };
    return [{ type: 'tool-approval-request', approvalId: String(id), toolCallId, ...more }];
  }
  // After approval, the client executes the call: its part returns to the state before the approval request.
  if (kind === 'client') return call.approval ? [inputChunk(call)] : [];
  const until = expiresAt === undefined ? {} : { expiresAt };
  const data = { id, callId: toolCallId, tool, message, schema, ...until };
  return [{ type: `data-${String(kind)}`, id: String(id), data }];
}

/** The approval response that the call's outcome implies; the events contain no other record of it. */
function approvalChunks({ approval }: UiCall, status: unknown): readonly UiMessageChunk[] {
  if (approval === undefined || approval.isAnswered || status === 'aborted' || status === 'not_run')
    return [];
  return [{ type: 'tool-approval-response', approvalId: approval.id, approved: status !== 'refused' }];
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
