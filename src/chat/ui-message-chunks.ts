import type { JsonObject } from '../contract/json-schema.js';
import {
  approvalDescriptor,
  type CallPlace,
  type DescribeError,
  placeOfTurn,
  shownCallId,
  userText,
} from './shown-calls.js';

/** A chunk of the AI SDK's UI message stream. */
export type UiMessageChunk = { readonly type: string } & Readonly<Record<string, unknown>>;

/** A call of the step that is told, or of the one that was suspended. */
interface ToldCall {
  /** The model's. */
  readonly id: string;
  /** The one by which clients know it. */
  readonly shown: string;
  readonly tool: string;
  readonly input: unknown;
  /** `input`: its arguments are being written; `waiting`: for somebody's answer. */
  readonly phase: 'input' | 'running' | 'waiting' | 'ended';
  /** It has told of progress, as output for now. */
  readonly hasOutput?: boolean;
  /** Somebody was asked to approve it. */
  readonly approval?: { readonly id: string; readonly isAnswered: boolean };
}

/** How far a turn has been told; plain data, the same for the same events. */
interface ToldTurn {
  readonly messageId: string;
  readonly place: CallPlace;
  /** The text or reasoning that is being written. */
  readonly open?: { readonly kind: 'text' | 'reasoning'; readonly id: string };
  /** Texts, reasonings and attachments so far. */
  readonly parts: number;
  readonly step?: { readonly iteration: unknown; readonly isOpen: boolean; readonly isEmpty: boolean };
  readonly calls: readonly ToldCall[];
}

/** What came of an event. */
interface ToldEvent {
  readonly told: ToldTurn;
  readonly chunks: readonly UiMessageChunk[];
}

/** A turn of which nothing has been told. */
export const UNTOLD: ToldTurn = { messageId: '', place: {}, parts: 0, calls: [] };

/**
 * The chunks that an event of a conversation makes, after those before it. Only whole turns, from their
 * `turn-start` on, make streams that readers take.
 */
export function uiMessageChunks(told: ToldTurn, event: JsonObject, describeError: DescribeError): ToldEvent {
  const tell = TELLERS[String(event.type)];
  return tell === undefined ? { told, chunks: [] } : tell(told, event, describeError);
}

type Teller = (told: ToldTurn, event: JsonObject, describeError: DescribeError) => ToldEvent;

const TELLERS: Readonly<Record<string, Teller | undefined>> = {
  __proto__: null as never,
  'turn-start': beginTurn,
  'user-message': (told, { text }) => endPart(writePart(told, 'text', String(text))),
  'run-start': (told) => (told.step?.isOpen && !hasCalls(told) ? dropStep(told) : { told, chunks: [] }),
  'step-start': beginStep,
  'request-retry': dropStep,
  'text-delta': (told, { text }) => writePart(told, 'text', String(text)),
  'reasoning-delta': (told, { text }) => writePart(told, 'reasoning', String(text)),
  attachment: tellAttachment,
  'reply-end': (told) => endPart({ told, chunks: [] }),
  'call-input-start': beginInput,
  'call-input-delta': writeInput,
  'call-start': (told, event) => beginCall(told, event, event.arguments),
  'call-progress': tellProgress,
  'call-event': tellAgent,
  'call-suspended': suspendCall,
  'call-end': endCall,
  'step-end': (told) => endStep({ told, chunks: [] }),
  'turn-suspended': suspendTurn,
  'turn-end': endTurn,
};

function beginTurn(_told: ToldTurn, { turn, messageId: given }: JsonObject): ToldEvent {
  const place = placeOfTurn((turn as JsonObject | undefined)?.number);
  const messageId = place.turn ?? String(given);
  return { told: { ...UNTOLD, messageId, place }, chunks: [{ type: 'start', messageId }] };
}

/** A request that is made again begins its step anew: what was told of it is taken back, also a reply to its end. */
function beginStep(told: ToldTurn, { iteration }: JsonObject): ToldEvent {
  const { step } = told;
  if (step !== undefined && step.iteration === iteration && (step.isOpen || !hasCalls(told)))
    return dropStep({ ...told, step: { ...step, isOpen: true } });
  const ended = endStep({ told, chunks: [] });
  const begun = { iteration, isOpen: true, isEmpty: true };
  return andThen(ended, (before) => ({
    told: { ...before, place: { ...before.place, iteration }, step: begun, calls: [] },
    chunks: [{ type: 'start-step' }],
  }));
}

function dropStep(told: ToldTurn): ToldEvent {
  const { step, open: _, ...rest } = told;
  if (!step?.isOpen || step.isEmpty) return { told, chunks: [] };
  return { told: { ...rest, step: { ...step, isEmpty: true }, calls: [] }, chunks: [{ type: 'reset-step' }] };
}

function endStep(before: ToldEvent): ToldEvent {
  const { step } = before.told;
  if (!step?.isOpen) return endPart(before);
  return andThen(
    closeCalls(endPart(before), ({ phase }) => phase === 'input'),
    (told) => ({
      told: { ...told, step: { ...step, isOpen: false } },
      chunks: [{ type: 'finish-step' }],
    }),
  );
}

function writePart(told: ToldTurn, kind: 'text' | 'reasoning', delta: string): ToldEvent {
  if (told.open?.kind === kind) return { told, chunks: [{ type: `${kind}-delta`, id: told.open.id, delta }] };
  return andThen(endPart({ told, chunks: [] }), (before) => {
    const id = `${kind}-${before.parts + 1}`;
    return {
      told: { ...filled(before), open: { kind, id }, parts: before.parts + 1 },
      chunks: [
        { type: `${kind}-start`, id },
        { type: `${kind}-delta`, id, delta },
      ],
    };
  });
}

function endPart(before: ToldEvent): ToldEvent {
  return andThen(before, ({ open, ...told }) => ({
    told,
    chunks: open === undefined ? [] : [{ type: `${open.kind}-end`, id: open.id }],
  }));
}

/** A text that is being written goes on: sources are named in the middle of sentences. */
function tellAttachment(told: ToldTurn, { attachment }: JsonObject): ToldEvent {
  const parts = told.parts + 1;
  const chunk = attachmentChunk((attachment ?? {}) as JsonObject, `source-${parts}`);
  return { told: { ...filled(told), parts }, chunks: [chunk] };
}

function attachmentChunk(attachment: JsonObject, sourceId: string): UiMessageChunk {
  const { type, url, title, mimeType, filename } = attachment;
  if (type === 'file') return { type: 'file', url, mediaType: mimeType };
  if (type === 'page') return { type: 'source-url', sourceId, url, ...(title !== undefined && { title }) };
  const mediaType = mimeType ?? 'application/octet-stream';
  return { type: 'source-document', sourceId, mediaType, title, ...(filename !== undefined && { filename }) };
}

function beginInput(told: ToldTurn, { callId, tool }: JsonObject): ToldEvent {
  const call = { ...callIds(told, callId), tool: String(tool), input: null, phase: 'input' } as const;
  if (callOf(told, call.id) !== undefined) return { told, chunks: [] };
  return andThen(endPart({ told, chunks: [] }), (before) => ({
    told: withCall(before, call),
    chunks: [{ type: 'tool-input-start', toolCallId: call.shown, toolName: call.tool }],
  }));
}

function writeInput(told: ToldTurn, { callId, text }: JsonObject): ToldEvent {
  const call = callOf(told, callId);
  if (call?.phase !== 'input') return { told, chunks: [] };
  return {
    told,
    chunks: [{ type: 'tool-input-delta', toolCallId: call.shown, inputTextDelta: String(text) }],
  };
}

/** A call that goes on after its answer has been told already. */
function beginCall(told: ToldTurn, { callId, tool }: JsonObject, input: unknown): ToldEvent {
  const known = callOf(told, callId);
  if (known?.phase === 'running' || known?.phase === 'waiting')
    return { told: withCall(told, { ...known, phase: 'running' }), chunks: [] };
  const call = {
    ...callIds(told, callId),
    tool: String(tool),
    input: input ?? null,
    phase: 'running',
  } as const;
  return andThen(endPart({ told, chunks: [] }), (before) => ({
    told: withCall(before, call),
    chunks: [inputOf(call)],
  }));
}

/** Progress is output for now, and data for whoever shows it elsewhere. */
function tellProgress(told: ToldTurn, { callId, tool, update }: JsonObject): ToldEvent {
  const call = callOf(told, callId);
  const { shown: id } = call ?? callIds(told, callId);
  const data = { type: 'data-progress', id, data: { callId: id, tool, update }, transient: true };
  if (call?.phase !== 'running') return { told, chunks: [data] };
  const output = { type: 'tool-output-available', toolCallId: id, output: update ?? null, preliminary: true };
  const approval = answeredOf(call);
  return {
    told: withCall(told, { ...call, hasOutput: true, ...(approval && { approval }) }),
    chunks: [data, ...approvalChunks(call, 'success'), output],
  };
}

/** What the agent within a call does, while it does it: what comes of it is the output of the call. */
function tellAgent(told: ToldTurn, { callId, tool, event }: JsonObject): ToldEvent {
  const { type, ...own } = (event ?? {}) as JsonObject;
  const shown = AGENT_EVENTS[String(type)];
  if (shown === undefined) return { told, chunks: [] };
  const { shown: id } = callOf(told, callId) ?? callIds(told, callId);
  const seen = { type, ...Object.fromEntries(shown.map((name) => [name, own[name]])) };
  const data = { callId: id, agent: tool, event: seen };
  return { told, chunks: [{ type: 'data-agent', id, data, transient: true }] };
}

/** What of the events of an agent is shown: what its calls give is for the agent. */
const AGENT_EVENTS: Readonly<Record<string, readonly string[] | undefined>> = {
  __proto__: null as never,
  'run-start': [],
  'call-start': ['callId', 'tool', 'arguments'],
  'call-end': ['callId', 'tool', 'status'],
  'run-end': ['status'],
};

function suspendCall(told: ToldTurn, event: JsonObject): ToldEvent {
  const pending = Array.isArray(event.pending) ? (event.pending as readonly JsonObject[]) : [];
  return andThen(known(told, event, pending[0]?.arguments), (before) => {
    const call = callOf(before, event.callId) as ToldCall;
    const asked = pending.find(({ kind }) => kind === 'approval');
    const approved = asked === undefined ? approvalChunks(call, 'success') : [];
    const approval = asked === undefined ? answeredOf(call) : { id: String(asked.id), isAnswered: false };
    return {
      told: withCall(before, { ...call, phase: 'waiting', hasOutput: false, ...(approval && { approval }) }),
      chunks: [
        ...approved,
        ...(call.hasOutput ? [inputOf(call)] : []),
        ...pending.flatMap((wait) => waitChunks(call, wait)),
      ],
    };
  });
}

function waitChunks(call: ToldCall, wait: JsonObject): readonly UiMessageChunk[] {
  const { id, kind, message, schema, expiresAt } = wait;
  const { shown: toolCallId, tool } = call;
  if (kind === 'approval') {
    const described = approvalDescriptor(wait);
    const more = described === undefined ? {} : { approvalDescriptor: described };
    return [{ type: 'tool-approval-request', approvalId: String(id), toolCallId, ...more }];
  }
  // Approved, it is the client's to execute: its part is as it was before it was asked about.
  if (kind === 'client') return call.approval ? [inputOf(call)] : [];
  const until = expiresAt === undefined ? {} : { expiresAt };
  const data = { id, callId: toolCallId, tool, message, schema, ...until };
  return [{ type: `data-${String(kind)}`, id: String(id), data }];
}

function endCall(told: ToldTurn, event: JsonObject): ToldEvent {
  return andThen(known(told, event, undefined), (before) => {
    const call = callOf(before, event.callId) as ToldCall;
    return {
      told: withCall(before, { ...call, phase: 'ended' }),
      chunks: [...editChunks(call, event), ...approvalChunks(call, event.status), outcomeOf(call, event)],
    };
  });
}

/** What ran in place of what the model had sent. */
function editChunks(call: ToldCall, { edited, arguments: input }: JsonObject): readonly UiMessageChunk[] {
  return edited === undefined ? [] : [inputOf({ ...call, input })];
}

/** What the answer must have been, where there was one: the events do not say it otherwise. */
function approvalChunks({ approval }: ToldCall, status: unknown): readonly UiMessageChunk[] {
  if (approval === undefined || approval.isAnswered || status === 'aborted' || status === 'not_run')
    return [];
  return [{ type: 'tool-approval-response', approvalId: approval.id, approved: status !== 'refused' }];
}

function answeredOf({ approval }: ToldCall): ToldCall['approval'] {
  return approval && { ...approval, isAnswered: true };
}

function outcomeOf(
  { shown: toolCallId, tool, input, approval }: ToldCall,
  event: JsonObject,
): UiMessageChunk {
  const text = userText(event.result);
  switch (event.status) {
    case 'success':
    case 'started':
      return { type: 'tool-output-available', toolCallId, output: text };
    case 'rejected':
      return { type: 'tool-input-error', toolCallId, toolName: tool, input, errorText: text };
    case 'refused':
      if (approval !== undefined) return { type: 'tool-output-denied', toolCallId };
  }
  return { type: 'tool-output-error', toolCallId, errorText: text };
}

function suspendTurn(told: ToldTurn): ToldEvent {
  return andThen(endStep({ told, chunks: [] }), (before) => ({
    told: before,
    chunks: [{ type: 'finish', finishReason: 'tool-calls' }],
  }));
}

function endTurn(told: ToldTurn, event: JsonObject, describeError: DescribeError): ToldEvent {
  const settled = closeCalls(endPart({ told, chunks: [] }), ({ phase }) => phase !== 'ended');
  return andThen(endStep(settled), (before) => ({ told: before, chunks: endChunks(event, describeError) }));
}

function endChunks(
  { status, error, output, usage }: JsonObject,
  describeError: DescribeError,
): readonly UiMessageChunk[] {
  const metadata = usage === undefined ? {} : { messageMetadata: { usage } };
  if (status === 'aborted') return [{ type: 'abort' }];
  if (status === 'failed')
    return [
      { type: 'error', errorText: describeError((error ?? {}) as JsonObject) },
      { type: 'finish', finishReason: 'error', ...metadata },
    ];
  const data = output === undefined ? [] : [{ type: 'data-output', data: output }];
  return [...data, { type: 'finish', finishReason: status === 'completed' ? 'stop' : 'other', ...metadata }];
}

/** Calls that nothing will come of any more. */
function closeCalls(before: ToldEvent, isLeft: (call: ToldCall) => boolean): ToldEvent {
  return andThen(before, (told) => ({
    told: {
      ...told,
      calls: told.calls.map((call) => (isLeft(call) ? { ...call, phase: 'ended' as const } : call)),
    },
    chunks: told.calls.filter(isLeft).map(leftChunk),
  }));
}

function leftChunk({ shown: toolCallId, tool: toolName, input, phase }: ToldCall): UiMessageChunk {
  if (phase === 'input')
    return { type: 'tool-input-error', toolCallId, toolName, input, errorText: 'This call was not made.' };
  return { type: 'tool-output-error', toolCallId, errorText: 'The turn ended before this call did.' };
}

/** The call has been told. */
function known(told: ToldTurn, event: JsonObject, input: unknown): ToldEvent {
  const call = callOf(told, event.callId);
  return call !== undefined && call.phase !== 'input' ? { told, chunks: [] } : beginCall(told, event, input);
}

function inputOf({ shown: toolCallId, tool: toolName, input }: ToldCall): UiMessageChunk {
  return { type: 'tool-input-available', toolCallId, toolName, input };
}

function callIds({ place }: ToldTurn, callId: unknown): Pick<ToldCall, 'id' | 'shown'> {
  return { id: String(callId), shown: shownCallId(place, String(callId)) };
}

function callOf({ calls }: ToldTurn, id: unknown): ToldCall | undefined {
  return calls.find((call) => call.id === id);
}

function withCall(told: ToldTurn, call: ToldCall): ToldTurn {
  return { ...filled(told), calls: [...told.calls.filter(({ id }) => id !== call.id), call] };
}

function hasCalls({ calls }: ToldTurn): boolean {
  return calls.some(({ phase }) => phase !== 'input');
}

function filled(told: ToldTurn): ToldTurn {
  return told.step === undefined ? told : { ...told, step: { ...told.step, isEmpty: false } };
}

function andThen(before: ToldEvent, next: (told: ToldTurn) => ToldEvent): ToldEvent {
  const after = next(before.told);
  return { told: after.told, chunks: [...before.chunks, ...after.chunks] };
}
