/* A language model for a script, in the provider specification of the AI SDK, which Mastra also supports. */
import { ANSWER } from './script.mjs';

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

export function languageModel(script) {
  return {
    specificationVersion: 'v4',
    provider: 'scripted',
    modelId: 'scripted',
    supportedUrls: {},
    async doGenerate({ prompt }) {
      const { content, finishReason } = reply(script.next(prompt));
      return { content, finishReason, usage, warnings: [] };
    },
    async doStream({ prompt }) {
      const { content, finishReason } = reply(script.next(prompt));
      const parts = [
        { type: 'stream-start', warnings: [] },
        ...content.flatMap(toStreamParts),
        { type: 'finish', finishReason, usage },
      ];
      return { stream: ReadableStream.from(parts) };
    },
  };
}

function reply(calls) {
  if (calls.length === 0)
    return { content: [{ type: 'text', text: ANSWER }], finishReason: { unified: 'stop', raw: 'stop' } };
  return { content: calls.map(toCall), finishReason: { unified: 'tool-calls', raw: 'tool_calls' } };
}

function toCall({ id, name, arguments: input }) {
  return { type: 'tool-call', toolCallId: id, toolName: name, input };
}

function toStreamParts(part) {
  if (part.type !== 'text') return [part];
  const id = 'text_1';
  return [
    { type: 'text-start', id },
    { type: 'text-delta', id, delta: part.text },
    { type: 'text-end', id },
  ];
}
