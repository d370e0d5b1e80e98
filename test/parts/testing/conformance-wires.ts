import type { HttpBackendBody, HttpBackendRequest, ModelReply } from 'toolwright/testing';
import { anthropicEvents, anthropicMessage } from '../providers/anthropic-bodies.js';
import { eventsOf, functionCall, message, responseOf } from '../providers/responses-bodies.js';

/*
 * Replies for the conformance suite in the formats of real APIs.
 */

type Item = Readonly<Record<string, unknown>>;

function json(body: unknown): HttpBackendBody {
  return { text: JSON.stringify(body) };
}

function events(chunks: readonly unknown[], ending = ''): HttpBackendBody {
  const lines = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`);
  return { type: 'text/event-stream', text: lines.join('') + ending };
}

/** Chat Completions, with reasoning in the format of OpenRouter. */
export function chatCompletions(reply: ModelReply, { body }: HttpBackendRequest): HttpBackendBody {
  const { id, model } = reply;
  const object = body.stream ? 'chat.completion.chunk' : 'chat.completion';
  const base = { id, object, created: 1, model };
  const usage = chatUsage(reply.usage);
  if (!body.stream) {
    const message = { role: 'assistant', ...wholeMessage(reply) };
    return json({ ...base, choices: [{ index: 0, message, finish_reason: reply.finishReason }], usage });
  }
  const chunk = (delta: Item, finish_reason: string | null = null) => ({
    ...base,
    choices: [{ index: 0, delta, finish_reason }],
  });
  return events(
    [
      chunk({ role: 'assistant', content: '' }),
      ...deltasOf(reply).map((delta) => chunk(delta)),
      ...(reply.error === undefined
        ? [chunk({}, reply.finishReason), { ...base, choices: [], usage }]
        : [{ error: { message: reply.error, type: 'server_error', code: 503 } }]),
    ],
    'data: [DONE]\n\n',
  );
}

function wholeMessage({ text, calls, reasoning }: ModelReply): Item {
  return {
    content: text === '' ? null : text,
    ...(calls.length > 0 && {
      tool_calls: calls.map(({ id, name, arguments: args }) => ({
        id,
        type: 'function',
        function: { name, arguments: args },
      })),
    }),
    ...(reasoning && {
      reasoning_details: [
        { type: 'reasoning.text', text: reasoning.text, index: 0 },
        { type: 'reasoning.encrypted', data: reasoning.sealed, index: 1 },
      ],
    }),
  };
}

function deltasOf({ text, calls, reasoning, deltas }: ModelReply): readonly Item[] {
  const thought = reasoning ? deltas(reasoning.text) : [];
  return [
    ...thought.map((text) => ({ reasoning_details: [{ type: 'reasoning.text', text, index: 0 }] })),
    ...(reasoning
      ? [{ reasoning_details: [{ type: 'reasoning.encrypted', data: reasoning.sealed, index: 1 }] }]
      : []),
    ...deltas(text).map((content) => ({ content })),
    ...calls.flatMap(({ id, name, arguments: args }, index) => [
      { tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] },
      ...deltas(args).map((piece) => ({ tool_calls: [{ index, function: { arguments: piece } }] })),
    ]),
  ];
}

function chatUsage(usage: ModelReply['usage']): Item {
  return {
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.totalTokens,
    prompt_tokens_details: {
      cached_tokens: usage.cacheReadTokens,
      cache_write_tokens: usage.cacheWriteTokens,
    },
    completion_tokens_details: { reasoning_tokens: usage.reasoningTokens },
  };
}

const INCOMPLETE: Readonly<Record<string, string>> = {
  length: 'max_output_tokens',
  content_filter: 'content_filter',
};

/** Responses, without storage on the server. */
export function responses(reply: ModelReply, { body }: HttpBackendRequest): HttpBackendBody {
  const { id, model, text, calls, reasoning, usage } = reply;
  const reason = INCOMPLETE[reply.finishReason];
  const response = responseOf(
    [
      ...(reasoning ? [thoughtItem(reasoning)] : []),
      ...(text === '' ? [] : [message(text)]),
      ...calls.map(({ id, name, arguments: args }) => functionCall(id, args, { name })),
    ],
    {
      id,
      created_at: 1,
      model,
      error: null,
      incomplete_details: reason === undefined ? null : { reason },
      status: reason === undefined ? 'completed' : 'incomplete',
      usage: {
        input_tokens: usage.inputTokens,
        input_tokens_details: {
          cached_tokens: usage.cacheReadTokens,
          cache_write_tokens: usage.cacheWriteTokens,
        },
        output_tokens: usage.outputTokens,
        output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
        total_tokens: usage.totalTokens,
      },
    },
  );
  if (!body.stream) return json(response);
  const chunks = eventsOf(response, reply.deltas);
  if (reply.error === undefined) return events(chunks);
  const error = {
    type: 'error',
    code: 'server_error',
    message: reply.error,
    param: null,
    sequence_number: 1,
  };
  return events([...chunks.slice(0, -1), error]);
}

function thoughtItem({ text, sealed }: NonNullable<ModelReply['reasoning']>): Item {
  const id = `rs_${sealed.length}`;
  return { id, type: 'reasoning', summary: [{ type: 'summary_text', text }], encrypted_content: sealed };
}

const STOPS: Readonly<Record<ModelReply['finishReason'], string>> = {
  stop: 'end_turn',
  tool_calls: 'tool_use',
  length: 'max_tokens',
  content_filter: 'refusal',
};

/** Anthropic’s Messages. */
export function messages(reply: ModelReply, { body }: HttpBackendRequest): HttpBackendBody {
  const { id, model, finishReason, usage } = reply;
  const tokens = {
    input_tokens: usage.inputTokens - usage.cacheReadTokens - usage.cacheWriteTokens,
    cache_creation_input_tokens: usage.cacheWriteTokens,
    cache_read_input_tokens: usage.cacheReadTokens,
    output_tokens: usage.outputTokens,
  };
  const blocks = blocksOf(reply);
  const message = { ...anthropicMessage(blocks, { model, stop: STOPS[finishReason], usage: tokens }), id };
  if (!body.stream) return json(message);
  const chunks = anthropicEvents(message, reply.deltas);
  if (reply.error === undefined) return events(chunks);
  const error = { type: 'error', error: { type: 'overloaded_error', message: reply.error } };
  return events([...chunks.slice(0, -2), error]);
}

function blocksOf({ text, calls, reasoning }: ModelReply): readonly Item[] {
  return [
    ...(reasoning ? [{ type: 'thinking', thinking: reasoning.text, signature: reasoning.sealed }] : []),
    ...(text === '' ? [] : [{ type: 'text', text }]),
    ...calls.map(({ id, name, arguments: args }) => ({
      type: 'tool_use',
      id,
      name,
      input: JSON.parse(args),
    })),
  ];
}
