import { isSpecType } from '@modelcontextprotocol/server';
import { isRecord } from '../../../core/kernel/json.js';

/** A result with a line of text for each block that the SDK does not accept: it would refuse the whole result. */
export function withReadableContent<Result>(result: Result): Result {
  if (!isRecord(result) || !Array.isArray(result.content)) return result;
  if (result.content.every(isBlock)) return result;
  return { ...result, content: result.content.map((block) => (isBlock(block) ? block : lineAbout(block))) };
}

function isBlock(block: unknown): boolean {
  return isSpecType.ContentBlock(block);
}

const TYPE = /^[\w./-]{1,40}$/;

function lineAbout(block: unknown): { readonly type: 'text'; readonly text: string } {
  const { type } = Object(block) as { readonly type?: unknown };
  const shown = typeof type === 'string' && TYPE.test(type) ? `of type '${type}'` : 'without a type';
  return { type: 'text', text: `[A block ${shown} was left out: it is not valid MCP.]` };
}

/** The SDK's code for a response that is no result of its request. */
const INVALID_RESULT = 'INVALID_RESULT';

/** The error of a call whose response cannot be read; the SDK's own contains its complete check. */
export function unreadableResult(cause: unknown): unknown {
  if (!isRecord(cause) || cause.code !== INVALID_RESULT) return cause;
  const message =
    'The tool ran, but the response of its server is not valid MCP and was lost. Find out what the call has done before you make it again.';
  return new Error(message, { cause });
}
