import { describe, expect, test } from '@jest/globals';
import {
  type Answer,
  agentAsTool,
  Conversation,
  defineTool,
  MemoryJobEngine,
  type Message,
  resumeStoredRun,
  resumeToolLoop,
  runJobs,
  runToolLoop,
  streamToolLoop,
  type ToolDefinition,
  type ToolLoopConfig,
} from 'toolwright';
import { maskPatterns, PERSONAL_DATA } from 'toolwright/hooks';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider, type ScriptedStep } from 'toolwright/testing';
import { HandOffs, Agents as Table } from 'toolwright/toolbox/agents';

const ALICE = 'alice@example.org';
const BOB = 'bob@example.org';
const CAROL = 'carol@example.org';
const WANTED: Message = { role: 'user', content: `Not to ${ALICE}, write to ${BOB}` };

const call = (name: string, args: object = {}, id = `${name}-1`): ScriptedStep => ({
  toolCalls: [{ id, name, arguments: args as Record<string, unknown> }],
});

/** A reply that calls `send` with the last mask of the last message. */
const sendLast: ScriptedStep = ({ messages }) => ({
  toolCalls: [{ id: 'send-1', name: 'send', arguments: { to: lastMask(messages.at(-1)) } }],
});

function lastMask(message: Message | undefined): string {
  return /.*(\[[a-z]+(?: \d+)?\])/s.exec(String(message?.content))?.[1] ?? 'nobody';
}

/** A reply that repeats the masks of a message, with words around them. */
const saying =
  (words: (masks: readonly string[]) => string, at = -1): ScriptedStep =>
  ({ messages }) => ({ content: words(String(messages.at(at)?.content).match(/\[[a-z]+ \d+\]/g) ?? []) });

/** A tool that returns a text. */
const finding = (text: unknown, name = 'find'): ToolDefinition =>
  defineTool({ name, description: 'Finds', execute: () => text }) as ToolDefinition;

class Mail {
  readonly sent: string[] = [];
  readonly tool: ToolDefinition;

  constructor(options: object = {}) {
    this.tool = defineTool({
      name: 'send',
      description: 'Sends a mail',
      parameters: { type: 'object', properties: { to: { type: 'string' } }, required: ['to'] },
      execute: ({ to }: { readonly to: string }) => {
        this.sent.push(to);
        return 'sent';
      },
      ...options,
    }) as ToolDefinition;
  }
}

function agent(steps: readonly ScriptedStep[], more: object = {}) {
  const provider = new ScriptedProvider(steps);
  const tool = agentAsTool({ name: 'research', description: 'Finds people', provider, model: 'm', ...more });
  return { provider, tool };
}

const toAgent = call('research', { task: 'Is [email 2] right?' });

/** A run whose model sends a mail to the last mask that a tool has returned. */
async function mailing(tool: ToolDefinition, more: Partial<ToolLoopConfig> = {}, first = toAgent) {
  const mail = new Mail();
  const provider = new ScriptedProvider([first, sendLast, { content: 'Done.' }]);
  const config = { provider, model: 'm', tools: [tool, mail.tool], hooks: [maskPatterns()], ...more };
  const run = await runToolLoop(config, [WANTED]);
  return { run, sent: mail.sent, provider, read: readBy(provider), result: run.toolCalls[0]?.result };
}

/** The result of the first call, as the model read it. */
const readBy = ({ requests }: ScriptedProvider) => requests[1]?.messages.at(-1)?.content;

const shownTo = (...providers: readonly ScriptedProvider[]) =>
  JSON.stringify(providers.map(({ requests }) => requests.map(({ messages }) => messages)));

describe('the answer of an agent', () => {
  test('has the masks of the calling run, and its own masks inside', async () => {
    const { provider, tool } = agent([saying(([mask]) => `Yes, ${mask} is right.`)]);
    const { sent, read, result, provider: outer } = await mailing(tool);
    expect(provider.requests[0]?.messages.at(-1)?.content).toBe('Is [email 1] right?');
    expect(result?.forLLM).toBe(`Yes, ${BOB} is right.`);
    expect(read).toBe('Yes, [email 2] is right.');
    expect(sent).toEqual([BOB]);
    expect(shownTo(provider, outer)).not.toMatch(/@example/);
  });

  test('passes on a value that only the agent has found', async () => {
    const { tool } = agent([call('find'), saying(([mask]) => `It is ${mask}.`)], {
      tools: [finding(`known as ${CAROL}`)],
    });
    const { sent, read } = await mailing(tool);
    expect([read, sent]).toEqual(['It is [email 3].', [CAROL]]);
  });

  test('goes through several agents', async () => {
    const inner = agent([call('find'), saying(([mask]) => `It is ${mask}.`)], {
      name: 'search',
      tools: [finding(`${ALICE} asked for ${CAROL} and ${BOB}`)],
    });
    const { tool } = agent(
      [call('search', { task: 'Who asked [email 1]?' }), saying(([mask]) => `Answer: ${mask}`)],
      { tools: [inner.tool] },
    );
    const { sent, read } = await mailing(tool);
    expect(readBy(inner.provider)).toBe('[email 2] asked for [email 3] and [email 1]');
    expect([read, sent]).toEqual(['Answer: [email 1]', [ALICE]]);
  });

  test.each([
    ['by a call', false],
    ['in text', true],
  ])('may be data %s, which is checked with the values', async (_, isText) => {
    const answer = (mask: unknown) => ({ to: mask, by: { [String(mask)]: ['new'] } });
    const { provider, tool } = agent(
      [
        ({ messages }) => {
          const data = answer(lastMask(messages.at(-1))) as Record<string, unknown>;
          return isText
            ? { content: JSON.stringify(data) }
            : { toolCalls: [{ name: 'final_answer', arguments: data }] };
        },
      ],
      {
        output: {
          type: 'object',
          properties: { to: { type: 'string', format: 'email' }, by: { type: 'object' } },
          required: ['to', 'by'],
        },
      },
    );
    Object.assign(provider, { supportsResponseFormat: () => isText });
    const { sent, read, result } = await mailing(tool);
    expect(JSON.parse(String(result?.forLLM))).toEqual(answer(BOB));
    expect(JSON.parse(String(read))).toEqual(answer('[email 2]'));
    expect(sent).toEqual([BOB]);
  });

  test.each(['[email 2]', '[Email-2]'])('cannot invent the mask %s of the calling run', async (mask) => {
    const { tool } = agent([{ content: `Take ${mask}` }]);
    const { sent, read } = await mailing(tool);
    expect(read).toBe(`Take ${mask.slice(0, 6)}]`);
    expect(sent).not.toContain(BOB);
  });

  test('names a value without its number if the text around it would change the value', async () => {
    const { tool } = agent([call('find'), saying(([phone]) => `Call ${phone} 24 hours a day or ${phone}.`)], {
      tools: [finding('+49 30 901820')],
    });
    const { read, result } = await mailing(tool);
    expect(read).toBe('Call [phone] 24 hours a day or [phone 1].');
    expect(result?.forLLM).toBe('Call [phone] 24 hours a day or +49 30 901820.');
  });

  test('is streamed with the masks of the agent', async () => {
    const { tool } = agent([saying(([mask]) => `It is ${mask}.`)]);
    const provider = new ScriptedProvider([toAgent, { content: 'Done.' }]);
    const run = streamToolLoop({ provider, model: 'm', tools: [tool], hooks: [maskPatterns()] }, [WANTED]);
    let streamed = '';
    for await (const event of run)
      if (event.type === 'call-event' && event.event.type === 'text-delta') streamed += event.event.text;
    expect(streamed).toBe('It is [email 1].');
    expect((await run.result).toolCalls[0]?.result.forLLM).toBe(`It is ${BOB}.`);
  });

  test('keeps masks that the calling run does not have', async () => {
    const patterns = [{ name: 'customer', pattern: /CUS-\d+/g }];
    const { tool } = agent([call('find'), saying((masks) => `Owed by ${masks.join(', ')}`)], {
      tools: [finding(`CUS-12, CUS-34, ${CAROL}`)],
      hooks: [maskPatterns({ patterns })],
    });
    const { read, result } = await mailing(tool);
    expect(result?.forLLM).toBe(`Owed by [customer 1], [customer 2], ${CAROL}`);
    expect(read).toBe('Owed by [customer 1], [customer 2], [email 3]');
    const alone = await mailing(agent([{ content: 'For [email 1]' }], { hooks: [maskPatterns()] }).tool, {
      hooks: [],
    });
    expect(alone.read).toBe('For [email 1]');
  });

  test('reveals no value that the calling run would not mask', async () => {
    const { tool } = agent([call('find'), saying((masks) => `It is ${masks.join(' of ')}`)], {
      tools: [finding(`12345 of ${CAROL}`)],
      hooks: [maskPatterns({ patterns: [{ name: 'card', pattern: /\b\d{5}\b/g }] })],
    });
    const { read } = await mailing(tool);
    expect(read).toBe('It is [card] of [email 3]');
  });

  test.each([
    [['requests', 'results'], 'Yes, [email].', [BOB]],
    [['requests', 'arguments'], 'Yes, [email].', ['[email]']],
  ] as const)('is not restored beyond the option in: %j', async (places, answer, asked) => {
    const { provider, tool } = agent([({ messages }) => ({ content: `Yes, ${lastMask(messages.at(-1))}.` })]);
    const hooks = [maskPatterns({ in: [...places] })];
    const task = places[1] === 'results' ? '[email 2]' : '[email]';
    const { read, result, run } = await mailing(tool, { hooks }, call('research', { task }));
    expect([result?.forLLM, read]).toEqual([answer, answer]);
    expect(run.toolCalls[0]?.arguments).toEqual({ task: asked[0] });
    expect(shownTo(provider)).not.toMatch(/@example/);
  });
});

describe('the answer of an agent that was suspended', () => {
  const suspended = () => {
    const mail = new Mail({ approval: true });
    const outer = new ScriptedProvider([toAgent, sendLast, { content: 'Done.' }]);
    const { provider, tool } = agent([call('find'), sendLast, saying(([, mask]) => `Sent to ${mask}`, -3)], {
      tools: [finding(`${CAROL}, then ${BOB}`), mail.tool],
    });
    const last = new Mail();
    const send = { ...last.tool, name: 'send' };
    const config = { provider: outer, model: 'm', tools: [tool, send], hooks: [maskPatterns()] };
    return { mail, last, outer, provider, config };
  };
  const approvals = (pending: readonly { readonly id: string }[] = []) =>
    pending.map(({ id }): Answer => ({ id, approved: true }));

  test('has the masks of the calling run, in another process', async () => {
    const { mail, last, outer, config } = suspended();
    const first = await runToolLoop(config, [WANTED]);
    expect(first.pending).toMatchObject([{ tool: 'send', arguments: { to: BOB } }]);
    const state = JSON.parse(JSON.stringify(first.state));
    const resumed = await resumeToolLoop(
      { ...config, hooks: [maskPatterns()] },
      state,
      approvals(first.pending),
    );
    expect(resumed.status).toBe('completed');
    expect(readBy(outer)).toBe('Sent to [email 2]');
    expect([mail.sent, last.sent]).toEqual([[BOB], [BOB]]);
  });

  test('has them with stored steps, too', async () => {
    const { mail, last, outer, config } = suspended();
    const store = new MemoryRunStore();
    const kept = { ...config, store, checkpoint: 'step' as const, runId: 'r' };
    const first = await runToolLoop(kept, [WANTED]);
    await resumeStoredRun(kept, { store, runId: 'r' }, approvals(first.pending));
    expect(readBy(outer)).toBe('Sent to [email 2]');
    expect([mail.sent, last.sent]).toEqual([[BOB], [BOB]]);
    expect(JSON.stringify(await store.read('r'))).toContain(`Sent to ${BOB}`);
  });
});

describe('a run that a tool starts itself', () => {
  const asking = (
    config: Partial<ToolLoopConfig>,
    answer: (run: { content: string }) => unknown,
    options = {},
  ) => {
    const provider = new ScriptedProvider([saying(([mask]) => `Yes, ${mask}.`)]);
    const tool = defineTool({
      name: 'research',
      description: 'Asks a model',
      parameters: { type: 'object', properties: { task: { type: 'string' } } },
      execute: async ({ task }: { readonly task: string }) =>
        answer(await runToolLoop({ provider, model: 'm', ...config }, [{ role: 'user', content: task }])),
      ...options,
    });
    return tool as ToolDefinition;
  };

  test.each([
    ['the same hook', (hooks: ToolLoopConfig['hooks']) => hooks],
    ['a hook of its own', () => [maskPatterns({ patterns: [...PERSONAL_DATA] })]],
  ])('answers with values, with %s', async (_, hooksOf) => {
    const hooks = [maskPatterns()];
    const got: string[] = [];
    const tool = asking({ hooks: hooksOf(hooks) }, ({ content }) => {
      got.push(content);
      return content;
    });
    const { read, sent } = await mailing(tool, { hooks });
    expect(got).toEqual([`Yes, ${BOB}.`]);
    expect([read, sent]).toEqual(['Yes, [email 2].', [BOB]]);
  });

  test('names no value of the calling run if the tool returns its history', async () => {
    const hooks = [maskPatterns()];
    const { read, sent } = await mailing(
      asking({ hooks }, (run) => ({ ...run })),
      { hooks },
    );
    expect(read).not.toContain('[email 1]');
    expect(sent).not.toContain(ALICE);
  });

  test('in the background completes with values', async () => {
    const hooks = [maskPatterns()];
    const mail = new Mail();
    const tool = asking({ hooks }, ({ content }) => content, { background: true });
    const provider = new ScriptedProvider([toAgent, { content: 'Wait.' }, sendLast, { content: 'Done.' }]);
    const conversation = new Conversation({ provider, model: 'm', tools: [tool, mail.tool], hooks });
    await conversation.prompt(String(WANTED.content));
    await conversation.idle({ tasks: true });
    expect(mail.sent).toEqual([BOB]);
  });

  test('in a job completes without numbers, because the run that reads them is not known', async () => {
    const engine = new MemoryJobEngine();
    const store = new MemoryRunStore();
    const tool = asking({ hooks: [maskPatterns()] }, ({ content }) => content, { background: true });
    const ended = Promise.withResolvers<string>();
    const worker = await runJobs({
      engine,
      store,
      tools: [tool],
      onAsyncResult: ({ result }) => ended.resolve(result.forLLM),
    });
    await mailing(tool, { engine, store });
    expect(await ended.promise).toBe('Yes, [email].');
    await worker.close();
    await engine.close();
  });

  test('reads what the model of the calling run wrote with its own masks', async () => {
    const provider = new ScriptedProvider([{ content: 'Understood.' }]);
    const hooks = [maskPatterns()];
    const tool = defineTool({
      name: 'research',
      description: 'Continues the conversation',
      execute: async (_: object, { messages }) =>
        (await runToolLoop({ provider, model: 'm', hooks }, messages.slice(2))).content,
    }) as ToolDefinition;
    const history: Message[] = [
      { role: 'user', content: `I am ${ALICE}` },
      { role: 'assistant', content: 'Hello [email 1]' },
      { role: 'user', content: `Write to ${BOB}` },
      { role: 'assistant', content: 'From [email 1] to [email 2]?' },
      { role: 'user', content: 'Yes' },
    ];
    const outer = new ScriptedProvider([call('research'), { content: 'Done.' }]);
    await runToolLoop({ provider: outer, model: 'm', tools: [tool], hooks }, history);
    expect(provider.requests[0]?.messages.map(({ content }) => content).slice(0, 2)).toEqual([
      'Write to [email 1]',
      'From [email 2] to [email 1]?',
    ]);
  });
});

test('an agent that takes a conversation over reads the masks of the first one as its own', async () => {
  const mail = new Mail();
  const front = new ScriptedProvider([
    call('find'),
    { content: 'I found [email 1].' },
    call('hand_off', { agent: 'post', note: 'write' }),
  ]);
  const post = new ScriptedProvider([
    ({ messages }) => {
      const found = messages.find(({ content }) => String(content).startsWith('I found'));
      return { toolCalls: [{ id: 's1', name: 'send', arguments: { to: lastMask(found) } }] };
    },
    { content: 'Sent.' },
  ]);
  const common = { description: 'Helps', model: 'm' };
  const agents = new Table({
    agents: {
      front: { ...common, provider: front, tools: [finding(BOB)] },
      post: { ...common, provider: post, systemPrompt: `You are ${CAROL}`, tools: [mail.tool] },
    },
  });
  const desk = new HandOffs({ agents, first: 'front' });
  const conversation = new Conversation({ ...desk.configOf([]), hooks: [maskPatterns()] });
  await conversation.prompt('Who is it?');
  expect((await conversation.prompt(`Write, I am ${ALICE}`)).content).toBe('Sent.');
  expect(mail.sent).toEqual([BOB]);
});

test('a mask in the result of a tool names no value', async () => {
  const tool = finding('Write to [email 1], see [phone 1]', 'research');
  const { read, sent } = await mailing(tool, {}, call('research'));
  expect(read).toBe('Write to [email], see [phone 1]');
  expect(sent).not.toContain(ALICE);
});
