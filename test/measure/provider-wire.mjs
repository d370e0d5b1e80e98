/*
 * Measures `toolwright/openai` against recorded bodies: each is served over HTTP on loopback, whole or as
 * server-sent events, and what the provider makes of it is compared with what the recording's row expects.
 *
 *   node test/measure/provider-wire.mjs [folder]      (default: TOOLWRIGHT_SUITES; needs `npm run build`)
 *
 * The folder holds `provider-wire.jsonl`, one row per body:
 * `{ file, wire, stream, expected: { calls: [{ id, name, input }], text, finish } }`.
 */
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { basename, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';

const REQUEST = { model: 'recorded', messages: [{ role: 'user', content: 'recorded' }], options: {} };

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
  const chat = rows.filter(({ wire }) => wire === 'openai-chat');
  const { OpenAIProvider } = await import('../../dist/src/providers/openai/index.js');
  const outcomes = [];
  for (const row of chat) outcomes.push(await measure(row, { folder, OpenAIProvider }));
  print(outcomes, rows.length - chat.length);
}

/** One row against the provider; a row that throws is a failed row, not the end of the measurement. */
async function measure(row, { folder, OpenAIProvider }) {
  const server = await serve(readFileSync(join(folder, row.file), 'utf8'), row.stream);
  const outcome = { name: basename(row.file), method: row.stream ? 'stream' : 'chat' };
  try {
    const baseURL = `http://127.0.0.1:${server.address().port}/v1`;
    const provider = new OpenAIProvider({ baseURL, apiKey: 'recorded', maxRetries: 0 });
    const { response, streamed } = await (row.stream ? readStream(provider) : readChat(provider));
    return {
      ...outcome,
      faults: compare(row.expected, response, streamed),
      calls: response.toolCalls.length,
    };
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
  return { response, streamed: response.content };
}

async function readStream(provider) {
  let streamed = '';
  let response;
  for await (const part of provider.stream(REQUEST)) {
    if (part.type === 'text-delta') streamed += part.text;
    else response = part.response;
  }
  return { response, streamed };
}

function compare(expected, response, streamed) {
  const wanted = expected.calls.map(({ id, name, input }) => ({ id, name, arguments: parsed(input) }));
  const checks = [
    ['calls', response.toolCalls, wanted],
    ['text', response.content, expected.text],
    ['streamed text', streamed, expected.text],
    ['finish', response.finishReason, expected.finish.replaceAll('-', '_')],
  ];
  return checks
    .filter(([, got, want]) => !isDeepStrictEqual(got, want))
    .map(([what, got, want]) => `${what}: ${excerpt(got)} instead of ${excerpt(want)}`);
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

function print(outcomes, passedOver) {
  const width = Math.max(...outcomes.map(({ name }) => name.length), 0);
  for (const { name, method, calls, faults } of outcomes) {
    const verdict = faults.length === 0 ? 'right' : 'WRONG';
    console.log(`${name.padEnd(width)}  ${method.padEnd(6)}  ${calls} calls  ${verdict}`);
    for (const fault of faults) console.log(`    ${fault}`);
  }
  const right = outcomes.filter(({ faults }) => faults.length === 0).length;
  console.log(`\n${passedOver} bodies are not Chat Completions, passed over`);
  console.log(`${right} of ${outcomes.length} Chat Completions bodies right`);
  if (right < outcomes.length) process.exitCode = 1;
}
