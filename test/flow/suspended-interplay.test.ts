import { describe, expect, test } from '@jest/globals';
import { Type } from 'class-transformer';
import { IsDate, IsString } from 'class-validator';
import {
  type Answer,
  type CallScope,
  type Detector,
  defineTool,
  discoverTools,
  Param,
  resumeToolLoop,
  runToolLoop,
  Tool,
  ToolContext,
  type ToolDefinition,
  type ToolLoopConfig,
  type ToolLoopResult,
  ToolRegistry,
  type ToolResult,
  Toolset,
  withTextTools,
} from 'toolwright';
import { OpenAIProvider } from 'toolwright/openai';
import { ScriptedProvider, type ScriptedReply } from 'toolwright/testing';
import { LoopbackServer } from '../parts/providers/loopback-server.js';
import { historyFaults } from './strict-history.js';

const hello = [{ role: 'user', content: 'Hello' }] as const;
const done: ScriptedReply = { content: 'Done.' };
const amount = { type: 'object', properties: { amount: { type: 'number' } } } as const;

const pay = defineTool({
  name: 'pay',
  description: 'Pay',
  parameters: amount,
  approval: true,
  execute: ({ amount: paid }) => `paid ${paid}`,
});

function configOf(tools: ToolLoopConfig['tools'], ...replies: readonly ScriptedReply[]): ToolLoopConfig {
  return { provider: new ScriptedProvider(replies), model: 'm', tools };
}

function callsOf(...names: readonly string[]): ScriptedReply {
  return { toolCalls: names.map((name, index) => ({ id: `c${index}`, name, arguments: {} })) };
}

/** A value as another process would receive it. */
function wire<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value)) as Value;
}

/** Resumes with the same answer to all pending calls. */
function resume(
  config: ToolLoopConfig,
  { state, pending = [] }: ToolLoopResult,
  { answer = { approved: true }, scope = {} }: { readonly answer?: object; readonly scope?: CallScope } = {},
): Promise<ToolLoopResult> {
  return resumeToolLoop(
    config,
    wire(state),
    pending.map(({ id }) => ({ id, ...answer }) as Answer),
    scope,
  );
}

function contents({ messages }: ToolLoopResult): readonly unknown[] {
  return messages.flatMap((message) => (message.role === 'tool' ? [message.content] : []));
}

describe('decorated methods', () => {
  class Visit {
    @IsString() city!: string;
    @IsDate() @Type(() => Date) at!: Date;
  }

  const ran: unknown[] = [];

  @Toolset()
  class Travel {
    @Tool({ description: 'Where the user is', execution: 'client' })
    locate(@Param('In words') inWords: boolean): string {
      throw new Error(`the body of a client’s tool was run: ${inWords}`);
    }

    @Tool({ description: 'Plan', approval: true })
    async plan(visit: Visit, context: ToolContext) {
      ran.push([visit instanceof Visit, visit.at instanceof Date, visit.at.getTime()]);
      const sure = await context.ask({ message: `${visit.city}?` });
      return `${visit.city}: ${sure}`;
    }

    @Tool({ description: 'Report', approval: true, background: true })
    async report() {
      ran.push('report');
      return 'reported';
    }
  }

  test('with `execution: client` validate the arguments, never run the body, and use the result of the client', async () => {
    const tools = discoverTools({ toolsets: [Travel] });
    const wrong = { toolCalls: [{ id: 'a', name: 'locate', arguments: { inWords: 'perhaps' } }] };
    const right = { toolCalls: [{ id: 'b', name: 'locate', arguments: { inWords: true } }] };
    const config = configOf(tools, wrong, right, done);
    const run = await runToolLoop(config, hello);
    expect(run.toolCalls).toMatchObject([{ id: 'a', status: 'rejected' }]);
    expect(run.pending).toMatchObject([{ kind: 'client', callId: 'b', arguments: { inWords: true } }]);
    const resumed = await resume(config, run, { answer: { result: 'in Oslo' } });
    expect(resumed).toMatchObject({ status: 'completed', content: 'Done.' });
    expect(contents(resumed).at(-1)).toBe('in Oslo');
  });

  test('get the same class instances and dates each time', async () => {
    ran.length = 0;
    const tools = discoverTools({ toolsets: [Travel] });
    const args = { city: 'Oslo', at: '2027-01-01T00:00:00.000Z' };
    const config = configOf(tools, { toolCalls: [{ id: 'a', name: 'plan', arguments: args }] }, done);
    const asked = await runToolLoop(config, hello);
    expect(asked.pending).toMatchObject([{ kind: 'approval', arguments: args }]);
    const questioned = await resume(config, asked);
    expect(questioned.pending).toMatchObject([{ kind: 'question', message: 'Oslo?', arguments: args }]);
    const resumed = await resume(config, questioned, { answer: { value: 'yes' } });
    expect(contents(resumed)).toEqual(['Oslo: yes']);
    const instances = [true, true, Date.parse(args.at)];
    expect(ran).toEqual([instances, instances]);
  });

  test('with background and approval start when approved and complete once', async () => {
    ran.length = 0;
    const completed = Promise.withResolvers<ToolResult>();
    const config: ToolLoopConfig = {
      ...configOf(discoverTools({ toolsets: [Travel] }), callsOf('report'), done),
      onAsyncResult: (_context, result) => completed.resolve(result),
    };
    const run = await runToolLoop(config, hello);
    expect(ran).toEqual([]);
    const resumed = await resume(config, run);
    expect(resumed.toolCalls).toMatchObject([{ status: 'started' }]);
    expect((await completed.promise).forLLM).toBe('reported');
    expect(ran).toEqual(['report']);
  });
});

describe('outside of a run, approvals, clients and questions cannot be bypassed', () => {
  const ran: string[] = [];
  const guarded: readonly ToolDefinition[] = [
    defineTool({ name: 'approved', description: 'A', approval: true, execute: () => ran.push('approved') }),
    defineTool({
      name: 'unsure',
      description: 'U',
      approval: () => {
        throw new Error('no idea');
      },
      execute: () => ran.push('unsure'),
    }),
    defineTool({ name: 'client', description: 'C' }),
    defineTool({
      name: 'asking',
      description: 'Q',
      async execute(_args, context) {
        const value = await context.ask({ message: 'Sure?' }).catch(() => 'swallowed');
        return `asked: ${value}`;
      },
    }),
  ];

  test.each(guarded.map(({ name }) => name))('%s: nothing runs and the result is an error', async (name) => {
    const tools = new ToolRegistry().register(...guarded);
    const results = await Promise.all([
      tools.execute(name, {}),
      tools.executeWithContext(name, {}, { channel: 'x', chatId: 'y' }),
      tools.executeWithContext(name, {}, {}, () => ran.push('completed')),
    ]);
    const { isError, content } = await tools.call({ id: 'c', name, arguments: {} });
    for (const result of results)
      expect(result).toMatchObject({ isError: true, async: false, error: { code: 511 } });
    expect(isError).toBe(true);
    expect(content).toMatch(/cannot be (?:given|answered) here|cannot run here/);
    expect(ran).toEqual([]);
  });
});

describe('a resumed run', () => {
  test('asks policies again, and a refusal overrides the approval', async () => {
    let mayPay = true;
    const config = { ...configOf([pay], callsOf('pay'), done), policy: () => mayPay };
    const run = await runToolLoop(config, hello);
    mayPay = false;
    const resumed = await resume(config, run);
    expect(resumed.toolCalls).toMatchObject([{ status: 'refused' }]);
    expect(contents(resumed)).toEqual([expect.stringContaining('not allowed')]);
  });

  test('disposes the container of a call when it is suspended, and opens a new one after the resume', async () => {
    const happened: string[] = [];
    let opened = 0;
    const container = {
      resolve: <Instance>() => 'outside' as Instance,
      createScope: () => {
        opened += 1;
        const name = `scope ${opened}`;
        return {
          resolve: <Instance>() => name as Instance,
          dispose: () => void happened.push(`${name} disposed`),
        };
      },
    };
    const scoped: ToolDefinition = {
      ...defineTool({
        name: 'scoped',
        description: 'S',
        async execute(_args, context) {
          happened.push(context.resolve<string>('service'));
          return context.ask({ message: 'Sure?' });
        },
      }),
      container,
    };
    const config = configOf([scoped], callsOf('scoped'), done);
    const run = await runToolLoop(config, hello);
    expect(happened).toEqual(['scope 1', 'scope 1 disposed']);
    await resume(config, run, { answer: { value: 'yes' } });
    expect(happened.slice(2)).toEqual(['scope 2', 'scope 2 disposed']);
  });

  test('uses the scope of the resume, also for approval functions and methods', async () => {
    const seen: unknown[] = [];
    const book = defineTool({
      name: 'book',
      description: 'Book',
      approval: (_args, context) => {
        seen.push(context.data.user);
        return false;
      },
      async execute(_args, context) {
        seen.push(context.data.user);
        return context.ask({ message: 'Sure?' });
      },
    });
    const config = configOf([book], callsOf('book'), done);
    const run = await runToolLoop(config, hello, { data: { user: 'u1' } });
    await resume(config, run, { answer: { value: 1 }, scope: { data: { user: 'u2' } } });
    expect(seen).toEqual(['u1', 'u1', 'u2', 'u2']);
  });

  test('ends with the result of an approved `returnDirect` tool, and asks the model about a refused one', async () => {
    const direct = { ...pay, returnDirect: true };
    const config = configOf([direct], callsOf('pay'), done);
    const run = await runToolLoop(config, hello);
    const approved = await resume(configOf([direct]), run);
    expect(approved).toMatchObject({ status: 'completed', content: 'paid undefined', iterations: 1 });
    const refused = await resume(config, run, { answer: { approved: false } });
    expect(refused).toMatchObject({ status: 'completed', content: 'Done.', iterations: 2 });
  });

  test('continues to count requests, and at the limit its calls have run', async () => {
    const config = { ...configOf([pay], callsOf('pay')), maxIterations: 1 };
    const run = await runToolLoop(config, hello);
    const ended = await resume(config, run);
    expect(ended).toMatchObject({ status: 'limit', error: { name: 'ToolLoopLimitReached' } });
    expect(contents(ended)).toEqual(['paid undefined']);
    expect(historyFaults(ended.messages)).toEqual([]);
    const answering: ToolLoopConfig = {
      ...config,
      provider: new ScriptedProvider([done]),
      onLimit: 'answer',
    };
    expect(await resume(answering, run)).toMatchObject({ status: 'limit', content: 'Done.' });
    await expect(resume({ ...config, onLimit: 'throw' }, run)).rejects.toMatchObject({
      name: 'ToolLoopLimitReached',
    });
  });

  test('keeps the results in its history if the provider then fails, and a new run continues from it', async () => {
    let paid = 0;
    const once = { ...pay, execute: () => `paid ${++paid}` };
    const run = await runToolLoop(configOf([once], callsOf('pay')), hello);
    const provider = { chat: () => Promise.reject(new Error('503')) };
    const failed = await resume({ provider, model: 'm', tools: [once] }, run);
    expect(failed).toMatchObject({ status: 'failed', error: { name: 'ProviderFailed' } });
    expect(contents(failed)).toEqual(['paid 1']);
    const again = await runToolLoop(configOf([once], done), failed.messages);
    expect(again).toMatchObject({ status: 'completed', content: 'Done.' });
    expect(historyFaults(again.messages)).toEqual([]);
    expect(paid).toBe(1);
  });

  test('has an answer for every call if it is aborted at any moment', async () => {
    const run = await runToolLoop(configOf([pay], callsOf('pay', 'pay')), hello);
    for (let turns = 0; turns < 20; turns += 1) {
      const stop = new AbortController();
      const config = { ...configOf([{ ...pay, execute: async () => 'paid' }], done), signal: stop.signal };
      const going = resume(config, run);
      for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
      stop.abort();
      const ended = await going;
      expect(['aborted', 'completed']).toContain(ended.status);
      expect(contents(ended)).toHaveLength(2);
      expect(historyFaults(ended.messages)).toEqual([]);
    }
  });

  test('keeps the order of `sequential` tools, and starts background tools only in their turn', async () => {
    const order: string[] = [];
    const completed = Promise.withResolvers<void>();
    const mail = defineTool({
      name: 'mail',
      description: 'Mail',
      sequential: true,
      background: true,
      execute: async () => {
        order.push('mail');
      },
    });
    const config: ToolLoopConfig = {
      ...configOf([mail, pay], callsOf('mail', 'pay', 'mail'), done),
      onAsyncResult: () => {
        if (order.length === 2) completed.resolve();
      },
    };
    const run = await runToolLoop(config, hello);
    expect(run.toolCalls).toMatchObject([{ id: 'c0', status: 'started' }]);
    const resumed = await resume(config, run);
    expect(resumed.toolCalls.map(({ status }) => status)).toEqual(['started', 'success', 'started']);
    await completed.promise;
    expect(order).toEqual(['mail', 'mail']);
  });
});

describe('calls in the text of a reply', () => {
  const request = '{"tool_request":{"name":"pay","arguments":{"amount":5}}}';
  const own: Detector = (text) =>
    text === request ? { toolCalls: [{ name: 'pay', arguments: { amount: 5 } }] } : undefined;

  test.each<[string, Detector]>([
    ['tool_request', 'tool_request'],
    ['scan', 'scan'],
    ['a custom detector', own],
  ])('are suspended and resumed like any others: %s', async (_what, detector) => {
    const config = { ...configOf([pay], { content: request }, done), detector };
    const run = await runToolLoop(config, hello);
    expect(run.pending).toMatchObject([{ kind: 'approval', arguments: { amount: 5 } }]);
    const resumed = await resume(config, run);
    expect(resumed).toMatchObject({ status: 'completed', content: 'Done.' });
    expect(contents(resumed)).toEqual(['paid 5']);
    expect(historyFaults(resumed.messages)).toEqual([]);
  });

  test('are sent as text with their answers with text tools, also after the resume', async () => {
    const text = '<tool_call>\n{"name":"pay","arguments":{"amount":5}}\n</tool_call>';
    const scripted = new ScriptedProvider([{ content: text }, done]);
    const config = { ...configOf([pay]), provider: withTextTools(scripted) };
    const run = await runToolLoop(config, hello);
    expect(run.pending).toMatchObject([{ kind: 'approval', arguments: { amount: 5 } }]);
    const resumed = await resume(config, run);
    expect(resumed).toMatchObject({ status: 'completed', content: 'Done.' });
    const [, , call, answer] = scripted.requests[1]?.messages ?? [];
    expect(call).toMatchObject({ role: 'assistant', content: expect.stringContaining('<tool_call>') });
    expect(answer).toMatchObject({ role: 'user', content: expect.stringContaining('paid 5') });
  });
});

test('a resumed run sends a strict history to a real server', async () => {
  const call = (id: string, name: string, args: string) => ({
    id,
    type: 'function',
    function: { name, arguments: args },
  });
  const calls = [call('call_a', 'pay', '{"amount": 5}'), call('call_b', 'locate', '')];
  const replies = [
    { role: 'assistant', content: null, tool_calls: calls },
    { role: 'assistant', content: 'Done.' },
  ];
  await using server = await LoopbackServer.start((response) => {
    const message = replies[server.requests.length - 1];
    const finish_reason = message?.tool_calls ? 'tool_calls' : 'stop';
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ choices: [{ index: 0, message, finish_reason }] }));
  });
  const provider = new OpenAIProvider({ baseURL: server.baseURL, apiKey: 'test', maxRetries: 0 });
  const locate = defineTool({ name: 'locate', description: 'Where' });
  const config: ToolLoopConfig = { provider, model: 'm', tools: [pay, locate] };
  const run = await runToolLoop(config, hello);
  const answers = (run.pending ?? []).map(({ id, kind }) =>
    kind === 'client' ? { id, result: 'Oslo' } : { id, approved: true },
  );
  const resumed = await resumeToolLoop(config, wire(run.state), answers.reverse());
  expect(resumed).toMatchObject({ status: 'completed', content: 'Done.' });
  const sent = server.requests[1]?.body.messages as ToolLoopResult['messages'];
  expect(historyFaults([...sent, { role: 'assistant', content: 'Done.' }])).toEqual([]);
  expect(sent.slice(2)).toEqual([
    { role: 'tool', tool_call_id: 'call_a', content: 'paid 5' },
    { role: 'tool', tool_call_id: 'call_b', content: 'Oslo' },
  ]);
});

test('onLog of the scope gets what tools log in a run', async () => {
  const heard: unknown[] = [];
  const log = defineTool({
    name: 'log',
    description: 'Log',
    execute: (_args, context) => void context.logger.info('hello'),
  });
  await runToolLoop(configOf([log], callsOf('log'), done), hello, {
    onLog: ({ level, message }, { callId, tool }) => heard.push([level, message, callId, tool]),
  });
  expect(heard).toEqual([['info', 'hello', 'c0', 'log']]);
});
