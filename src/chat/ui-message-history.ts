import { isRecord } from '../kernel/json.js';
import { openPrompt, type PastTurn, pastTurns } from './past-turns.js';
import type { AskedChat } from './turn-readings.js';
import { type UiMessageChunk, UiMessageEncoder } from './ui-message-encoder.js';

type Fields = Readonly<Record<string, unknown>>;

/** A message as the AI SDK keeps it. */
interface UiMessage {
  readonly id: string;
  readonly role: string;
  readonly metadata?: unknown;
  readonly parts: readonly Fields[];
}

/** What was said in a chat, for `useChat` to begin with: its open turn is left to the stream. */
export async function uiMessageHistory(asked: AskedChat): Promise<readonly UiMessage[]> {
  const turns = await pastTurns(asked);
  return [...turns.flatMap(messagesOfTurn), ...promptMessage(openPrompt(asked))];
}

function messagesOfTurn(turn: PastTurn): readonly UiMessage[] {
  const encoder = new UiMessageEncoder(() => '');
  const begun: UiMessage = { id: `turn-${turn.number}`, role: 'assistant', parts: [] };
  const message = turn.events.flatMap((event) => encoder.encode(event)).reduce(withChunk, begun);
  // Of a turn whose events are gone: results of tools are the model's, and some are not for the user.
  const parts = turn.events.length > 0 ? message.parts : turn.messages.flatMap(textPart);
  return [...promptMessage(turn), { ...message, parts }];
}

function textPart({ role, content }: PastTurn['messages'][number]): readonly Fields[] {
  return role === 'assistant' && content ? [{ type: 'text', text: content, state: 'done' }] : [];
}

function promptMessage({ prompt }: Pick<PastTurn, 'prompt'>): readonly UiMessage[] {
  if (prompt === undefined) return [];
  const { id, content } = prompt;
  const parts = Array.isArray(content) ? content.filter(isRecord) : [{ type: 'text', text: content }];
  return [{ id, role: 'user', parts: parts.flatMap(sentPart) }];
}

function sentPart(part: Fields): readonly Fields[] {
  const { type, text, image_url: image, file } = part;
  if (type === 'text') return [{ type, text }];
  if (type === 'image_url' && isRecord(image))
    return [{ type: 'file', mediaType: mediaTypeOf(image.url, 'image/*'), url: image.url }];
  if (type !== 'file' || !isRecord(file)) return [];
  const { file_data: url, filename } = file;
  return [{ type, mediaType: mediaTypeOf(url, 'application/octet-stream'), url, filename }];
}

function mediaTypeOf(url: unknown, other: string): string {
  const [, type = other] = /^data:([^;,]+)/.exec(String(url)) ?? [];
  return type;
}

/** A message and one more chunk of it, as the AI SDK puts them together. */
function withChunk(message: UiMessage, chunk: UiMessageChunk): UiMessage {
  const { parts } = message;
  switch (chunk.type) {
    case 'start-step':
      return { ...message, parts: [...parts, { type: 'step-start' }] };
    case 'reset-step':
      return {
        ...message,
        parts: parts.slice(0, parts.findLastIndex(({ type }) => type === 'step-start') + 1),
      };
    case 'text-start':
    case 'reasoning-start': {
      const [type] = chunk.type.split('-') as [string];
      const id = type === 'reasoning' ? { id: chunk.id } : {};
      return { ...message, parts: [...parts, { type, ...id, text: '', state: 'streaming' }] };
    }
    case 'text-delta':
    case 'reasoning-delta':
      return withOpen(message, ({ text, ...part }) => ({ ...part, text: `${text}${chunk.delta}` }));
    case 'text-end':
    case 'reasoning-end':
      return withOpen(message, (part) => ({ ...part, state: 'done' }));
    case 'source-url':
    case 'source-document':
    case 'file':
      return { ...message, parts: [...parts, chunk] };
    case 'finish':
      return chunk.messageMetadata === undefined ? message : { ...message, metadata: chunk.messageMetadata };
    default:
      if (chunk.type.startsWith('tool-')) return withCallChunk(message, chunk);
      return chunk.type.startsWith('data-') && !chunk.transient ? withData(message, chunk) : message;
  }
}

/** Data of one id are one part. */
function withData(message: UiMessage, chunk: UiMessageChunk): UiMessage {
  const { parts } = message;
  const index = parts.findIndex(({ type, id }) => id !== undefined && id === chunk.id && type === chunk.type);
  return { ...message, parts: index < 0 ? [...parts, chunk] : parts.with(index, chunk) };
}

/** Sources may stand behind the text or reasoning that is being written. */
function withOpen({ parts, ...message }: UiMessage, change: (part: Fields) => Fields): UiMessage {
  const index = parts.findLastIndex(({ type, state }) => OPEN.has(type) && state === 'streaming');
  const open = parts[index];
  return { ...message, parts: open === undefined ? parts : parts.with(index, change(open)) };
}

const OPEN = new Set<unknown>(['text', 'reasoning']);

function withCallChunk(message: UiMessage, chunk: UiMessageChunk): UiMessage {
  const { toolCallId, toolName, approvalId } = chunk;
  const index = message.parts.findIndex((part) =>
    toolCallId === undefined
      ? isRecord(part.approval) && part.approval.id === approvalId
      : part.toolCallId === toolCallId,
  );
  const begun = { type: `tool-${toolName}`, toolCallId };
  const part = { ...(message.parts[index] ?? begun), ...changeOf(chunk, message.parts[index]) };
  return { ...message, parts: index < 0 ? [...message.parts, part] : message.parts.with(index, part) };
}

/** What is output for now is so until the next chunk that says what the call is. */
const NO_OUTPUT = { output: undefined, preliminary: undefined };

function changeOf(chunk: UiMessageChunk, before: Fields | undefined): Fields {
  const { input, output, errorText, preliminary, approvalId: id, approved, approvalDescriptor } = chunk;
  switch (chunk.type) {
    case 'tool-input-start':
      return { state: 'input-streaming' };
    case 'tool-input-available':
      return { state: 'input-available', input, ...NO_OUTPUT };
    case 'tool-input-error':
      return { state: 'output-error', input, errorText, ...NO_OUTPUT };
    case 'tool-approval-request':
      return {
        state: 'approval-requested',
        approval: { id, ...(approvalDescriptor === undefined ? {} : { descriptor: approvalDescriptor }) },
      };
    case 'tool-approval-response':
      return { state: 'approval-responded', approval: { ...(before?.approval as Fields), id, approved } };
    case 'tool-output-available':
      return { state: 'output-available', output, preliminary };
    case 'tool-output-error':
      return { state: 'output-error', errorText, ...NO_OUTPUT };
    case 'tool-output-denied':
      return { state: 'output-denied' };
    default:
      return {};
  }
}
