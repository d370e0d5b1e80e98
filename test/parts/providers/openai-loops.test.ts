import { describe, expect, test } from '@jest/globals';
import { defineTool, type LoopEvent, resumeToolLoop, runToolLoop, streamToolLoop } from 'toolwright';
import { OpenAIProvider } from 'toolwright/openai';
import { type Answer, collect, completion, delta, events, json, LoopbackServer } from './loopback-server.js';
import { customCall, eventsOf, functionCall, message, reasoning, responseOf } from './responses-bodies.js';

type Fields = Readonly<Record<string, unknown>>;

const QUESTION = [{ role: 'user', content: 'Look' }] as const;
const look = defineTool({
  name: 'look',
  description: 'Looks',
  parameters: { type: 'object', properties: { at: { type: 'integer' } } },
  execute: ({ at }) => `seen at ${at}`,
});
const sql = defineTool({ name: 'sql', description: 'Asks', execute: () => 'one row' });
const CALL = { id: 'c1', type: 'function', function: { name: 'look', arguments: '{"at":1}' } };
const ITEMS = [reasoning('Let me see.'), message('Looking.'), functionCall('c1', '{"at":1}')];

interface Dialogue {
  readonly api: 'chat' | 'responses';
  readonly model: string;
  readonly first: Readonly<Record<'whole' | 'streamed', Answer>>;
  /** The items of the second request between the question and the tool result. */
  readonly replayed: readonly Fields[];
}

function chatDialogue(model: string, fields: Fields, replayed: Fields = fields): Dialogue {
  return {
    api: 'chat',
    model,
    first: {
      whole: json(completion({ content: null, ...fields }, { finish_reason: 'tool_calls' })),
      streamed: events([delta({ role: 'assistant', content: null, ...fields }), delta({}, 'tool_calls')]),
    },
    replayed: [{ role: 'assistant', ...replayed }],
  };
}

const SIGNED = { ...CALL, extra_content: { google: { thought_signature: 'c2lnbmVk' } } };
const DETAILS = [{ type: 'reasoning.text', text: 'Let me see.', signature: 's', format: 'x', index: 0 }];
const DIALOGUES: Readonly<Record<string, Dialogue>> = {
  reasoning_content: chatDialogue('deepseek-v4-pro', {
    reasoning_content: 'Let me see.',
    tool_calls: [CALL],
  }),
  reasoning_details: chatDialogue('anthropic/claude-sonnet-4.5', {
    reasoning_details: DETAILS,
    tool_calls: [CALL],
  }),
  'extra_content.google.thought_signature': chatDialogue('gemini-3-pro', { tool_calls: [SIGNED] }),
  'encrypted_content of Responses': {
    api: 'responses',
    model: 'gpt-5.2',
    first: { whole: json(responseOf(ITEMS)), streamed: events(eventsOf(responseOf(ITEMS)), '') },
    replayed: ITEMS,
  },
};

const LAST: Readonly<Record<Dialogue['api'], readonly [whole: Answer, streamed: Answer]>> = {
  chat: [json(completion({ content: 'Done.' })), events([delta({ content: 'Done.' }, 'stop')])],
  responses: [json(responseOf([message('Done.')])), events(eventsOf(responseOf([message('Done.')])), '')],
};

async function serve({ api, first }: Dialogue) {
  const whole = [first.whole, LAST[api][0]];
  const streamed = [first.streamed, LAST[api][1]];
  return LoopbackServer.start((response, request) => {
    const at = (request.body.messages ?? request.body.input) as unknown[];
    const answers = request.body.stream ? streamed : whole;
    answers[at.length > 1 ? 1 : 0]?.(response, request);
  });
}

function configOf({ api, model }: Dialogue, server: LoopbackServer) {
  const provider = new OpenAIProvider({ api, baseURL: server.baseURL, apiKey: 'k', maxRetries: 0 });
  return { provider, model, tools: [look] };
}

function replayedIn(server: LoopbackServer) {
  const { messages, input } = server.requests[1]?.body ?? {};
  return ((messages ?? input) as Fields[]).slice(1, -1);
}

describe.each(Object.entries(DIALOGUES))(
  'runToolLoop with OpenAIProvider sends %s back',
  (_name, dialogue) => {
    test('in the messages of the next request', async () => {
      await using server = await serve(dialogue);
      const run = await runToolLoop(configOf(dialogue, server), QUESTION);
      expect(run).toMatchObject({ status: 'completed', content: 'Done.' });
      expect(replayedIn(server)).toMatchObject(dialogue.replayed);
      expect(JSON.stringify(server.requests[1]?.body)).not.toContain('providerItems');
    });

    test('after a streamed reply, with reasoning and call events', async () => {
      await using server = await serve(dialogue);
      const told: LoopEvent[] = await collect(streamToolLoop(configOf(dialogue, server), QUESTION));
      expect(replayedIn(server)).toMatchObject(dialogue.replayed);
      const thought = told.map((event) => (event.type === 'reasoning-delta' ? event.text : '')).join('');
      expect(thought).toBe(dialogue.model.startsWith('gemini') ? '' : 'Let me see.');
      expect(told.some(({ type }) => type === 'call-input-start')).toBe(true);
    });

    test('after the run was suspended, stored as JSON and resumed', async () => {
      await using server = await serve(dialogue);
      const config = { ...configOf(dialogue, server), tools: [{ ...look, approval: true }] };
      const suspended = await runToolLoop(config, QUESTION);
      const state = JSON.parse(JSON.stringify(suspended.state));
      const answers = (suspended.pending ?? []).map(({ id }) => ({ id, approved: true }));
      const run = await resumeToolLoop(config, state, answers);
      expect(run).toMatchObject({ status: 'completed', content: 'Done.' });
      expect(replayedIn(server)).toMatchObject(dialogue.replayed);
    });

    test('but not to a model of another family', async () => {
      await using server = await serve(dialogue);
      const config = configOf(dialogue, server);
      const { messages } = await runToolLoop(config, QUESTION);
      await runToolLoop({ ...config, model: 'other-1' }, [...messages, ...QUESTION]);
      const sent = JSON.stringify(server.requests.at(-1)?.body);
      expect(sent).not.toMatch(/reasoning_|thought_signature|gAAAAB/);
      expect(sent).toContain('c1');
    });
  },
);

test('runToolLoop with OpenAIProvider answers a custom call of Responses with a custom call output', async () => {
  const dialogue: Dialogue = {
    api: 'responses',
    model: 'gpt-5',
    first: { whole: json(responseOf([customCall('c1', '{"text":"free"}')])), streamed: () => {} },
    replayed: [],
  };
  await using server = await serve(dialogue);
  await runToolLoop({ ...configOf(dialogue, server), tools: [sql] }, QUESTION);
  expect(server.requests[1]?.body.input).toMatchObject([
    { role: 'user' },
    { type: 'custom_tool_call', call_id: 'c1', input: '{"text":"free"}' },
    { type: 'custom_tool_call_output', call_id: 'c1' },
  ]);
});
