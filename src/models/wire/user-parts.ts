import type { UserMessage } from '../../core/contract/llm-provider.js';
import type { Content } from '../../core/contract/tool-result.js';
import { isRecord } from '../../core/kernel/json.js';
import { jsonRecord, type WireRecord } from './wire-json.js';

/**
 * The content of a user message, with each part in the form of an API.
 *
 * @throws TypeError for a part that the API does not support, before a request is sent.
 */
export function userParts(
  content: UserMessage['content'],
  toWire: (part: WireRecord) => WireRecord | undefined,
): string | readonly WireRecord[] {
  if (typeof content === 'string') return content;
  return content.map((part) => {
    const wire = toWire(jsonRecord(part));
    if (wire !== undefined) return wire;
    throw unsupportedPart(part, 'this API');
  });
}

/** The error for a part of a user message that cannot be sent. */
export function unsupportedPart(part: unknown, receiver: string): TypeError {
  const found = isRecord(part) ? `a part of the type '${part.type}'` : `a part that is ${typeof part}`;
  return new TypeError(
    `A user message has ${found}, which cannot be sent to ${receiver}; write { type: 'text', text }, { type: 'image', data, mimeType } or { type: 'file', data, mimeType, filename }, with data in base64`,
  );
}

/** The images and files of a tool's result, in the form of an API; the text is already in the answer. */
export function attachedParts(
  parts: Content | undefined,
  toWire: (part: WireRecord) => WireRecord | undefined,
): readonly WireRecord[] {
  return (parts ?? []).flatMap<WireRecord>((part) =>
    part.type === 'text' ? [] : (toWire({ ...part }) ?? []),
  );
}

/** The content of our image or file as a data URL. */
export function dataUrl({ type, data, mimeType }: WireRecord): string | undefined {
  if (type !== 'image' && type !== 'file') return undefined;
  if (typeof data !== 'string' || typeof mimeType !== 'string') return undefined;
  return `data:${mimeType};base64,${data}`;
}
