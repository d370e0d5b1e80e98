// What telemetry costs: nothing where there is no SDK, beside the same of another checkout in the same run; and with a
// recording SDK, beside the AI SDK's own telemetry. Prints microseconds per turn and per call.
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

const now = await load(root);
const { openTelemetry } = await load(root, 'opentelemetry');
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

/** A model that makes one call and then has its say. */
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

const call = (of, telemetry) => {
  const tools = registry(of, telemetry);
  return () => tools.execute('add', args);
};
const turn = (of, telemetry) => {
  const tools = registry(of, telemetry);
  return () => of.runToolLoop({ provider, model: 'm', tools }, messages);
};

/**
 * Microseconds of each: the second best of rounds in which they take turns. What else a machine does makes work slower and
 * never quicker.
 */
async function measure(workloads, times) {
  const took = new Map(Object.keys(workloads).map((name) => [name, []]));
  for (let round = -3; round < ROUNDS; round += 1)
    for (const [name, work] of Object.entries(workloads)) {
      const since = performance.now();
      for (let time = 0; time < times; time += 1) await work();
      if (round >= 0) took.get(name).push(((performance.now() - since) * 1000) / times);
    }
  return new Map([...took].map(([name, all]) => [name, all.sort((one, other) => one - other)[1]]));
}

function print(title, figures) {
  console.log(`\n${title}`);
  const [base] = figures.values();
  for (const [name, us] of figures)
    console.log(`  ${name.padEnd(44)} ${us.toFixed(2).padStart(9)} µs   ${(us / base).toFixed(2)}`);
}

const given = openTelemetry();
const withoutSdk = (workload) => ({
  ...(before ? { 'the other checkout': workload(before) } : {}),
  'without telemetry': workload(now),
  'openTelemetry(), and no SDK': workload(now, given),
});
print('A call, without an SDK', await measure(withoutSdk(call), 20_000));
print('A turn with a call, without an SDK', await measure(withoutSdk(turn), 1_000));

const drop = { onStart() {}, onEnd() {}, forceFlush: async () => {}, shutdown: async () => {} };
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [drop] }));
metrics.setGlobalMeterProvider(new MeterProvider());

const all = openTelemetry({ content: true });
const withSdk = (workload) => ({
  'without telemetry': workload(now),
  'openTelemetry(), recording': workload(now, given),
  'openTelemetry({ content: true }), recording': workload(now, all),
});
print('A call, with a recording SDK', await measure(withSdk(call), 4_000));
print(
  'A turn with a call, with a recording SDK',
  await measure({ ...withSdk(turn), ...(await aiSdkTurns()) }, 300),
);

/** The same turn with `generateText` of the AI SDK, without its telemetry and with it, as it is by default. */
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
    if (text !== '3') throw new Error(`the AI SDK said ${text}`);
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
