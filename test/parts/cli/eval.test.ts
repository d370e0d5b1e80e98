import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { type Answer, completion, json, LoopbackServer } from '../providers/loopback-server.js';
import { runCommand } from './run-command.js';

const fixture = (name: string) => join(import.meta.dirname, 'fixtures', name);
const TOOLS = fixture('eval-tools.ts');

let folder: string;
const { OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL } = process.env;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'toolwright-eval-'));
  for (const name of ['OPENAI_API_KEY', 'OPENAI_BASE_URL', 'OPENAI_MODEL']) delete process.env[name];
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
  for (const [name, value] of Object.entries({ OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL }))
    if (value !== undefined) process.env[name] = value;
});

type Call = readonly [name: string, args?: unknown];

/** The replies to each prompt, in order; the last one repeats. */
type Script = Readonly<Record<string, readonly (readonly Call[])[]>>;

function following(script: Script): Answer {
  const asked = new Map<string, number>();
  return (response, request) => {
    const { content } = (request.body.messages as { content: string }[]).at(-1) ?? { content: '' };
    const turn = asked.get(content) ?? 0;
    asked.set(content, turn + 1);
    const replies = script[content] ?? [[]];
    const calls = replies[Math.min(turn, replies.length - 1)] ?? [];
    const tool_calls = calls.map(([name, args = {}], index) => ({
      ...{ id: `c${index}`, type: 'function' },
      function: { name, arguments: typeof args === 'string' ? args : JSON.stringify(args) },
    }));
    const message = calls.length > 0 ? { content: null, tool_calls } : { content: 'No call.' };
    json(completion(message, { finish_reason: calls.length > 0 ? 'tool_calls' : 'stop' }))(response, request);
  };
}

const write = (cases: readonly unknown[]) =>
  writeFileSync(join(folder, 'cases.jsonl'), cases.map((one) => `${JSON.stringify(one)}\n`).join(''));
const read = (name: string) => JSON.parse(readFileSync(join(folder, name), 'utf8'));
const evaluate = (url: string, ...more: readonly string[]) =>
  runCommand(['eval', TOOLS, 'cases.jsonl', '--url', url, '--model', 'm', ...more], folder);

async function evaluateWith(script: Script, cases: readonly unknown[], ...more: readonly string[]) {
  await using server = await LoopbackServer.start(following(script));
  write(cases);
  const run = await evaluate(server.baseURL, ...more);
  return { ...run, requests: server.requests };
}

/** The reported difference of one case. */
async function verdict(expect: unknown, calls: readonly Call[]): Promise<string> {
  const { out } = await evaluateWith({ ask: [calls] }, [{ prompt: 'ask', expect }]);
  return /FAILED 0\/1 ask\n {4}(.*)/.exec(out)?.[1] ?? 'passed';
}

describe('toolwright eval', () => {
  test('sends each case to a server, and prints a table, the differences and a summary', async () => {
    const script = {
      'Orders of cus_1?': [[['find_orders', { customerId: 'cus_1', limit: '5' }]]],
      'Cancel o1': [[['find_orders', { customerId: 'cus_1' }]]],
    } satisfies Script;
    const { code, out, error, requests } = await evaluateWith(script, [
      {
        prompt: 'Orders of cus_1?',
        expect: { tool: 'find_orders', arguments: { customerId: 'cus_1', limit: 5 } },
      },
      { id: 'cancelling', prompt: 'Cancel o1', expect: { tool: 'cancel_order' } },
      {
        messages: [
          { role: 'system', content: 'Be kind' },
          { role: 'user', content: 'Hi' },
        ],
        expect: { noTool: true },
      },
    ]);
    expect({ code, error }).toEqual({ code: 0, error: '' });
    expect(out.split('\n')).toEqual([
      'expected      passed  failed',
      'find_orders        1       0',
      'cancel_order       0       1',
      '(no tool)          1       0',
      '3 in all           2       1',
      '',
      'FAILED 0/1 cancelling',
      '    expected cancel_order, got find_orders',
      '',
      'No baseline yet: this run becomes the baseline if the model answered every case.',
      '',
    ]);
    expect(requests).toHaveLength(3);
    expect(requests[0]?.body).toMatchObject({
      model: 'm',
      tools: [{ function: { name: 'find_orders' } }, {}],
    });
    expect(read('cases.result.json')).toMatchObject({
      model: 'm',
      share: 2 / 3,
      cases: [
        { id: 'Orders of cus_1?', tool: 'find_orders', runs: 1, passed: 1 },
        { id: 'cancelling', passed: 0, difference: 'expected cancel_order, got find_orders' },
        { id: 'Hi', tool: '(no tool)', passed: 1 },
      ],
    });
    expect(read('cases.baseline.json').cases).toHaveLength(3);
  });

  test.each<[unknown, Call[], string]>([
    [{ noTool: true }, [['cancel_order']], 'expected no call, got cancel_order'],
    [{ tool: 'cancel_order' }, [], 'expected cancel_order, got no such call'],
    [
      { tool: 'cancel_order' },
      [['cancel_order'], ['cancel_order']],
      'expected no other call, got cancel_order',
    ],
    [{ tool: 'cancel_order' }, [['cancel_orders']], 'expected cancel_order, got cancel_orders is not a tool'],
    [{ tool: 'find_orders' }, [['find_orders']], 'find_orders.customerId: is required'],
    [
      { tool: 'find_orders' },
      [['find_orders', '{"customerId":"cus']],
      'find_orders: the arguments are cut off in the middle of a value; send them again, complete',
    ],
    [
      { tool: 'find_orders', arguments: { customerId: 'a' } },
      [['find_orders', '{"customerId":"a",}']],
      'passed',
    ],
    [
      { tool: 'find_orders', arguments: { customerId: 'a' } },
      [['find_orders', { customerId: 'b' }]],
      'find_orders.customerId: expected "a", got "b"',
    ],
    [
      { tool: 'find_orders', arguments: { limit: { $absent: true } } },
      [['find_orders', { customerId: 'b' }]],
      'passed',
    ],
    [
      { tool: 'find_orders', arguments: { limit: { $any: true } } },
      [['find_orders', { customerId: 'b' }]],
      'find_orders.limit: expected {"$any":true}, got nothing',
    ],
    [
      { tool: 'find_orders', arguments: { customerId: { $regex: '^CUS', $flags: 'i' } } },
      [['find_orders', { customerId: 'cus_1' }]],
      'passed',
    ],
    [
      { tool: 'find_orders', arguments: { limit: { $oneOf: [1, { $absent: true }] } } },
      [['find_orders', { customerId: 'b', limit: 2 }]],
      'find_orders.limit: expected {"$oneOf":[1,{"$absent":true}]}, got 2',
    ],
    [
      { tool: 'find_orders', arguments: { filter: { status: 'open' } } },
      [['find_orders', { customerId: 'b', filter: { status: 'open', tags: [] } }]],
      'passed',
    ],
    [
      { tool: 'find_orders', arguments: { filter: { tags: ['a', { $any: true }] } } },
      [['find_orders', { customerId: 'b', filter: { tags: ['a'] } }]],
      'find_orders.filter.tags: expected 2 items, got 1',
    ],
    [
      { tool: 'find_orders', arguments: { filter: { tags: ['a', { $any: true }] } } },
      [['find_orders', { customerId: 'b', filter: { tags: ['b', 'c'] } }]],
      'find_orders.filter.tags[0]: expected "a", got "b"',
    ],
    [
      { tool: 'find_orders', arguments: { constructor: { $any: true } } },
      [['find_orders', { customerId: 'b' }]],
      'find_orders.constructor: expected {"$any":true}, got nothing',
    ],
    [
      { tools: ['cancel_order', 'find_orders'] },
      [['find_orders', { customerId: 'a' }], ['cancel_order']],
      'passed',
    ],
    [
      { tools: ['find_orders', { tool: 'find_orders', arguments: { customerId: 'a' } }] },
      [
        ['find_orders', { customerId: 'a' }],
        ['find_orders', { customerId: 'b' }],
      ],
      'passed',
    ],
    [
      { tools: ['cancel_order', 'find_orders'] },
      [['find_orders', { customerId: 'a' }]],
      'expected cancel_order, got no such call',
    ],
  ])('expecting %j, for the calls %j, reports: %s', async (expected, calls, said) => {
    expect(await verdict(expected, calls)).toBe(said);
  });

  test('exits with 1 if a case got worse than the baseline, which changes only with --accept', async () => {
    const cases = ['a', 'b', 'c'].map((prompt) => ({ prompt, expect: { tool: 'cancel_order' } }));
    const good = [[['cancel_order']]] as const;
    const first = await evaluateWith({ a: good, b: [[]], c: good }, cases);
    expect(first.code).toBe(0);
    const baseline = read('cases.baseline.json');
    const script = { a: [[]], b: good, d: good } satisfies Script;
    const others = [...cases.slice(0, 2), { prompt: 'd', expect: { tool: 'cancel_order' } }];
    const second = await evaluateWith(script, others, '--model', 'n');
    expect(second.code).toBe(1);
    expect(second.out).toContain(
      'Since the baseline (of m): 1 worse, 1 better, 1 new, 1 gone\n  worse: a (1/1, now 0/1)\n  better: b (0/1, now 1/1)\n',
    );
    expect(read('cases.baseline.json')).toEqual(baseline);
    const third = await evaluateWith(script, others, '--accept');
    expect(third.code).toBe(0);
    expect((await evaluateWith(script, others)).out).toContain(
      'Since the baseline: 0 worse, 0 better, 0 new, 0 gone',
    );
  });

  test('passes a case with --runs if more than half of its runs pass', async () => {
    const good = [['cancel_order']] as const;
    const script = { two: [good, [], good], one: [good, [], []] } satisfies Script;
    const cases = ['two', 'one'].map((prompt) => ({ prompt, expect: { tool: 'cancel_order' } }));
    const run = await evaluateWith(script, cases, '--runs', '3', '--concurrency', '1', '--min', '0.6');
    expect(run.requests).toHaveLength(6);
    expect(run.out).toContain('flaky 2/3 two\n    expected cancel_order, got no such call\n');
    expect(run.out).toContain('FAILED 1/3 one\n');
    expect(run).toMatchObject({ code: 1, error: 'toolwright: 50 % passed, less than --min 0.6\n' });
  });

  test('sends at most --concurrency requests at a time', async () => {
    let most = 0;
    let waiting: (() => void)[] = [];
    // Three at a time are answered, after a fourth request would have arrived.
    const answer: Answer = (response, request) => {
      waiting.push(() => json(completion({ content: 'x' }))(response, request));
      most = Math.max(most, waiting.length);
      if (waiting.length !== 3) return;
      setTimeout(() => {
        for (const reply of waiting) reply();
        waiting = [];
      }, 20);
    };
    await using server = await LoopbackServer.start(answer);
    write([{ prompt: 'x', expect: { noTool: true } }]);
    expect((await evaluate(server.baseURL, '--runs', '12', '--concurrency', '3')).code).toBe(0);
    expect(server.requests).toHaveLength(12);
    expect(most).toBe(3);
  });

  test('exits with 1 and stores no baseline if the server fails', async () => {
    await using server = await LoopbackServer.start(json({ error: { message: 'Wrong key' } }, 401));
    write([{ prompt: 'x', expect: { noTool: true } }]);
    const { code, out } = await evaluate(server.baseURL);
    expect(code).toBe(1);
    expect(out).toContain('FAILED 0/1 x\n    no reply: 401 from');
    expect(() => read('cases.baseline.json')).toThrow('ENOENT');
  });

  test('fails a case whose reply was truncated, since its calls would not run', async () => {
    const call = { id: 'c', type: 'function', function: { name: 'cancel_order', arguments: '{}' } };
    const cut = completion({ content: null, tool_calls: [call] }, { finish_reason: 'length' });
    await using server = await LoopbackServer.start(json(cut));
    write([{ prompt: 'x', expect: { tool: 'cancel_order' } }]);
    expect((await evaluate(server.baseURL)).out).toContain('    the reply was cut off (length)\n');
  });

  test('uses the provider that the module exports, with its model, system prompt and options', async () => {
    const customerId = 'scripted You find orders. {"temperature":0}';
    write([{ prompt: 'x', expect: { tool: 'find_orders', arguments: { customerId } } }]);
    const run = await runCommand(
      ['eval', fixture('eval-scripted.ts'), 'cases.jsonl', '--out', 'deep/out.json'],
      folder,
    );
    expect(run).toMatchObject({ code: 0, error: '' });
    expect(read('deep/out.json')).toMatchObject({ model: 'scripted', share: 1 });
  });

  test('uses the tools of a NestJS application and the exports of its file', async () => {
    write([{ prompt: 'x', expect: { tool: 'count_stock' } }]);
    const { out, error } = await runCommand(['eval', fixture('eval-nest.ts'), 'cases.jsonl'], folder);
    expect(error).toBe('');
    expect(out).toContain('expected count_stock, got find_orders is not a tool');
  });

  test('shows its progress on a terminal', async () => {
    write([{ prompt: 'x', expect: { tool: 'find_orders' } }]);
    const { error } = await runCommand(
      ['eval', fixture('eval-scripted.ts'), 'cases.jsonl', '--runs', '2'],
      folder,
      { isTerminal: true },
    );
    expect(error).toBe('\r1 of 2\r2 of 2\n');
  });

  test.each([
    ['{"prompt":"x"', 'a case must be a JSON object on one line'],
    ['{"prompt":"x"}', 'expect is missing'],
    ['{"promt":"x","expect":{"noTool":true}}', 'promt is not an option of a case (did you mean `prompt`?)'],
    ['{"expect":{"noTool":true}}', 'a case needs either a prompt or messages, not both'],
    [
      '{"prompt":"x","messages":[],"expect":{"noTool":true}}',
      'a case needs either a prompt or messages, not both',
    ],
    ['{"messages":[{"role":"tool","content":"x","tool_call_id":"c"}],"expect":{"noTool":true}}', ''],
    ['{"prompt":"x","expect":{}}', 'expect needs exactly one of tool, tools and noTool: true'],
    [
      '{"prompt":"x","expect":{"tool":"find_orders","noTool":true}}',
      'expect needs exactly one of tool, tools and noTool: true',
    ],
    ['{"prompt":"x","expect":{"noTool":true,"arguments":{}}}', 'expect has arguments but no tool'],
    [
      '{"prompt":"x","expect":{"tool":"find_order"}}',
      "there is no tool 'find_order' (did you mean 'find_orders'?)",
    ],
    ['{"prompt":"x","expect":{"tools":[]}}', 'expect.tools is empty'],
    ['{"prompt":"x","expect":{"tools":[{"name":"find_orders"}]}}', 'tool is missing'],
    [
      '{"prompt":"x","expect":{"tool":"find_orders","arguments":{"a":{"$rexeg":"x"}}}}',
      'arguments.a: $rexeg is not an option of a matcher (did you mean `$regex`?)',
    ],
    [
      '{"prompt":"x","expect":{"tool":"find_orders","arguments":{"a":[{"$regex":"("}]}}}',
      "arguments.a.0: $regex is '('",
    ],
    ['{"prompt":"ok","expect":{"noTool":true},"id":"ok"}', "another case has the id 'ok'"],
  ])('the case %s is reported in one line with its line number', async (line, message) => {
    writeFileSync(
      join(folder, 'cases.jsonl'),
      `{"id":"ok","prompt":"ok","expect":{"noTool":true}}\n\n${line}\n`,
    );
    const { code, out, error } = await evaluate('http://127.0.0.1:9/v1');
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(error).toMatch(/^toolwright: cases\.jsonl:3: [^\n]+\n$/);
    expect(error).toContain(message);
  });

  test.each([
    [['cases.jsonl'], 'eval takes a module and a file of cases'],
    [[TOOLS, 'cases.jsonl', '--runs', '0'], "--runs must be a whole number of 1 or more, not '0'"],
    [[TOOLS, 'cases.jsonl', '--min', '90'], "--min must be a number from 0 to 1, not '90'"],
    [[TOOLS, 'nothing.jsonl'], 'there is no file nothing.jsonl'],
    [[TOOLS, 'empty.jsonl'], 'empty.jsonl has no cases'],
    [[TOOLS, 'cases.jsonl'], 'eval needs a model'],
    [[TOOLS, 'cases.jsonl', '--model', 'm'], 'eval needs a provider'],
    [
      [TOOLS, 'cases.jsonl', '--baseline', 'nothing.json'],
      'there is no baseline nothing.json; --accept creates it',
    ],
    [[TOOLS, 'cases.jsonl', '--baseline', 'empty.jsonl'], 'empty.jsonl is not a baseline of toolwright eval'],
  ])('%j is reported in one line', async (args, message) => {
    write([{ prompt: 'x', expect: { noTool: true } }]);
    writeFileSync(join(folder, 'empty.jsonl'), '\n');
    const { code, error } = await runCommand(['eval', ...args], folder);
    expect(code).not.toBe(0);
    expect(error).toContain(message);
    expect(error).toMatch(/^toolwright: [^\n]+\n$/);
  });
});
