import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { trace } from '@opentelemetry/api';
import { AlwaysOffSampler } from '@opentelemetry/sdk-trace';
import fc from 'fast-check';
import { complete, defineTool, runToolLoop, ToolRegistry } from 'toolwright';
import { maskPatterns } from 'toolwright/hooks';
import { openTelemetry } from 'toolwright/opentelemetry';
import { ScriptedProvider } from 'toolwright/testing';
import { Recording } from './recording.js';

let recording: Recording;
beforeEach(() => {
  recording = new Recording();
});
afterEach(() => recording.end());

const login = defineTool({
  name: 'login',
  description: 'Logs in',
  parameters: {
    type: 'object',
    properties: { user: { type: 'string' }, password: { type: 'string' }, customerNo: { type: 'string' } },
  },
  execute: () => ({ token: 'tok-in-result', note: 'welcome-in-result' }),
});

const args = { user: 'ada-in-arguments', password: 'pw-in-arguments', customerNo: 'no-in-arguments' };
const spoken = [{ role: 'user' as const, content: 'hello-in-message, my key is Bearer abcdefgh12345678' }];

async function logIn(telemetry: ReturnType<typeof openTelemetry>): Promise<string> {
  const tools = new ToolRegistry({ telemetry, redact: ['customerNo'] }).register(login);
  const provider = new ScriptedProvider([
    { toolCalls: [{ id: 'c1', name: 'login', arguments: args }] },
    { content: 'bye-in-message' },
  ]);
  await runToolLoop({ provider, model: 'm', tools }, spoken);
  return JSON.stringify(
    recording.spans.map(({ name, attributes, events, status }) => ({ name, attributes, events, status })),
  );
}

test('openTelemetry records no contents by default', async () => {
  const told = await logIn(openTelemetry());
  expect(told).not.toMatch(/in-arguments|in-result|in-message|abcdefgh12345678/);
  expect(recording.span('execute_tool login').attributes['gen_ai.tool.name']).toBe('login');
});

test('openTelemetry records contents without the secrets that the log redacts', async () => {
  const told = await logIn(openTelemetry({ content: true }));
  expect(told).toMatch(/ada-in-arguments/);
  expect(told).toMatch(/welcome-in-result/);
  expect(told).toMatch(/hello-in-message/);
  expect(told).toMatch(/bye-in-message/);
  expect(told).not.toMatch(/pw-in-arguments|no-in-arguments|tok-in-result|abcdefgh12345678/);
  const { attributes } = recording.span('execute_tool login');
  expect(JSON.parse(String(attributes['gen_ai.tool.call.arguments']))).toEqual({
    user: 'ada-in-arguments',
    password: '[redacted]',
    customerNo: '[redacted]',
  });
});

test('openTelemetry records only the contents that are enabled', async () => {
  const told = await logIn(openTelemetry({ content: { results: true } }));
  expect(told).toMatch(/welcome-in-result/);
  expect(told).not.toMatch(/in-arguments|in-message/);
});

test('openTelemetry records no arguments of a registry with logArguments: false', async () => {
  const telemetry = openTelemetry({ content: true });
  const tools = new ToolRegistry({ telemetry, logArguments: false }).register(login);
  await tools.execute('login', args);
  expect(JSON.stringify(recording.spans.map(({ attributes }) => attributes))).not.toMatch(
    /in-arguments|in-result/,
  );
});

test('contents that hooks hide from models and tools are not recorded', async () => {
  const telemetry = openTelemetry({ content: true });
  const find = defineTool({
    name: 'find',
    description: 'Finds',
    parameters: { type: 'object', properties: { mail: { type: 'string' } } },
    execute: () => 'written by eve@example.org',
  });
  const hooks = [maskPatterns({ in: ['requests', 'results', 'arguments', 'replies'] })];
  const tools = new ToolRegistry({ telemetry, hooks }).register(find);
  const provider = new ScriptedProvider([
    { toolCalls: [{ id: 'c1', name: 'find', arguments: { mail: 'bob@example.org' } }] },
    // Invalid arguments must not be recorded unmasked, either.
    { toolCalls: [{ id: 'c2', name: 'find', arguments: { mail: ['dan@example.org'] } }] },
    { content: 'carol@example.org has written' },
  ]);
  await runToolLoop({ provider, model: 'm', tools }, [{ role: 'user', content: 'I am ada@example.org' }]);
  const told = JSON.stringify(
    recording.spans.map(({ name, attributes, events, status }) => ({ name, attributes, events, status })),
  );
  expect(told).not.toMatch(/(ada|bob|carol|dan|eve)@/);
  expect(told).toMatch(/I am /);
  expect(told).toMatch(/has written/);
});

test('contents of a request that a hook or a budget refuses are not recorded, because it was never sent', async () => {
  const refusing = { name: 'no', beforeRequest: () => ({ refuse: 'not now' }) };
  for (const others of [{ hooks: [refusing] }, { budget: { steps: 0 } }]) {
    const telemetry = openTelemetry({ content: true });
    await runToolLoop({ provider: new ScriptedProvider([]), model: 'm', telemetry, ...others }, spoken);
  }
  expect(recording.names.length).toBe(4);
  expect(JSON.stringify(recording.spans.map(({ attributes }) => attributes))).not.toMatch(/in-message/);
});

test('a failure is recorded as an event, with its message only if contents are enabled', async () => {
  const failing = defineTool({
    ...{ name: 'fail', description: 'Fails', parameters: { type: 'object', properties: {} } },
    execute: () => {
      throw new RangeError('secret-in-result');
    },
  });
  const down = {
    chat: async () => {
      throw Object.assign(new Error('said-in-message'), { status: 503 });
    },
  };
  for (const content of [false, true]) {
    const telemetry = openTelemetry({ content });
    await new ToolRegistry({ telemetry }).register(failing).execute('fail', {});
    await runToolLoop({ provider: down, model: 'm', telemetry, providerRetries: 0 }, spoken);
  }
  const events = recording.spans.flatMap(({ events: told }) =>
    told.map(({ name, attributes }) => ({ name, attributes })),
  );
  const asked = { name: 'gen_ai.client.operation.exception', attributes: { 'exception.type': '503' } };
  expect(events).toEqual([
    { name: 'gen_ai.execute_tool.exception', attributes: { 'exception.type': 'RangeError' } },
    asked,
    {
      name: 'gen_ai.execute_tool.exception',
      attributes: {
        'exception.type': 'RangeError',
        'exception.message': expect.stringContaining('secret-in-result'),
      },
    },
    asked,
  ]);
});

test('an error that a tool throws is recorded with its type only, unless results are enabled', async () => {
  const broken = defineTool({
    name: 'broken',
    description: 'Breaks',
    parameters: { type: 'object', properties: {} },
    execute: () => {
      throw new RangeError('secret-in-error');
    },
  });
  for (const content of [false, true]) {
    const tools = new ToolRegistry({ telemetry: openTelemetry({ content }) }).register(broken);
    await tools.execute('broken', {});
  }
  const [plain, told] = recording.spans;
  expect([plain?.attributes['error.type'], plain?.status.message]).toEqual(['RangeError', undefined]);
  expect([told?.attributes['error.type'], told?.status.message]).toEqual(['RangeError', 'secret-in-error']);
});

test('a call that is not sampled has no attributes, but is measured and propagates its context', async () => {
  await recording.end();
  recording = new Recording({ sampler: new AlwaysOffSampler() });
  let active: string | undefined;
  const look = defineTool({
    name: 'look',
    description: 'Looks',
    parameters: { type: 'object', properties: {} },
    execute: () => {
      active = trace.getActiveSpan()?.spanContext().traceId;
      return 'seen';
    },
  });
  const tools = new ToolRegistry({ telemetry: openTelemetry({ content: true }) }).register(look);
  expect((await tools.execute('look')).forLLM).toBe('seen');
  expect(active).toMatch(/^[\da-f]{32}$/);
  expect(recording.spans).toEqual([]);
  expect((await recording.points()).map(({ name }) => name)).toEqual(['gen_ai.execute_tool.duration']);
});

test('without an SDK nothing is recorded, and existing telemetry records once an SDK is registered', async () => {
  await recording.end();
  const telemetry = openTelemetry();
  expect(telemetry.isOn).toBe(false);
  const tools = new ToolRegistry({ telemetry }).register(login);
  expect((await tools.execute('login', args)).isError).toBe(false);
  recording = new Recording();
  expect(telemetry.isOn).toBe(true);
  await tools.execute('login', args);
  expect(recording.names).toEqual(['execute_tool login']);
});

test('complete records its request', async () => {
  const telemetry = openTelemetry();
  const provider = new ScriptedProvider([{ content: 'hi' }]);
  await complete({ provider, model: 'm', telemetry }, { messages: spoken });
  expect(recording.names).toEqual(['chat m']);
});

test('each of a thousand concurrent calls has one span, whose context is active only in that call', async () => {
  const seen = new Map<string, string>();
  const wait = defineTool({
    name: 'wait',
    description: 'Waits',
    parameters: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
    execute: async ({ id }: { id: string }) => {
      await new Promise((resolve) => setImmediate(resolve));
      seen.set(id, trace.getActiveSpan()?.spanContext().spanId ?? '');
      return id;
    },
  });
  const tools = new ToolRegistry({ telemetry: openTelemetry() }).register(wait);
  const ids = Array.from({ length: 1000 }, (_, index) => `call_${index}`);
  await Promise.all(ids.map((id) => tools.executeWithContext('wait', { id }, { callId: id })));
  const spans = recording.spans.map(
    (span) => [String(span.attributes['gen_ai.tool.call.id']), span.spanContext().spanId] as const,
  );
  expect(new Map(spans)).toEqual(seen);
  expect(spans).toHaveLength(1000);
});

test('recording never throws and never changes a result, whatever the arguments and results are', async () => {
  const echo = defineTool({
    name: 'echo',
    description: 'Echoes',
    parameters: { type: 'object', properties: {}, additionalProperties: true },
    execute: (given: object) => given,
  });
  const plain = new ToolRegistry().register(echo);
  const recorded = new ToolRegistry({ telemetry: openTelemetry({ content: true }) }).register(echo);
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(fc.dictionary(fc.string(), fc.jsonValue()), fc.string(), fc.jsonValue()),
      async (given) => {
        const [one, other] = [await plain.execute('echo', given), await recorded.execute('echo', given)];
        expect(JSON.stringify(other)).toBe(JSON.stringify(one));
      },
    ),
    { numRuns: 60 },
  );
  for (const { attributes } of recording.spans)
    expect(() => JSON.parse(String(attributes['gen_ai.tool.call.result'] ?? '{}'))).not.toThrow();
});
