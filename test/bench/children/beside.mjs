/* Measures one row with one build: warms up, then replies to each message with the cost per unit. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { jsonSchemas } from '../json-schemas.mjs';
import { bodyOf, workloads } from '../workloads.mjs';

const [, , build, row] = process.argv;
const {
  Conversation,
  defineTool,
  discoverTools,
  Param,
  runToolLoop,
  streamToolLoop,
  Tool,
  ToolRegistry,
  Toolset,
} = await import(pathToFileURL(join(build, 'src', 'index.js')).href);

const WARM_UP_MS = 700;
const ROUND_MS = 8;
const STORED_TURNS = 1_000;
const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
const QUESTION = [{ role: 'user', content: 'Add.' }];

let tools;

const measures = {
  'run-10': () => measureTime(10, () => run(10)),
  'run-200': () => measureTime(200, () => run(200)),
  'run-2000': () => measureTime(2_000, () => run(2_000)),
  wide: () => measureTime(20, () => run(20, { width: 10 })),
  'async-10': () => measureTime(10, () => run(10, { tool: 'add_later' })),
  'async-wide': () => measureTime(20, () => run(20, { width: 10, tool: 'add_later' })),
  streamed: () => measureTime(10, () => streamedRun(10)),
  W1: () => measureTime(1, callsOf(workloads[0])),
  W2: () => measureTime(1, callsOf(workloads[1])),
  W3: () => measureTime(1, callsOf(workloads[2])),
  history: () => measureSize(() => run(STORED_TURNS)),
  running: () => sizeWhileRunning,
  state: () => async () => {
    const { state } = await run(STORED_TURNS, { last: 'ask_user' });
    return JSON.stringify(state).length / STORED_TURNS;
  },
  snapshot: () => async () => JSON.stringify(await snapshotOf(STORED_TURNS)).length / STORED_TURNS,
};

const measure = await measures[row]();
process.on('message', async () => process.send(await measure()));
process.send('ready');

/** Returns a registry with a decorated class for the workloads. */
function registry() {
  class WorkloadTools {
    add(a, b) {
      return bodyOf('add')({ a, b });
    }
    async add_later(a, b) {
      return bodyOf('add')({ a, b });
    }
    search(query, mode, limit, tags) {
      return bodyOf('search')({ query, mode, limit, tags });
    }
    create_order(customer, items, labels) {
      return bodyOf('create_order')({ customer, items, labels });
    }
  }
  for (const [name, { properties, required }] of Object.entries({
    ...jsonSchemas,
    add_later: jsonSchemas.add,
  })) {
    for (const [index, [parameter, schema]] of Object.entries(properties).entries())
      Param({ name: parameter, schema, required: required.includes(parameter) })(
        WorkloadTools.prototype,
        name,
        index,
      );
    const method = Object.getOwnPropertyDescriptor(WorkloadTools.prototype, name);
    Tool(`Tool ${name}`)(WorkloadTools.prototype, name, method);
  }
  Toolset()(WorkloadTools);
  const question = { name: 'ask_user', description: 'Asks.', parameters: { type: 'object', properties: {} } };
  return new ToolRegistry().register(...discoverTools({ toolsets: [WorkloadTools] }), defineTool(question));
}

/** A model that calls a tool in each turn with new arguments, then the tool `last` if it is set, and then replies. */
function modelOf(turns, { tool = 'add', width = 1, last, onRequest } = {}) {
  let requests = 0;
  const reply = () => {
    requests += 1;
    onRequest?.(requests);
    const toolCalls = callsOfTurn(requests, { turns, tool, width, last });
    return toolCalls.length > 0
      ? { content: '', toolCalls, finishReason: 'tool_calls', usage }
      : { content: 'Done.', toolCalls, finishReason: 'stop', usage };
  };
  return {
    chat: async () => reply(),
    async *stream() {
      for (const text of ['I', ' will', ' add', ' them', '.']) yield { type: 'text-delta', text };
      yield { type: 'response', response: reply() };
    },
  };
}

function callsOfTurn(turn, { turns, tool, width, last }) {
  if (turn > turns)
    return last !== undefined && turn === turns + 1 ? [{ id: 'call_last', name: last, arguments: '{}' }] : [];
  return Array.from({ length: width }, (_, index) => ({
    id: `call_${turn}_${index}`,
    name: tool,
    arguments: JSON.stringify({ a: 71_000_000, b: turn * 100 + index }),
  }));
}

function configOf(turns, options) {
  tools ??= registry();
  return { provider: modelOf(turns, options), model: 'scripted', tools, maxIterations: turns + 2 };
}

async function run(turns, options) {
  const result = await runToolLoop(configOf(turns, options), QUESTION);
  const { status, toolCalls, error } = result;
  const expected = options?.last === undefined ? 'completed' : 'suspended';
  if (status !== expected || toolCalls.length !== turns * (options?.width ?? 1))
    throw error ?? new Error(`the run ended as ${status} after ${toolCalls.length} calls`);
  return result;
}

async function streamedRun(turns) {
  let text = '';
  for await (const event of streamToolLoop(configOf(turns), QUESTION))
    if (event.type === 'text-delta') text += event.text;
  if (text.length < turns * 10) throw new Error(`the run streamed ${JSON.stringify(text)}`);
}

async function snapshotOf(turns) {
  const conversation = new Conversation({ ...configOf(turns), maxIterations: turns + 2 });
  await conversation.prompt('Add.');
  return conversation.toJSON();
}

function callsOf({ tool, inputs }) {
  tools ??= registry();
  let index = 0;
  return async () => {
    const result = await tools.execute(tool, inputs[index++ % inputs.length]);
    if (result.isError) throw new Error(result.forLLM);
  };
}

/** Returns a function that measures a round and returns its CPU time in microseconds per unit. */
async function measureTime(units, once) {
  const startedAt = performance.now();
  let count = 0;
  while (performance.now() - startedAt < WARM_UP_MS) {
    for (let index = 0; index < 20; index += 1) await once();
    count += 20;
  }
  const batch = Math.max(1, Math.round((count * ROUND_MS) / (performance.now() - startedAt)));
  return async () => {
    const before = process.cpuUsage();
    for (let index = 0; index < batch; index += 1) await once();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / (batch * units);
  };
}

/** Measures the bytes of the heap that each turn of a created value retains. */
async function measureSize(create) {
  const values = [await create()];
  return async () => {
    const before = heap();
    for (let index = 0; index < 10; index += 1) values.push(await create());
    return (heap() - before) / (10 * STORED_TURNS);
  };
}

/** Measures the heap that a run has allocated and not released at its last request, per turn. */
async function sizeWhileRunning() {
  const heaps = [];
  const onRequest = (requests) => {
    if (requests === 1 || requests > STORED_TURNS) heaps.push(heap());
  };
  for (let index = 0; index < 3; index += 1) await run(STORED_TURNS, { onRequest });
  const [first, last] = heaps.slice(-2);
  return (last - first) / STORED_TURNS;
}

function heap() {
  for (let index = 0; index < 4; index += 1) globalThis.gc();
  return process.memoryUsage().heapUsed;
}
