import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Client, ElicitRequest, ElicitResult } from '@modelcontextprotocol/client';
import { defineTool, ToolRegistry } from 'toolwright';
import { listRoots, sampleMessage } from 'toolwright/mcp';
import { connectClient, ERAS, type Listening, listen } from './mcp-connections.js';

const ORDER = { type: 'object', properties: { sku: { type: 'string' } }, required: ['sku'] } as const;
const placed: unknown[] = [];
let reserved = 0;

const registry = new ToolRegistry().register(
  defineTool({
    name: 'place_order',
    description: 'Places an order',
    approval: true,
    annotations: { title: 'Place an order' },
    parameters: ORDER,
    execute: ({ sku }) => {
      placed.push(sku);
      return `placed ${sku}`;
    },
  }),
  defineTool({
    name: 'book',
    description: 'Asks twice, and reserves once in between',
    async execute(_args, context) {
      const nights = await context.ask({
        message: 'How many nights?',
        schema: { type: 'integer', minimum: 1, maximum: 9, multipleOf: 2 },
      });
      const reservation = await context.once('reserve', () => {
        reserved += 1;
        return `r${reserved}`;
      });
      const guest = await context.ask({
        message: 'Who is it for?',
        schema: {
          type: 'object',
          properties: { name: { type: 'string' }, mail: { type: 'string', format: 'email' } },
          required: ['name'],
        },
      });
      return `${reservation}: ${nights} nights for ${JSON.stringify(guest)}`;
    },
  }),
  defineTool({
    name: 'ask_deeply',
    description: 'Asks what no form can hold',
    execute: (_args, context) =>
      context.ask({ message: 'Which?', schema: { type: 'object', properties: { list: { type: 'array' } } } }),
  }),
  defineTool({
    name: 'pack',
    description: 'Packs what is on a list, and asks in between',
    parameters: {
      type: 'object',
      properties: { list: { type: 'array', items: { type: 'string' } } },
      required: ['list'],
    },
    async execute({ list: given }, context) {
      const list = given as string[];
      const packed = [list.shift()];
      await context.ask({ message: 'Go on?', schema: { type: 'boolean' } });
      packed.push(list.shift());
      await context.ask({ message: 'And on?', schema: { type: 'boolean' } });
      return [...packed, list.shift()].join();
    },
  }),
  defineTool({ name: 'elsewhere', description: 'Runs at the client', parameters: ORDER }),
);

registry.register(
  defineTool({
    name: 'pay',
    description: 'Pays',
    approval: true,
    parameters: { type: 'object', additionalProperties: true },
    execute: (args) => {
      placed.push(args);
      return 'paid';
    },
  }),
);

const accept = (content: ElicitResult['content'] = {}): ElicitResult => ({ action: 'accept', content });

describe.each(Object.entries(ERAS))('a client of %s that supports forms', (_era, options) => {
  let listening: Listening;
  let client: Client;
  let asked: ElicitRequest['params'][];
  let answers: ElicitResult[];
  beforeEach(async () => {
    asked = [];
    answers = [];
    placed.length = 0;
    reserved = 0;
    listening = await listen(registry);
    client = await connectClient(listening.url, {
      options: { ...options, capabilities: { elicitation: {} } },
      prepare: (one) =>
        one.setRequestHandler('elicitation/create', ({ params }) => {
          asked.push(params);
          return answers.shift() ?? { action: 'cancel' };
        }),
    });
  });
  afterEach(async () => {
    await client.close();
    await listening.close();
  });

  test('is shown every argument that it approves, also long and disguised ones', async () => {
    answers = [accept()];
    const args = {
      note: 'n'.repeat(3_000),
      nested: { deep: ['x'.repeat(500), 1] },
      'to\u202e': 'EVIL\u001b[2K\u2066',
      amount: 9_999,
    };
    const result = await client.callTool({ name: 'pay', arguments: args });
    expect(result.content).toEqual([{ type: 'text', text: 'paid' }]);
    expect(placed).toEqual([args]);
    const { message = '' } = asked[0] ?? {};
    expect(message).toContain('"amount": 9999');
    expect(message).toContain('"to\\u202e": "EVIL\\u001b[2K\\u2066"');
    expect(message).toContain(`"note": "${'n'.repeat(3_000)}"`);
    expect(message).toContain(`"${'x'.repeat(500)}"`);
    expect(message.indexOf('"amount"')).toBeLessThan(message.indexOf('"note"'));
    for (const hidden of ['\u202e', '\u2066', '\u001b']) expect(message).not.toContain(hidden);
  });

  test('runs a tool again with the original arguments, even if the tool has changed them', async () => {
    answers = [accept({ answer: true }), accept({ answer: true })];
    const result = await client.callTool({ name: 'pack', arguments: { list: ['a', 'b', 'c'] } });
    expect(result.content).toEqual([{ type: 'text', text: 'a,b,c' }]);
    expect(asked).toHaveLength(2);
  });

  test('is not asked if its user could not read all that it would approve', async () => {
    const many = Object.fromEntries(Array.from({ length: 2_000 }, (_, index) => [`key${index}`, index]));
    for (const args of [many, { note: 'a word. '.repeat(1_100), amount: 1 }]) {
      const result = await client.callTool({ name: 'pay', arguments: args });
      expect(result).toMatchObject({ isError: true });
      expect(JSON.stringify(result.content)).toContain('too long to be shown to a user');
    }
    expect([asked, placed]).toEqual([[], []]);
  });

  test('is asked to approve the arguments before anything runs', async () => {
    answers = [accept()];
    const result = await client.callTool({ name: 'place_order', arguments: { sku: 'a-1', gift: true } });
    expect(result.content).toEqual([
      { type: 'text', text: 'placed a-1' },
      { type: 'text', text: 'Ignored: gift is not an argument of place_order.' },
    ]);
    expect(asked).toMatchObject([
      {
        message: 'Run \'Place an order\' (place_order) with these arguments?\n{\n  "sku": "a-1"\n}',
        requestedSchema: { type: 'object', properties: {} },
      },
    ]);
    expect(placed).toEqual(['a-1']);
  });

  test.each(['decline', 'cancel'] as const)('gets a refusal if its user chooses %s', async (action) => {
    answers = [{ action }];
    const result = await client.callTool({ name: 'place_order', arguments: { sku: 'a-1' } });
    expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('the user') }] });
    expect(placed).toEqual([]);
  });

  test('is not asked about invalid arguments', async () => {
    const result = await client.callTool({ name: 'place_order', arguments: {} });
    expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('sku') }] });
    expect(asked).toEqual([]);
  });

  test('answers one question after the other, and the work in between is done once', async () => {
    answers = [accept({ answer: 4 }), accept({ name: 'Ada', mail: 'ada@example.org' })];
    const result = await client.callTool({ name: 'book' });
    expect(result.content).toEqual([
      { type: 'text', text: 'r1: 4 nights for {"name":"Ada","mail":"ada@example.org"}' },
    ]);
    expect(reserved).toBe(1);
    expect(asked.map((params) => 'requestedSchema' in params && params.requestedSchema)).toEqual([
      {
        type: 'object',
        properties: { answer: { type: 'integer', minimum: 1, maximum: 9 } },
        required: ['answer'],
      },
      {
        type: 'object',
        properties: { name: { type: 'string' }, mail: { type: 'string', format: 'email' } },
        required: ['name'],
      },
    ]);
  });

  test('is asked again with the reason if an answer is invalid', async () => {
    answers = [accept({ answer: 3 }), accept({ answer: 2 }), accept({ name: 'Ada' })];
    const result = await client.callTool({ name: 'book' });
    expect(result.content).toEqual([{ type: 'text', text: 'r1: 2 nights for {"name":"Ada"}' }]);
    expect(asked[1]?.message).toContain('How many nights?\n(its value does not fit');
  });

  test('no longer has to answer once the call is cancelled', async () => {
    const isAsked = Promise.withResolvers<void>();
    const isSpared = Promise.withResolvers<void>();
    client.setRequestHandler('elicitation/create', (_request, { mcpReq }) => {
      isAsked.resolve();
      return new Promise((resolve) => {
        mcpReq.signal.addEventListener('abort', () => {
          isSpared.resolve();
          resolve({ action: 'cancel' });
        });
      });
    });
    const controller = new AbortController();
    const call = client.callTool({ name: 'place_order', arguments: { sku: 'a-1' } }, controller);
    await isAsked.promise;
    controller.abort();
    await expect(call).rejects.toBeDefined();
    await isSpared.promise;
    expect(placed).toEqual([]);
  });

  test('gets an error if no form can express the answer, or the tool has no function', async () => {
    for (const name of ['ask_deeply', 'elsewhere']) {
      const result = await client.callTool({ name, arguments: { sku: 'a' } });
      expect(result.isError).toBe(true);
    }
    expect(asked).toEqual([]);
  });
});

describe.each(Object.entries(ERAS))('sampling and roots of a client of %s', (era, options) => {
  let written = 0;
  const asking = new ToolRegistry().register(
    defineTool({
      name: 'sum_up',
      description: 'Asks model, folders and user side by side',
      async execute(_args, context) {
        await context.once('write', () => {
          written += 1;
        });
        const message = { role: 'user' as const, content: { type: 'text' as const, text: 'Sum up' } };
        const [summary, roots, name] = await Promise.all([
          sampleMessage(context, { messages: [message], maxTokens: 10 }),
          listRoots(context),
          context.ask({ message: 'Who are you?' }),
        ]);
        return `${JSON.stringify(summary.content)} in ${roots[0]?.uri} by ${name}`;
      },
    }),
  );
  const capabilities = { elicitation: {}, sampling: {}, roots: {} };

  async function callWith(offered: Partial<typeof capabilities>) {
    const listening = await listen(asking);
    const client = await connectClient(listening.url, {
      options: { ...options, capabilities: offered },
      prepare(one) {
        if (offered.elicitation) one.setRequestHandler('elicitation/create', () => accept({ answer: 'Ada' }));
        if (offered.roots) one.setRequestHandler('roots/list', () => ({ roots: [{ uri: 'file:///work' }] }));
        if (offered.sampling)
          one.setRequestHandler('sampling/createMessage', ({ params }) => ({
            role: 'assistant',
            model: 'a-model',
            content: { type: 'text', text: `${params.maxTokens} tokens` },
          }));
      },
    });
    try {
      return await client.callTool({ name: 'sum_up' });
    } finally {
      await client.close();
      await listening.close();
    }
  }

  test('are requested in parallel, and the work before them is done once', async () => {
    written = 0;
    expect(await callWith(capabilities)).toMatchObject({
      content: [{ text: '{"type":"text","text":"10 tokens"} in file:///work by Ada' }],
    });
    expect(written).toBe(1);
  });

  test.each([
    ['sampling', { elicitation: {}, roots: {} }],
    ['roots', { elicitation: {}, sampling: {} }],
  ])(
    'are not requested from a client that does not offer them, and the error names the missing one: %s',
    async (missing, offered) => {
      const call = callWith(offered);
      if (era === '2026-07-28')
        await expect(call).rejects.toMatchObject({
          code: -32021,
          message: expect.stringContaining(missing),
          data: { requiredCapabilities: { [missing]: {} } },
        });
      else
        expect(await call).toMatchObject({
          isError: true,
          content: [{ text: expect.stringMatching(new RegExp(`'sum_up'.*does not support.*'${missing}'`)) }],
        });
    },
  );
});

describe.each(Object.entries(ERAS))('a client of %s that does not support forms', (_era, options) => {
  test('gets an error that contains the question', async () => {
    const listening = await listen(registry);
    const client = await connectClient(listening.url, { options });
    for (const name of ['place_order', 'book']) {
      const result = await client.callTool({ name, arguments: { sku: 'a-1' } });
      expect(result).toMatchObject({
        isError: true,
        content: [{ text: expect.stringMatching(/needs an answer.*'elicitation'/) }],
      });
    }
    await client.close();
    await listening.close();
  });
});

describe('the requestState of a suspended call of a 2026-07-28 client', () => {
  let listening: Listening;
  let ada: Client;
  const manual = {
    ...ERAS['2026-07-28'],
    capabilities: { elicitation: {} },
    inputRequired: { autoFulfill: false },
  };
  beforeEach(async () => {
    placed.length = 0;
    listening = await listen(registry, { stateKey: 'a secret of at least 32 characters!' });
    ada = await connectClient(listening.url, { options: manual, user: 'ada' });
  });
  afterEach(async () => {
    await ada.close();
    await listening.close();
  });

  async function suspend(client: Client, name = 'place_order') {
    const result: unknown = await client.callTool(
      { name, arguments: { sku: 'a-1' } },
      { allowInputRequired: true },
    );
    const { inputRequests, requestState } = result as {
      inputRequests: Record<string, unknown>;
      requestState: string;
    };
    const [key = ''] = Object.keys(inputRequests);
    return { requestState, inputResponses: { [key]: accept() } };
  }
  const resume = (client: Client, kept: object, name = 'place_order', sku = 'a-1') =>
    client.request({ method: 'tools/call', params: { name, arguments: { sku }, ...kept } });

  test('is enough to continue on another server with the same key', async () => {
    const kept = await suspend(ada);
    const other = await listen(registry, { stateKey: 'a secret of at least 32 characters!' });
    const elsewhere = await connectClient(other.url, { options: manual, user: 'ada' });
    expect(await resume(elsewhere, kept)).toMatchObject({ content: [{ text: 'placed a-1' }] });
    await elsewhere.close();
    await other.close();
  });

  test('executes the call each time it is sent with its answers', async () => {
    const kept = await suspend(ada);
    await resume(ada, kept);
    await resume(ada, kept);
    expect(placed).toEqual(['a-1', 'a-1']);
  });

  test('does not contain the arguments in readable form', async () => {
    const { requestState } = await suspend(ada);
    expect(Buffer.from(requestState, 'base64url').toString('latin1')).not.toContain('a-1');
  });

  test('is refused from another user, for another tool, or if it was changed', async () => {
    const kept = await suspend(ada);
    const bob = await connectClient(listening.url, { options: manual, user: 'bob' });
    await expect(resume(bob, kept)).rejects.toMatchObject({ code: -32602 });
    await expect(resume(ada, kept, 'elsewhere')).rejects.toMatchObject({ code: -32602 });
    for (const state of [`${kept.requestState}x`, `${kept.requestState.slice(0, -4)}AAAA`, '', 'nonsense'])
      await expect(resume(ada, { ...kept, requestState: state })).rejects.toMatchObject({ code: -32602 });
    expect(placed).toEqual([]);
    await bob.close();
  });

  test('is refused with other arguments', async () => {
    const kept = await suspend(ada);
    await expect(resume(ada, kept, 'place_order', 'b-2')).rejects.toMatchObject({ code: -32602 });
    expect(placed).toEqual([]);
  });
});
