import type { ReplyAttachment } from '../../../contract/llm-provider.js';
import { citedAttachment, imageAttachment } from '../reply-attachments.js';
import { jsonList, jsonRecord, jsonText, type WireRecord } from '../wire-json.js';
import { isSearchCall } from './found-tools.js';

/*
 * What the items of a reply say. Items of other types (web searches, code, MCP, computer use, …) are the server's own
 * work, or its own questions: they are kept and go back, and nobody here looks into them.
 */

const CALLS = new Set<unknown>(['function_call', 'custom_tool_call']);

/** The items that are calls for us, in order. */
export function callItems(output: readonly WireRecord[]): readonly WireRecord[] {
  return output.filter((item) => CALLS.has(item.type) || isSearchCall(item));
}

/** The text of all messages; where there is none, why the model refused to say one. */
export function textOf(output: readonly WireRecord[]): string {
  return saidIn(output) || contentOf(output, 'refusal', 'refusal');
}

/** The text of all messages without refusals. */
export function saidIn(output: readonly WireRecord[]): string {
  return contentOf(output, 'output_text', 'text');
}

/** Each part of a summary has a title of its own. */
export const BETWEEN_THOUGHTS = '\n\n';

/** What the model thought, as far as it is told: summaries, or the text of models that give it. */
export function reasoningOf(output: readonly WireRecord[]): string {
  return output
    .filter(({ type }) => type === 'reasoning')
    .map(({ summary, content }) => partsOf(summary) || partsOf(content))
    .filter((text) => text !== '')
    .join(BETWEEN_THOUGHTS);
}

/** The sources that a message names, or the image that was made. */
export function attachmentsOf({ type, content, ...item }: WireRecord): readonly ReplyAttachment[] {
  if (type === 'image_generation_call')
    return imageAttachment(item.result, `image/${jsonText(item.output_format) || 'png'}`);
  if (type !== 'message') return [];
  return jsonList(content).flatMap((part) => jsonList(jsonRecord(part).annotations).flatMap(citedAttachment));
}

function contentOf(output: readonly WireRecord[], type: string, field: 'text' | 'refusal'): string {
  return output
    .filter((item) => item.type === 'message')
    .flatMap(({ content }) => jsonList(content).map(jsonRecord))
    .filter((part) => part.type === type)
    .map((part) => jsonText(part[field]))
    .join('');
}

function partsOf(parts: unknown): string {
  return jsonList(parts)
    .map((part) => jsonText(jsonRecord(part).text))
    .join(BETWEEN_THOUGHTS);
}
