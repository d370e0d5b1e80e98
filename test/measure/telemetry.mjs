// Measures the cost of telemetry in microseconds per turn and per call: without an SDK, optionally compared with
// another checkout, and with a recording SDK, optionally compared with the telemetry of the AI SDK.
//   npm run measure:telemetry -- [--before <built checkout>] [--ai-sdk <folder with @ai-sdk/otel and ai>]
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { context, metrics, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { TracerProvider } from '@opentelemetry/sdk-trace';

const { values } = parseArgs({ options: { before: { type: 'string' }, 'ai-sdk': { type: 'string' } } });
const root = join(import.meta.dirname, '..', '..');
const load = (folder, entryPoint = '') =>
  import(pathToFileURL(join(folder, 'dist/src', entryPoint, 'index.js')).href);

const current = await load(root);
const { openTelemetry } = await load(root, 'observe/opentelemetry');
const before = values.before && (await load(values.before));

const ROUNDS = 21;
const parameters = {
  type: 'object',
  properties: { a: { type: 'number' }, b: { type: 'number' } },
  required: ['a', 'b'],
};
const args = { a: 1, b: 2 };
const messages = [{ role: 'user', content: 'What is 1 + 2?' }];
const usage = { inputTokens: 5, outputTokens: 2, totalTokens: 7 };

/** A model that makes a call and then replies with text. */
const provider = {
  async chat({ messages: sent }) {
    const isFirst = sent.at(-1).role === 'user';
    const toolCalls = isFirst ? [{ id: 'call_1', name: 'add', arguments: args }] : [];
    return { content: isFirst ? '' : '3', toolCalls, finishReason: isFirst ? 'tool_calls' : 'stop', usage };
  },
};

function registry({ defineTool, ToolRegistry }, telemetry) {
  const options = telemetry === undefined ? {} : { telemetry };
  const add = defineTool({ name: 'add', description: 'Adds', parameters, execute: ({ a, b }) => a + b });
  return new ToolRegistry(options).register(add);
}

const call = (toolwright, telemetry) => {
  const tools = registry(toolwright, telemetry);
  return () => tools.execute('add', args);
};
const turn = (toolwright, telemetry) => {
  const tools = registry(toolwright, telemetry);
  return () => toolwright.runToolLoop({ provider, model: 'm', tools }, messages);
};

/**
 * Returns the microseconds of each workload: the second lowest of all rounds, in which the workloads alternate. Other
 * load on the machine makes work slower and never faster.
 */
async function measure(workloads, times) {
  const results = new Map(Object.keys(workloads).map((name) => [name, []]));
  for (let round = -3; round < ROUNDS; round += 1)
    for (const [name, work] of Object.entries(workloads)) {
      const startedAt = performance.now();
      for (let time = 0; time < times; time += 1) await work();
      if (round >= 0) results.get(name).push(((performance.now() - startedAt) * 1000) / times);
    }
  return new Map([...results].map(([name, durations]) => [name, durations.sort((a, b) => a - b)[1]]));
}

function print(title, figures) {
  console.log(`\n${title}`);
  const [base] = figures.values();
  for (const [name, us] of figures)
    console.log(`  ${name.padEnd(44)} ${us.toFixed(2).padStart(9)} µs   ${(us / base).toFixed(2)}`);
}

const telemetry = openTelemetry();
const withoutSdk = (workload) => ({
  ...(before ? { 'the other checkout': workload(before) } : {}),
  'without telemetry': workload(current),
  'openTelemetry() without an SDK': workload(current, telemetry),
});
print('A call, without an SDK', await measure(withoutSdk(call), 20_000));
print('A turn with a call, without an SDK', await measure(withoutSdk(turn), 1_000));

const drop = { onStart() {}, onEnd() {}, forceFlush: async () => {}, shutdown: async () => {} };
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [drop] }));
metrics.setGlobalMeterProvider(new MeterProvider());

const withContent = openTelemetry({ content: true });
const withSdk = (workload) => ({
  'without telemetry': workload(current),
  'openTelemetry(), recording': workload(current, telemetry),
  'openTelemetry({ content: true }), recording': workload(current, withContent),
});
print('A call, with a recording SDK', await measure(withSdk(call), 4_000));
print(
  'A turn with a call, with a recording SDK',
  await measure({ ...withSdk(turn), ...(await aiSdkTurns()) }, 300),
);

/** The same turn with `generateText` of the AI SDK, without telemetry and with its default options. */
async function aiSdkTurns() {
  const folder = values['ai-sdk'];
  if (folder === undefined) return {};
  const require = createRequire(join(folder, 'package.json'));
  const from = (name) => import(pathToFileURL(require.resolve(name)).href);
  const [
    { generateText, isStepCount, stepCountIs = isStepCount, jsonSchema, tool },
    { OpenTelemetry },
    { MockLanguageModelV4 },
  ] = await Promise.all([from('ai'), from('@ai-sdk/otel'), from('ai/test')]);
  const tokens = {
    inputTokens: { total: 5, noCache: 5, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 2, text: 2, reasoning: 0 },
  };
  const model = new MockLanguageModelV4({
    doGenerate: async ({ prompt }) => {
      const isFirst = prompt.at(-1).role === 'user';
      const content = isFirst
        ? [{ type: 'tool-call', toolCallId: 'call_1', toolName: 'add', input: JSON.stringify(args) }]
        : [{ type: 'text', text: '3' }];
      const finishReason = { unified: isFirst ? 'tool-calls' : 'stop', raw: undefined };
      return { content, finishReason, usage: tokens, warnings: [] };
    },
  });
  const add = tool({
    description: 'Adds',
    inputSchema: jsonSchema(parameters),
    execute: ({ a, b }) => a + b,
  });
  const run = (telemetry) => async () => {
    const { text } = await generateText({
      model,
      tools: { add },
      stopWhen: stepCountIs(5),
      messages,
      telemetry,
    });
    if (text !== '3') throw new Error(`the AI SDK returned '${text}'`);
  };
  return {
    'AI SDK, telemetry off': run({ isEnabled: false }),
    'AI SDK, @ai-sdk/otel, recording': run({ isEnabled: true, integrations: [new OpenTelemetry()] }),
    'AI SDK, @ai-sdk/otel, no inputs or outputs': run({
      isEnabled: true,
      recordInputs: false,
      recordOutputs: false,
      integrations: [new OpenTelemetry()],
    }),
  };
}
