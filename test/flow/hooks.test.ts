import { describe, expect, test } from '@jest/globals';
import {
  answerStoredRun,
  type CallRecord,
  defineTool,
  type EndedCall,
  type HookedCall,
  type Hooks,
  InvalidOptionsError,
  type LoopEvent,
  recoverRuns,
  resumeToolLoop,
  runToolLoop,
  streamToolLoop,
  ToolRegistry,
  ToolResult,
} from 'toolwright';
import { SqliteRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';

const USER = [{ role: 'user', content: 'Go' }] as const;
const parameters = {
  type: 'object',
  properties: { to: { type: 'string' }, amount: { type: 'integer' } },
  required: ['to'],
};

function payTool(options: object = {}) {
  const ran: unknown[] = [];
  const pay = defineTool({
    name: 'pay',
    description: 'Pays',
    parameters,
    execute: (args) => {
      ran.push({ ...args });
      return `paid ${(args as { to: string }).to}`;
    },
    ...options,
  });
  return { pay, ran };
}

function calling(...calls: readonly { name: string; arguments: object }[]) {
  const toolCalls = calls.map((call, index) => ({ id: `c${index + 1}`, ...call }));
  return new ScriptedProvider([{ content: '', toolCalls }, { content: 'Done.' }] as never);
}

const PAY = { name: 'pay', arguments: { to: 'ann', amount: 3 } };

async function only(registry: ToolRegistry, args: unknown = PAY.arguments): Promise<CallRecord> {
  const { record } = await registry.invoke({ id: 'c1', name: 'pay', arguments: args });
  return record;
}

describe('hooks', () => {
  test('run in the order of the list, those of the registry before those of the run', async () => {
    const asked: string[] = [];
    const hook = (name: string): Hooks => ({
      name,
      beforeRequest: () => void asked.push(`${name} beforeRequest`),
      afterResponse: () => void asked.push(`${name} afterResponse`),
      beforeCall: () => void asked.push(`${name} beforeCall`),
      beforeRun: () => void asked.push(`${name} beforeRun`),
      afterCall: () => void asked.push(`${name} afterCall`),
    });
    const { pay } = payTool();
    const tools = new ToolRegistry({ hooks: [hook('a'), hook('b')] }).register(pay);
    await runToolLoop({ provider: calling(PAY), model: 'm', tools, hooks: [hook('c')] }, USER);
    const each = (moment: string) => ['a', 'b', 'c'].map((name) => `${name} ${moment}`);
    const request = [...each('beforeRequest'), ...each('afterResponse')];
    const call = [...each('beforeCall'), ...each('beforeRun'), ...each('afterCall')];
    expect(asked).toEqual([...request, ...call, ...request]);
  });

  test('of a registry run for execute, executeWithContext, call, invoke and the calls of its views', async () => {
    const { pay, ran } = payTool();
    const seen: HookedCall[] = [];
    const tools = new ToolRegistry({
      hooks: [
        {
          beforeCall: (call) => {
            seen.push(call);
            return { arguments: { to: 'bob' } };
          },
        },
      ],
    }).register(pay);
    for (const _time of [1, 2, 3]) await tools.execute('pay', { to: 'ann' });
    await tools.executeWithContext('pay', '{"to":"ann"}', { data: { user: 1 } as never });
    await tools.call({ name: 'pay', arguments: { to: 'ann' } });
    await tools.invoke({ id: 'c1', name: 'pay', arguments: { to: 'ann' } });
    await tools.view({ allow: ['pay'] }).execute('pay', { to: 'ann' });
    expect(ran).toEqual(Array(7).fill({ to: 'bob' }));
    expect(seen.map(({ arguments: args }) => args)).toEqual(Array(7).fill({ to: 'ann' }));
    expect(seen[3]?.scope.data).toEqual({ user: 1 });
    expect(seen[0]).toMatchObject({ callId: 'call_1', name: 'pay', attempt: 1, isRepeated: false });
  });

  test('with invalid options are rejected, all together', () => {
    const create = (hooks: unknown) => () => new ToolRegistry({ hooks } as never);
    expect(create([{ beforecall: () => {} }, { name: 'x' }, { afterCall: 3 }])).toThrow(InvalidOptionsError);
    try {
      create([{ beforecall: () => {}, beforeRun: () => {} }, { name: 'x' }, { afterCall: 3 }])();
    } catch (error) {
      const { faults } = error as InvalidOptionsError;
      expect(faults.map((fault) => (fault as { option?: string }).option)).toEqual([
        'hooks[0]',
        'hooks[1]',
        'hooks[2]',
      ]);
    }
    expect(create(undefined)).toThrow(/undefined/);
    expect(create({ beforeCall: () => {} })).toThrow(InvalidOptionsError);
  });
});

describe('beforeCall', () => {
  test('rewrites arguments before validation, and the record has the raw and the used arguments', async () => {
    const { pay, ran } = payTool();
    const hooks: Hooks[] = [
      { name: 'tenant', beforeCall: ({ arguments: args }) => ({ arguments: { ...args, amount: '7' } }) },
      { name: 'seen', beforeCall: ({ arguments: args }) => ({ note: { amount: args?.amount } }) },
    ];
    const record = await only(new ToolRegistry({ hooks }).register(pay));
    // Coerced by the validation, which runs after the hooks.
    expect(ran).toEqual([{ to: 'ann', amount: 7 }]);
    expect(record.rawArguments).toEqual({ to: 'ann', amount: 3 });
    expect(record.arguments).toEqual({ to: 'ann', amount: 7 });
    expect(record.hooks).toEqual([
      { hook: 'tenant', did: 'rewrote', in: 'beforeCall' },
      { hook: 'seen', did: 'noted', in: 'beforeCall', note: { amount: '7' } },
    ]);
  });

  test('cannot bypass the validation', async () => {
    const { pay, ran } = payTool();
    const hooks = [{ beforeCall: () => ({ arguments: { amount: 1 } }) }];
    const record = await only(new ToolRegistry({ hooks }).register(pay));
    expect([record.status, ran]).toEqual(['rejected', []]);
    expect(record.rawArguments).toEqual(PAY.arguments);
  });

  test('cannot change anything by mutating its argument', async () => {
    const { pay, ran } = payTool();
    const change = ({ arguments: args }: HookedCall) => void Object.assign(args as object, { to: 'eve' });
    const tools = new ToolRegistry({ hooks: [{ beforeCall: change, beforeRun: change, afterCall: change }] });
    const provider = calling(PAY);
    const run = await runToolLoop({ provider, model: 'm', tools: tools.register(pay) }, USER);
    expect(ran).toEqual([PAY.arguments]);
    expect(run.toolCalls[0]?.rawArguments).toEqual(PAY.arguments);
    expect(JSON.stringify(run.messages)).not.toContain('eve');
  });

  test('refuses a call before validation: the model receives the reason, and nothing runs', async () => {
    const { pay, ran } = payTool();
    const hooks = [{ beforeCall: () => ({ refuse: 'it is a holiday' }) }];
    const record = await only(new ToolRegistry({ hooks }).register(pay), { wrong: 1 });
    expect([record.status, record.result.forLLM, ran]).toEqual([
      'refused',
      "The tool 'pay' was refused: it is a holiday",
      [],
    ]);
    expect(record.result.error).toMatchObject({ code: 512 });
  });

  test('rewrites the arguments shown for approval, and cannot change them afterwards', async () => {
    const { pay, ran } = payTool({ approval: true });
    let asked = 0;
    const seen: (readonly [boolean, unknown])[] = [];
    const hooks: Hooks[] = [
      {
        beforeCall: ({ arguments: args, isRepeated }) => {
          seen.push([isRepeated, args?.amount]);
          asked += 1;
          return { arguments: { ...args, amount: 100 * asked } };
        },
      },
    ];
    const tools = new ToolRegistry({ hooks }).register(pay);
    const config = { provider: calling(PAY), model: 'm', tools };
    const first = await runToolLoop(config, USER);
    expect(first.pending?.[0]?.arguments).toEqual({ to: 'ann', amount: 100 });
    const id = first.pending?.[0]?.id as string;
    const state = JSON.parse(JSON.stringify(first.state));
    const last = await resumeToolLoop(config, state, [{ id, approved: true }]);
    expect(last.status).toBe('completed');
    expect(ran).toEqual([{ to: 'ann', amount: 100 }]);
    expect(seen).toEqual([
      [false, 3],
      [true, 100],
    ]);
    expect(last.toolCalls[0]).toMatchObject({ rawArguments: PAY.arguments, arguments: { amount: 100 } });
  });

  test.each<[string, Hooks]>([
    ['only reads', { beforeCall() {} }],
    [
      'rewrites them',
      { beforeCall: ({ arguments: { to, ...args } = {} }) => ({ arguments: { ...args, to: `${to}!` } }) },
    ],
  ])('keeps the repairs and removed arguments of a call that waited, if it %s', async (_what, hook) => {
    const { pay } = payTool();
    const provider = () => {
      const toolCalls = [{ id: 'c1', name: 'pay', arguments: '{"to":"ann","amount":"3","currency":"EUR",}' }];
      return new ScriptedProvider([{ toolCalls }, { content: 'Done.' }] as never);
    };
    const told = async (approval: boolean) => {
      const config = { provider: provider(), model: 'm', tools: [{ ...pay, approval }], hooks: [hook] };
      let run = await runToolLoop(config, USER);
      const answers = (run.pending ?? []).map(({ id }) => ({ id, approved: true }));
      if (approval) run = await resumeToolLoop(config, run.state, answers);
      const { repairs, removed, rawArguments, arguments: args } = run.toolCalls[0] as CallRecord;
      return { repairs, removed, rawArguments, args, content: run.messages[2]?.content };
    };
    const direct = await told(false);
    expect(direct).toMatchObject({
      repairs: ['repaired the JSON', 'coerced amount'],
      removed: ['currency'],
      content: expect.stringContaining('Ignored: currency is not an argument of pay.'),
    });
    expect(await told(true)).toEqual(direct);
  });

  test('does not change arguments that were edited in an approval', async () => {
    const { pay, ran } = payTool({ approval: true });
    const hooks: Hooks[] = [
      { beforeCall: ({ arguments: args }) => ({ arguments: { ...args, amount: 100 } }) },
    ];
    const config = { provider: calling(PAY), model: 'm', tools: new ToolRegistry({ hooks }).register(pay) };
    const first = await runToolLoop(config, USER);
    const answer = { id: first.pending?.[0]?.id as string, approved: true, arguments: { to: 'bob' } };
    const last = await resumeToolLoop(config, first.state, [answer]);
    expect([last.status, ran]).toEqual(['completed', [{ to: 'bob' }]]);
    expect(last.toolCalls[0]).toMatchObject({
      rawArguments: PAY.arguments,
      edited: { original: { to: 'ann', amount: 100 } },
    });
  });

  test('receives edited arguments when recoverRuns continues the run, and does not change them', async () => {
    const { pay, ran } = payTool({ approval: true });
    const store = new SqliteRunStore({ path: ':memory:' });
    const seen: unknown[] = [];
    const hooks: Hooks[] = [
      { beforeCall: ({ arguments: args }) => ({ arguments: { ...args, amount: 100 } }) },
      {
        name: 'audit',
        beforeCall: ({ isRepeated, arguments: args }) => void seen.push([isRepeated, args]),
        afterCall: ({ arguments: args }) => void seen.push(args),
      },
    ];
    const tools = new ToolRegistry({ hooks }).register(pay);
    const config = { provider: calling(PAY), model: 'm', tools, store, checkpoint: 'step' } as const;
    const first = await runToolLoop({ ...config, runId: 'r1' }, USER);
    const edited = { to: 'bob', amount: 7 };
    const answer = { id: first.pending?.[0]?.id as string, approved: true, arguments: edited };
    await answerStoredRun({ store, runId: 'r1' }, [answer], { tools });
    const [recovered] = await recoverRuns({ store, config });
    expect(recovered).toMatchObject({ result: { status: 'completed' } });
    expect(ran).toEqual([edited]);
    expect(seen).toEqual([[false, { to: 'ann', amount: 100 }], [true, edited], edited]);
    store.close();
  });

  test('refuses a call of the client, which `beforeRun` does not see', async () => {
    const moments: string[] = [];
    const beforeRun = () => void moments.push('beforeRun');
    const tools = [defineTool({ name: 'locate', description: 'Locates' })];
    const config = () => ({ provider: calling({ name: 'locate', arguments: {} }), model: 'm', tools });
    const asked = await runToolLoop({ ...config(), hooks: [{ beforeRun }] }, USER);
    expect([asked.pending?.[0]?.kind, moments]).toEqual(['client', []]);
    const hooks = [{ beforeCall: () => ({ refuse: 'not today' }) }];
    const { pending, toolCalls } = await runToolLoop({ ...config(), hooks }, USER);
    expect([pending, toolCalls[0]?.status]).toEqual([undefined, 'refused']);
  });

  test('may still refuse a call when it is resumed', async () => {
    const { pay, ran } = payTool({ approval: true });
    const hooks: Hooks[] = [
      { beforeCall: ({ isRepeated }) => (isRepeated ? { refuse: 'too late' } : undefined) },
    ];
    const config = { provider: calling(PAY), model: 'm', tools: new ToolRegistry({ hooks }).register(pay) };
    const first = await runToolLoop(config, USER);
    const id = first.pending?.[0]?.id as string;
    const last = await resumeToolLoop(config, first.state, [{ id, approved: true }]);
    expect([last.toolCalls[0]?.status, ran]).toEqual(['refused', []]);
  });

  test('that throws refuses the call, and the model does not receive the error', async () => {
    const { pay, ran } = payTool();
    const logged: string[] = [];
    const logger = { debug() {}, info() {}, warn() {}, error: (text: string) => void logged.push(text) };
    const fail = () => {
      throw new Error('db password is hunter2');
    };
    for (const moment of ['beforeCall', 'beforeRun'] as const) {
      const tools = new ToolRegistry({ hooks: [{ name: 'acl', [moment]: fail }], logger }).register(pay);
      const record = await only(tools);
      expect([record.status, record.result.forLLM]).toEqual([
        'refused',
        "The tool 'pay' was refused: the hook 'acl' failed",
      ]);
      expect(record.hooks).toEqual([{ hook: 'acl', did: 'failed', in: moment }]);
    }
    expect(ran).toEqual([]);
    expect(logged).toEqual(
      expect.arrayContaining([expect.stringMatching(/^The hook 'acl' failed in beforeCall: /)]),
    );
  });

  test('that returns an invalid value or exceeds the timeout refuses the call', async () => {
    const { pay, ran } = payTool();
    const odd: Hooks[] = [
      { beforeCall: () => ({ argumnets: {} }) as never },
      { beforeCall: () => ({ arguments: 'to=ann' }) as never },
      { beforeCall: () => ({ refuse: true }) as never },
      { beforeCall: () => 'yes' as never },
      { beforeCall: () => new Promise(() => {}) },
    ];
    for (const hook of odd) {
      const record = await only(new ToolRegistry({ hooks: [hook], toolTimeoutMs: 20 }).register(pay));
      expect(record.status).toBe('refused');
    }
    expect(ran).toEqual([]);
  });
});

describe('beforeRun', () => {
  test('returns a result instead of the tool, after the policy, and receives the validated arguments', async () => {
    const { pay, ran } = payTool();
    let shown: unknown;
    const hooks: Hooks[] = [
      {
        name: 'mock',
        beforeRun: ({ arguments: args }) => {
          shown = args;
          return { result: 'as if paid' };
        },
      },
    ];
    const allowed = new ToolRegistry({ hooks }).register(pay);
    const record = await only(allowed, '{"to":"ann","amount":"3"}');
    expect([record.status, record.result.forLLM, ran, shown]).toEqual([
      'success',
      'as if paid',
      [],
      { to: 'ann', amount: 3 },
    ]);
    expect(record.hooks).toEqual([{ hook: 'mock', did: 'answered', in: 'beforeRun' }]);
    const denied = new ToolRegistry({ hooks, policy: () => false }).register(pay);
    expect((await only(denied)).status).toBe('refused');
  });
});

describe('afterCall', () => {
  test('rewrites results in order, and receives the original result', async () => {
    const { pay } = payTool();
    const seen: EndedCall[] = [];
    const hooks: Hooks[] = [
      { name: 'a', afterCall: ({ result }) => ({ result: `${result.forLLM}!` }) },
      {
        name: 'b',
        afterCall: (end) => {
          seen.push(end);
          return { result: new ToolResult({ forLLM: `<${end.result.forLLM}>` }) };
        },
      },
    ];
    const record = await only(new ToolRegistry({ hooks }).register(pay));
    expect(record.result.forLLM).toBe('<paid ann!>');
    expect(seen[0]).toMatchObject({ status: 'success', isCompletion: false, isAnswered: false });
    expect(seen[0]?.original.forLLM).toBe('paid ann');
  });

  test('runs for every outcome of a call', async () => {
    const ended: string[] = [];
    const failing = defineTool({
      name: 'fail',
      description: 'Fails',
      parameters: {},
      execute: () => {
        throw new Error('no');
      },
    });
    const { pay } = payTool({ approval: true });
    const hooks: Hooks[] = [{ afterCall: ({ name, status }) => void ended.push(`${name} ${status}`) }];
    const tools = new ToolRegistry({ hooks }).register(pay, failing);
    await tools.execute('nothing');
    await tools.execute('pay', { amount: 1 });
    await tools.execute('pay', '[broken');
    await tools.execute('pay', { to: 'ann' });
    await tools.execute('fail');
    expect(ended).toEqual(['nothing rejected', 'pay rejected', 'pay rejected', 'pay refused', 'fail error']);
  });

  test('does not run for a suspended call, and runs once when it has ended', async () => {
    const { pay } = payTool({ approval: true });
    const asked: string[] = [];
    const hooks: Hooks[] = [{ afterCall: ({ name }) => void asked.push(name) }];
    const config = { provider: calling(PAY), model: 'm', tools: new ToolRegistry({ hooks }).register(pay) };
    const first = await runToolLoop(config, USER);
    expect(asked).toEqual([]);
    await resumeToolLoop(config, first.state, [{ id: first.pending?.[0]?.id as string, approved: true }]);
    expect(asked).toEqual(['pay']);
  });

  test('that throws or refuses withholds the result, and the model is informed that the tool ran', async () => {
    const { pay, ran } = payTool();
    const fail = () => {
      throw new Error('boom');
    };
    for (const [afterCall, reason] of [
      [fail, "the hook 'dlp' failed"],
      [() => ({ refuse: 'it has secrets' }), 'it has secrets'],
    ] as const) {
      const record = await only(new ToolRegistry({ hooks: [{ name: 'dlp', afterCall }] }).register(pay));
      expect([record.status, record.result.isError, record.result.forLLM]).toEqual([
        'error',
        true,
        `The tool 'pay' ran, but its result is withheld: ${reason}.`,
      ]);
      expect(record.result.error).toMatchObject({ code: 537 });
      expect(JSON.stringify(record)).not.toContain('paid');
    }
    expect(ran).toHaveLength(2);
  });

  test('runs for completions of background work, before the listener', async () => {
    const slow = defineTool({
      name: 'slow',
      description: 'Slow',
      parameters: {},
      execute: (_args, context) => context.background(async () => 'secret result', 'Started'),
    });
    const ended: unknown[] = [];
    const hooks: Hooks[] = [
      {
        afterCall: async ({ isCompletion, status, result }) => {
          ended.push([isCompletion, status]);
          return { result: result.forLLM.replace('secret', 'masked') };
        },
      },
    ];
    const tools = new ToolRegistry({ hooks }).register(slow);
    const completed = Promise.withResolvers<string>();
    const ack = await tools.executeWithContext('slow', {}, {}, (_context, { forLLM }) =>
      completed.resolve(forLLM),
    );
    expect([ack.forLLM, ack.async]).toEqual(['Started', true]);
    expect(await completed.promise).toBe('masked result');
    expect(ended).toEqual([
      [false, 'started'],
      [true, 'success'],
    ]);
  });
});

describe('onError', () => {
  test('receives the error that a tool throws, and may return a result instead', async () => {
    const boom = new Error('boom');
    const { pay } = payTool({
      execute: () => {
        throw boom;
      },
    });
    const errors: unknown[] = [];
    const hooks: Hooks[] = [
      {
        onError: (failure) => {
          if (failure.of !== 'call') return undefined;
          errors.push((failure.error as Error).cause, failure.call.status);
          return { result: 'The shop is closed.' };
        },
      },
    ];
    const record = await only(new ToolRegistry({ hooks }).register(pay));
    expect([record.status, record.result.forLLM]).toEqual(['success', 'The shop is closed.']);
    expect(errors).toEqual([boom, 'error']);
  });

  test('receives the error of each failed request, and may return a reply; if it throws, nothing changes', async () => {
    const provider = {
      chat: async () => {
        throw new Error('down');
      },
    };
    const heard: string[] = [];
    const throwing: Hooks = {
      onError: ({ error }) => {
        heard.push((error as Error).message);
        throw new Error('me too');
      },
    };
    const failed = await runToolLoop({ provider, model: 'm', hooks: [throwing] }, USER);
    expect([failed.status, failed.error?.message, heard]).toEqual([
      'failed',
      'LLM call failed: down',
      ['LLM call failed: down'],
    ]);
    const helping: Hooks = {
      onError: () => ({ response: { content: 'Sorry.', toolCalls: [], finishReason: 'stop' } }),
    };
    const run = await runToolLoop({ provider, model: 'm', hooks: [helping] }, USER);
    expect([run.status, run.content]).toEqual(['completed', 'Sorry.']);
  });
});

describe('beforeRequest', () => {
  test('rewrites the request, and leaves the history unchanged', async () => {
    const provider = calling(PAY);
    const { pay } = payTool();
    const steps: number[] = [];
    const hooks: Hooks[] = [
      {
        beforeRequest: (request, { step }) => {
          steps.push(step);
          return { request: { ...request, model: 'other', messages: request.messages.map(shout) } };
        },
      },
    ];
    const shout = (message: object) => ({ ...message, content: 'MASKED' }) as never;
    const run = await runToolLoop({ provider, model: 'm', tools: [pay], hooks }, USER);
    expect(provider.requests.map(({ model }) => model)).toEqual(['other', 'other']);
    expect(provider.requests[1]?.messages.every(({ content }) => content === 'MASKED')).toBe(true);
    expect(run.messages[0]).toEqual(USER[0]);
    expect(provider.requests[0]?.metadata?.step).toBe(1);
    expect(steps).toEqual([1, 2]);
  });

  test('that refuses or throws ends the run as failed, with a valid history and no fallback', async () => {
    const fallback = new ScriptedProvider([{ content: 'never' }]);
    for (const [beforeRequest, told] of [
      [() => ({ refuse: 'not after hours' }), 'The request was not sent: not after hours'],
      [
        () => {
          throw new Error('boom');
        },
        "The request was not sent: the hook 'gate' failed: boom",
      ],
    ] as const) {
      const provider = new ScriptedProvider([{ content: 'never' }]);
      const run = await runToolLoop(
        { provider, model: 'm', fallback: [fallback], hooks: [{ name: 'gate', beforeRequest }] },
        USER,
      );
      expect([run.status, run.error?.message, run.messages]).toEqual(['failed', told, [...USER]]);
      expect(run.error).toMatchObject({ code: 536 });
      expect([provider.requests, fallback.requests]).toEqual([[], []]);
    }
  });

  test('that removes all tools also removes the tool options', async () => {
    const provider = new ScriptedProvider([{ content: 'Done.' }]);
    const { pay } = payTool();
    const hooks: Hooks[] = [{ beforeRequest: (request) => ({ request: { ...request, tools: [] } }) }];
    await runToolLoop({ provider, model: 'm', tools: [pay], toolChoice: 'auto', hooks }, USER);
    expect(Object.keys(provider.requests[0] ?? {})).not.toEqual(expect.arrayContaining(['tools']));
    expect(Object.keys(provider.requests[0] ?? {})).not.toEqual(expect.arrayContaining(['toolChoice']));
  });
});

describe('afterResponse', () => {
  test('rewrites the reply: its calls run and its text is used as the hook returns them', async () => {
    const provider = calling(PAY);
    const { pay, ran } = payTool();
    const hooks: Hooks[] = [
      {
        name: 'moderate',
        afterResponse: (response) => ({
          response: {
            ...response,
            content: response.content.replace('Done', 'Ready'),
            toolCalls: response.toolCalls.map((call) => ({ ...call, arguments: { to: 'bob' } })),
          },
        }),
      },
    ];
    const run = await runToolLoop({ provider, model: 'm', tools: [pay], hooks }, USER);
    expect([run.content, ran]).toEqual(['Ready.', [{ to: 'bob' }]]);
    expect(run.messages.at(-1)?.content).toBe('Ready.');
  });

  test('runs before text is streamed, unless it only reads', async () => {
    const provider = () => ({
      chat: async () => ({ content: 'secret', toolCalls: [], finishReason: 'stop' as const }),
      async *stream() {
        yield { type: 'text-delta' as const, text: 'sec' };
        yield { type: 'text-delta' as const, text: 'ret' };
        const response = { content: 'secret', toolCalls: [], finishReason: 'stop' as const };
        yield { type: 'response' as const, response };
      },
    });
    const textOf = async (hooks: Hooks[]) => {
      const events: LoopEvent[] = [];
      for await (const event of streamToolLoop({ provider: provider(), model: 'm', hooks }, USER))
        events.push(event);
      return events;
    };
    const mask: Hooks = {
      name: 'mask',
      afterResponse: (response) => ({ response: { ...response, content: '***' }, note: 1 }),
    };
    const masked = await textOf([mask]);
    expect(masked.flatMap((event) => (event.type === 'text-delta' ? [event.text] : []))).toEqual(['***']);
    expect(masked.find(({ type }) => type === 'reply-end')).toMatchObject({
      hooks: [
        { hook: 'mask', did: 'noted', in: 'afterResponse', note: 1 },
        { hook: 'mask', did: 'rewrote', in: 'afterResponse' },
      ],
    });
    const read = await textOf([{ afterResponse: () => undefined, onlyReads: true }]);
    expect(read.flatMap((event) => (event.type === 'text-delta' ? [event.text] : []))).toEqual([
      'sec',
      'ret',
    ]);
  });

  test('that refuses ends the run as failed, and the usage is counted', async () => {
    const usage = { inputTokens: 5, outputTokens: 2, totalTokens: 7 };
    const provider = new ScriptedProvider([{ content: 'Hi', usage }]);
    const hooks: Hooks[] = [{ name: 'check', afterResponse: () => ({ refuse: 'it is rude' }) }];
    const run = await runToolLoop({ provider, model: 'm', hooks }, USER);
    expect([run.status, run.error?.message]).toEqual([
      'failed',
      'The request was sent, but its reply is not used: it is rude',
    ]);
    expect([run.usage.totalTokens, run.messages]).toEqual([7, [...USER]]);
  });
});
