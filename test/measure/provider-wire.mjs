/*
 * Measures `toolwright/openai` against recorded bodies: each is served over HTTP on loopback, whole or as
 * server-sent events, and what the provider makes of it is compared with what the recording's row expects.
 *
 *   node test/measure/provider-wire.mjs [folder]      (default: TOOLWRIGHT_SUITES; needs `npm run build`)
 *
 * The folder holds `provider-wire.jsonl`, one row per body:
 * `{ file, wire, stream, expected: { calls: [{ id, name, input, providerExecuted? }], text, reasoningChars, finish } }`.
 *
 * Calls of tools that OpenAI defines and may run itself (shell, apply_patch, …) are not calls here: their items are
 * kept and go back. They are measured by being there, and the reason to stop is then not compared. A search for tools
 * that is left to the client is a call of the tool that searches.
 */
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { basename, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';

const WIRES = { 'openai-chat': 'chat', 'openai-responses': 'responses' };
/** Items of a reply that are calls for us, and not of a tool that OpenAI defines. */
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
    const where = folder
      ? `${folder} holds no provider-wire.jsonl`
      : 'no folder given and TOOLWRIGHT_SUITES is not set';
    console.log(`provider-wire: passed over, ${where}`);
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

/** One row against the provider; a row that throws is a failed row, not the end of the measurement. */
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

/** What the parts of a stream say, which has to be what its response says. */
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
    .filter(({ providerExecuted, id }) => !providerExecuted && !items.some((item) => isOfOpenAI(item, id)))
    .map(({ id, name, input }) => ({ id, name, arguments: argumentsOf(name, input) }));
  const others = expected.calls.length - wanted.length;
  const kept = items.filter(({ type }) => /_call$|approval_request/.test(type) && !CALLS.includes(type));
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
    ['kept items of hosted tools', kept.length >= others, true],
  ];
  const searches = wanted.some(({ name }) => name === SEARCH.name);
  if (searches) checks.push(['finish', response.finishReason, 'tool_calls']);
  else if (wanted.length > 0 || others === 0 || expected.calls.every((call) => call.providerExecuted))
    checks.push(['finish', response.finishReason, expected.finish.replaceAll('-', '_')]);
  return checks
    .filter(([, got, want]) => !isDeepStrictEqual(got, want))
    .map(([what, got, want]) => `${what}: ${excerpt(got)} instead of ${excerpt(want)}`);
}

function isOfOpenAI({ type, execution, id, call_id }, wanted) {
  const isOurs = CALLS.includes(type) || (type === 'tool_search_call' && execution === 'client');
  return !isOurs && [id, call_id].includes(wanted);
}

/** The recordings have those of a search beside the id of its call. */
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
    const verdict = faults.length === 0 ? 'right' : 'WRONG';
    console.log(`${name.padEnd(width)}  ${method.padEnd(16)}  ${calls} calls  ${verdict}`);
    for (const fault of faults) console.log(`    ${fault}`);
  }
  console.log();
  for (const [wire, api] of Object.entries(WIRES)) {
    const own = outcomes.filter((outcome) => outcome.wire === wire);
    const right = own.filter(({ faults }) => faults.length === 0).length;
    console.log(`${right} of ${own.length} bodies of the API '${api}' right`);
    if (right < own.length) process.exitCode = 1;
  }
}
