import type { ToolCall } from '../contract/llm-provider.js';
import { parseToolRequest } from '../detection/parse-tool-request.js';
import { scanText } from '../detection/scan-text.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { errorMessage } from '../invocation/error-message.js';
import type { ToolRegistry } from '../registry/tool-registry.js';
import { type Reply, tidyCall } from './request-reply.js';

/** Calls that were found in a text; a call without an id is numbered by the loop. */
export interface DetectedCalls {
  readonly toolCalls: readonly (Omit<ToolCall, 'id'> & { readonly id?: string })[];
  /** What of the text remains as the message's content; default: nothing. */
  readonly content?: string;
}

/** Finds calls in the text of a reply that brought none; `undefined` where there are none. */
export type CallDetector = (
  content: string,
  offered: { readonly tools: ToolRegistry },
) => DetectedCalls | undefined;

/**
 * Where the loop looks for calls beside the reply's own: `native` nowhere else, `tool_request` in a text that
 * is one strict request, `scan` in such a text and otherwise anywhere in it: for registered names, and between the marks
 * of calls for others too, which the model is told.
 */
export type Detector = 'native' | 'tool_request' | 'scan' | CallDetector;

/**
 * The reply with the calls that its text holds. Its own calls come first, and then its text is only text. A
 * detector that throws leaves no reply that could be used.
 */
export function detectCalls(
  reply: Reply,
  { detector = 'native', tools }: { readonly detector?: Detector; readonly tools: ToolRegistry },
): Reply {
  if (detector === 'native' || !reply.ok || reply.response.toolCalls.length > 0) return reply;
  const { response } = reply;
  try {
    const { toolCalls = [], content = '' } = detectorOf(detector)(response.content, { tools }) ?? {};
    if (toolCalls.length === 0) return reply;
    return {
      ok: true,
      response: { ...response, content: String(content), toolCalls: toolCalls.map(tidyCall) },
    };
  } catch (cause) {
    const message = `The detector failed: ${errorMessage(cause)}`;
    return { ok: false, reason: 'failed', error: new ToolwrightError('ProviderFailed', message, { cause }) };
  }
}

function detectorOf(detector: Exclude<Detector, 'native'>): CallDetector {
  if (typeof detector === 'function') return detector;
  return detector === 'tool_request' ? findRequest : scan;
}

const findRequest: CallDetector = (content) => {
  const request = parseToolRequest(content);
  return request && { toolCalls: [request] };
};

const scan: CallDetector = (content, { tools }) => {
  const request = findRequest(content, { tools });
  if (request !== undefined) return request;
  const { calls, textBefore } = scanText(content, tools, { unknown: 'call' });
  return { toolCalls: calls, content: textBefore };
};
