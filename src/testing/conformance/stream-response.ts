import type { LLMResponse, LLMStreamPart, ToolCall } from '../../contract/llm-provider.js';
import { BrokenRule, expectSame, expectThat } from './expectations.js';

/** The response that a stream ends with, which all parts before it have to be. */
export function responseIn(parts: readonly LLMStreamPart[]): LLMResponse {
  const last = parts.at(-1);
  expectThat(
    last?.type === 'response',
    `its stream ends with ${last?.type ?? 'nothing'}, and not with the response`,
  );
  const { response } = last as Extract<LLMStreamPart, { type: 'response' }>;
  expectThat(
    parts.filter(({ type }) => type === 'response').length === 1,
    'its stream has more than one response',
  );
  expectSame('the text of all text-delta', toldIn(parts, 'text-delta'), response.content);
  expectSame('the text of all reasoning-delta', toldIn(parts, 'reasoning-delta'), response.reasoning ?? '');
  const attachments = parts.flatMap((part) => (part.type === 'attachment' ? [part.attachment] : []));
  expectSame('all attachments', attachments, response.attachments ?? []);
  expectInputs(parts, response.toolCalls);
  return response;
}

function toldIn(parts: readonly LLMStreamPart[], type: 'text-delta' | 'reasoning-delta'): string {
  return parts.map((part) => (part.type === type ? part.text : '')).join('');
}

/** The input of a call is told from its start to its end, and is what the call has then. */
function expectInputs(parts: readonly LLMStreamPart[], calls: readonly ToolCall[]): void {
  const inputs = new Map<string, { text: string; isEnded: boolean }>();
  for (const part of parts) {
    if (!('callId' in part)) continue;
    const { type, callId } = part;
    const input = inputs.get(callId);
    if (type === 'call-input-start') {
      expectThat(input === undefined, `its stream starts the input of ${callId} twice`);
      const { name } = calls.find(({ id }) => id === callId) ?? {};
      expectSame(`the tool of call-input-start for ${callId}`, part.tool, name);
      inputs.set(callId, { text: '', isEnded: false });
      continue;
    }
    if (input === undefined || input.isEnded)
      throw new BrokenRule(
        `its stream has ${type} for ${callId}, whose input ${input ? 'has ended' : 'never started'}`,
      );
    if (type === 'call-input-delta') input.text += part.text;
    else input.isEnded = true;
  }
  for (const [callId, { text, isEnded }] of inputs) {
    expectThat(isEnded, `its stream starts the input of ${callId} and never ends it`);
    const args = calls.find(({ id }) => id === callId)?.arguments;
    expectSame(`the input told of ${callId}`, typeof args === 'string' ? text : readJson(text), args);
  }
}

function readJson(text: string): unknown {
  try {
    // Of a call without arguments some models say nothing.
    return JSON.parse(text || '{}');
  } catch {
    return text;
  }
}
