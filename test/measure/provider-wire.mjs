/*
 * Measures `toolwright/openai` against recorded bodies: serves each over HTTP on loopback, whole or as server-sent
 * events, and compares the response of the provider with the expectation in the row of the recording.
 *
 *   node test/measure/provider-wire.mjs [folder]      (default: TOOLWRIGHT_SUITES; needs `npm run build`)
 *
 * The folder contains `provider-wire.jsonl`, one row per body:
 * `{ file, wire, stream, expected: { calls: [{ id, name, input, providerExecuted? }], text, reasoningChars, finish } }`.
 *
 * Calls of tools that OpenAI defines and may run itself (shell, apply_patch, …) are not counted as calls. Their items
 * must be retained, and the finish reason is then not compared. A tool search that the client executes is a call of the
 * search tool.
 */
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { basename, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';

const WIRES = { 'openai-chat': 'chat', 'openai-responses': 'responses' };
/** Items of a reply that are calls of the application's tools, not of tools that OpenAI defines. */
const CALLS = ['function_call', 'custom_tool_call'];

const SEARCH = { name: 'tool_search', description: 'Searches tools.', parameters: { type: 'object' } };

const REQUEST = {
  model: 'recorded',
  messages: [{ role: 'user', content: 'recorded' }],
  tools: [{ type: 'function', isSearch: true, function: SEARCH }],
  options: {},
};

await main(process.argv[2] ?? process.env.TOOLWRIGHT_SUITES);

async function main(folder) {
  const list = folder && join(folder, 'provider-wire.jsonl');
  if (!list || !existsSync(list)) {
    const reason = folder
      ? `${folder} contains no provider-wire.jsonl`
      : 'no folder was given and TOOLWRIGHT_SUITES is not set';
    console.log(`provider-wire: skipped because ${reason}`);
    return;
  }
  const rows = readFileSync(list, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  const { OpenAIProvider } = await import('../../dist/src/models/openai/index.js');
  const outcomes = [];
  for (const row of rows) outcomes.push(await measure(row, { folder, OpenAIProvider }));
  print(outcomes);
}

/** A row that throws counts as failed and does not end the measurement. */
async function measure(row, { folder, OpenAIProvider }) {
  const api = WIRES[row.wire];
  const outcome = {
    name: basename(row.file),
    method: `${api} ${row.stream ? 'stream' : 'chat'}`,
    wire: row.wire,
  };
  const server = await serve(readFileSync(join(folder, row.file), 'utf8'), row.stream);
  try {
    const baseURL = `http://127.0.0.1:${server.address().port}/v1`;
    const provider = new OpenAIProvider({ api, baseURL, apiKey: 'recorded', maxRetries: 0 });
    const got = await (row.stream ? readStream(provider) : readChat(provider));
    return { ...outcome, faults: compare(row.expected, got), calls: got.response.toolCalls.length };
  } catch (error) {
    return { ...outcome, faults: [`threw: ${error.message}`], calls: 0 };
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

async function serve(body, isStream) {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json' });
    if (!isStream) return response.end(body);
    for (const chunk of body.split('\n').filter(Boolean)) response.write(`data: ${chunk}\n\n`);
    response.end('data: [DONE]\n\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

async function readChat(provider) {
  const response = await provider.chat(REQUEST);
  const { content, reasoning = '', toolCalls } = response;
  const inputs = toolCalls.map(({ arguments: args }) => args);
  return { response, text: content, reasoning, inputs };
}

/** Collects the parts of a stream, which must match its final response. */
async function readStream(provider) {
  const got = { text: '', reasoning: '', inputs: new Map() };
  for await (const part of provider.stream(REQUEST)) {
    if (part.type === 'text-delta') got.text += part.text;
    if (part.type === 'reasoning-delta') got.reasoning += part.text;
    if (part.type === 'call-input-start') got.inputs.set(part.callId, '');
    if (part.type === 'call-input-delta')
      got.inputs.set(part.callId, got.inputs.get(part.callId) + part.text);
    if (part.type === 'response') got.response = part.response;
  }
  return { ...got, inputs: [...got.inputs.values()].map(parsed) };
}

function compare(expected, { response, text, reasoning, inputs }) {
  const items = Object.values(response.providerItems ?? {}).flatMap(({ output = [] }) => output);
  const wanted = expected.calls
    .filter(({ providerExecuted, id }) => !providerExecuted && !items.some((item) => isOpenAITool(item, id)))
    .map(({ id, name, input }) => ({ id, name, arguments: argumentsOf(name, input) }));
  const hosted = expected.calls.length - wanted.length;
  const retained = items.filter(({ type }) => /_call$|approval_request/.test(type) && !CALLS.includes(type));
  const checks = [
    [
      'calls',
      response.toolCalls.map(({ id, name, arguments: args }) => ({ id, name, arguments: args })),
      wanted,
    ],
    ['streamed calls', inputs, wanted.map(({ arguments: args }) => args)],
    ['text', response.content, expected.text],
    ['streamed text', text, expected.text],
    ['reasoning', (response.reasoning ?? '').length, expected.reasoningChars],
    ['streamed reasoning', reasoning, response.reasoning ?? ''],
    ['items of hosted tools retained', retained.length >= hosted, true],
  ];
  const searches = wanted.some(({ name }) => name === SEARCH.name);
  if (searches) checks.push(['finish', response.finishReason, 'tool_calls']);
  else if (wanted.length > 0 || hosted === 0 || expected.calls.every((call) => call.providerExecuted))
    checks.push(['finish', response.finishReason, expected.finish.replaceAll('-', '_')]);
  return checks
    .filter(([, got, want]) => !isDeepStrictEqual(got, want))
    .map(([name, got, want]) => `${name}: ${excerpt(got)} instead of ${excerpt(want)}`);
}

function isOpenAITool({ type, execution, id, call_id }, wanted) {
  const isOurs = CALLS.includes(type) || (type === 'tool_search_call' && execution === 'client');
  return !isOurs && [id, call_id].includes(wanted);
}

/** The recordings wrap the arguments of a search in an object with the id of its call. */
function argumentsOf(name, input) {
  return name === SEARCH.name ? parsed(input).arguments : parsed(input);
}

function parsed(input) {
  try {
    return JSON.parse(input);
  } catch {
    return input;
  }
}

function excerpt(value) {
  return JSON.stringify(value)?.slice(0, 120);
}

function print(outcomes) {
  const width = Math.max(...outcomes.map(({ name }) => name.length), 0);
  for (const { name, method, calls, faults } of outcomes) {
    const verdict = faults.length === 0 ? 'correct' : 'WRONG';
    console.log(`${name.padEnd(width)}  ${method.padEnd(16)}  ${calls} calls  ${verdict}`);
    for (const fault of faults) console.log(`    ${fault}`);
  }
  console.log();
  for (const [wire, api] of Object.entries(WIRES)) {
    const own = outcomes.filter((outcome) => outcome.wire === wire);
    const correct = own.filter(({ faults }) => faults.length === 0).length;
    console.log(`${correct} of ${own.length} bodies of the API '${api}' correct`);
    if (correct < own.length) process.exitCode = 1;
  }
}
