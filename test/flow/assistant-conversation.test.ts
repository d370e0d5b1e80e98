import { describe, expect, test } from '@jest/globals';
import { type ConversationEvent, type Message, type ToolLoopResult, ToolRegistry } from 'toolwright';
import { calculateTool } from 'toolwright/builtin';
import { OpenAIProvider } from 'toolwright/openai';
import { Assistant } from '../../examples/assistant/assistant.js';
import { type Answer, delta, events, LoopbackServer } from '../parts/providers/loopback-server.js';
import { historyFaults } from './strict-history.js';

const silent = { debug() {}, info() {}, warn() {}, error() {} };

/** An assistant with a calculator and a provider at this server. */
function assistantAt({ baseURL }: LoopbackServer): Assistant {
  const provider = new OpenAIProvider({ baseURL, apiKey: 'k', maxRetries: 0 });
  const tools = new ToolRegistry().register(calculateTool);
  return new Assistant({ provider, model: 'm', tools, logger: silent, author: 'ada' });
}

/** Asks, and aborts at the first event of this type. */
function askUntil(assistant: Assistant, type: ConversationEvent['type']): Promise<ToolLoopResult> {
  const interrupt = new AbortController();
  const onEvent = (event: ConversationEvent): void => {
    if (event.type === type) interrupt.abort();
  };
  return assistant.ask('What is 6 * 7?', { signal: interrupt.signal, onEvent });
}

const callPiece = {
  index: 0,
  id: 'c1',
  type: 'function',
  function: { name: 'calculate', arguments: '{"expression":"6 * 7"}' },
};
const calling = events([delta({ content: 'Let me ', tool_calls: [callPiece] }), delta({}, 'tool_calls')]);
const answering = events([delta({ content: 'Fine.' }), delta({}, 'stop')]);
/** Starts an answer and never ends it. */
const endless: Answer = (response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(`data: ${JSON.stringify(delta({ content: 'On and ' }))}\n\n`);
};

describe('the conversation of examples/assistant', () => {
  test.each([
    ['in the middle of an answer', endless, 'text-delta'],
    ['as a call begins', calling, 'call-start'],
    ['as a call ends', calling, 'call-end'],
  ] as const)('continues with a valid history after an abort %s', async (_when, first, type) => {
    const replies = [first, answering];
    await using server = await LoopbackServer.start((response, request) =>
      replies.shift()?.(response, request),
    );
    const assistant = assistantAt(server);
    const aborted = await askUntil(assistant, type);
    expect([aborted.status, historyFaults(aborted.messages)]).toEqual(['aborted', []]);
    const { signal } = new AbortController();
    const { status, content } = await assistant.ask('And now?', { signal, onEvent: () => {} });
    expect([status, content]).toEqual(['completed', 'Fine.']);
    const sent = server.requests[1]?.body.messages as readonly Message[];
    expect(historyFaults(sent)).toEqual([]);
    expect(sent.flatMap(({ role, content }) => (role === 'user' ? [content] : []))).toEqual([
      'What is 6 * 7?',
      'And now?',
    ]);
  });
});
