/* One build in a process of its own: warms up for one row, then answers each `go` with what a unit of it takes. */
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
  'run-10': () => timing(10, () => run(10)),
  'run-200': () => timing(200, () => run(200)),
  'run-2000': () => timing(2_000, () => run(2_000)),
  wide: () => timing(20, () => run(20, { width: 10 })),
  'async-10': () => timing(10, () => run(10, { tool: 'add_later' })),
  'async-wide': () => timing(20, () => run(20, { width: 10, tool: 'add_later' })),
  streamed: () => timing(10, () => watchedRun(10)),
  W1: () => timing(1, callsOf(workloads[0])),
  W2: () => timing(1, callsOf(workloads[1])),
  W3: () => timing(1, callsOf(workloads[2])),
  history: () => sizeOf(() => run(STORED_TURNS)),
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

/** A decorated class with the methods of the workloads. */
function registry() {
  class BesideTools {
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
        BesideTools.prototype,
        name,
        index,
      );
    const method = Object.getOwnPropertyDescriptor(BesideTools.prototype, name);
    Tool(`Tool ${name}`)(BesideTools.prototype, name, method);
  }
  Toolset()(BesideTools);
  const question = { name: 'ask_user', description: 'Asks.', parameters: { type: 'object', properties: {} } };
  return new ToolRegistry().register(...discoverTools({ toolsets: [BesideTools] }), defineTool(question));
}

/** A model that calls a tool in so many turns, never with the same arguments, then `last`, and then answers. */
function modelOf(turns, { tool = 'add', width = 1, last, onRequest } = {}) {
  let asked = 0;
  const reply = () => {
    asked += 1;
    onRequest?.(asked);
    const toolCalls = callsOfTurn(asked, { turns, tool, width, last });
    return toolCalls.length > 0
      ? { content: '', toolCalls, finishReason: 'tool_calls', usage }
      : { content: 'That is all.', toolCalls, finishReason: 'stop', usage };
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

async function watchedRun(turns) {
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

/** What a round of so many milliseconds takes of the processor, in microseconds for one of `units`. */
async function timing(units, once) {
  const since = performance.now();
  let count = 0;
  while (performance.now() - since < WARM_UP_MS) {
    for (let index = 0; index < 20; index += 1) await once();
    count += 20;
  }
  const batch = Math.max(1, Math.round((count * ROUND_MS) / (performance.now() - since)));
  return async () => {
    const before = process.cpuUsage();
    for (let index = 0; index < batch; index += 1) await once();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / (batch * units);
  };
}

/** Bytes of the heap that stay for a turn of what `make` makes. */
async function sizeOf(make) {
  const kept = [await make()];
  return async () => {
    const before = heap();
    for (let index = 0; index < 10; index += 1) kept.push(await make());
    return (heap() - before) / (10 * STORED_TURNS);
  };
}

/** The same of all that a run has come to have at its last request. */
async function sizeWhileRunning() {
  const heaps = [];
  const onRequest = (asked) => {
    if (asked === 1 || asked > STORED_TURNS) heaps.push(heap());
  };
  for (let index = 0; index < 3; index += 1) await run(STORED_TURNS, { onRequest });
  const [first, last] = heaps.slice(-2);
  return (last - first) / STORED_TURNS;
}

function heap() {
  for (let index = 0; index < 4; index += 1) globalThis.gc();
  return process.memoryUsage().heapUsed;
}
