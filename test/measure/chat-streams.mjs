// Measures chat streams: time to the first text compared with the provider alone, chunks per second compared with the
// response of the AI SDK, and the memory of open streams. npm run measure:chat [-- <chunks> <streams>]
import { streamText } from 'ai';
import { MemoryRunStore } from '../../dist/src/durable/stores/index.js';
import { Conversations, streamToolLoop } from '../../dist/src/index.js';
import {
  createChatHandler,
  toAgUiResponse,
  toUIMessageResponse,
} from '../../dist/src/surfaces/chat/index.js';
import { collectGarbage, median, rotated } from '../bench/measure.mjs';

const CHUNKS = Number(process.argv[2] ?? 20_000);
const STREAMS = Number(process.argv[3] ?? 1_000);
const ROUNDS = 9;
const TEXT = 'some words ';
const USAGE = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };

/** Streams chunks of text; if `paced`, each in its own macrotask, as chunks from a socket arrive. */
function streamingProvider(chunks, paced) {
  return {
    chat: () => Promise.reject(new Error('only streams')),
    async *stream() {
      for (let index = 0; index < chunks; index += 1) {
        if (paced) await new Promise((next) => setImmediate(next));
        yield { type: 'text-delta', text: TEXT };
      }
      const response = { content: TEXT.repeat(chunks), toolCalls: [], finishReason: 'stop', usage: USAGE };
      yield { type: 'response', response };
    },
  };
}

/** The same stream as a model of the AI SDK. */
function languageModel(chunks, paced) {
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  };
  return {
    specificationVersion: 'v4',
    provider: 'measured',
    modelId: 'measured',
    supportedUrls: {},
    async doStream() {
      const parts = async function* () {
        yield { type: 'stream-start', warnings: [] };
        yield { type: 'text-start', id: 't' };
        for (let index = 0; index < chunks; index += 1) {
          if (paced) await new Promise((next) => setImmediate(next));
          yield { type: 'text-delta', id: 't', delta: TEXT };
        }
        yield { type: 'text-end', id: 't' };
        yield { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage };
      };
      return { stream: ReadableStream.from(parts()) };
    },
  };
}

const MESSAGES = [{ role: 'user', content: 'Reply.' }];
const INPUT = { threadId: 't', runId: 'r', messages: [{ id: 'm', role: 'user', content: 'Reply.' }] };
const run = (chunks, paced) =>
  streamToolLoop({ provider: streamingProvider(chunks, paced), model: 'm' }, MESSAGES);

async function post(handler, chatId) {
  const body = {
    id: chatId,
    messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'Reply.' }] }],
  };
  const headers = { 'content-type': 'application/json' };
  const request = new Request('http://localhost/', { method: 'POST', headers, body: JSON.stringify(body) });
  return handler.fetch(request);
}

let chats = 0;
async function openConversation(chunks, paced) {
  const handler = createChatHandler({
    provider: streamingProvider(chunks, paced),
    model: 'm',
    store: new MemoryRunStore(),
    authenticate: () => 'user',
  });
  chats += 1;
  const response = await post(handler, `c${chats}`);
  return { response, close: () => handler.close() };
}

const openResponse = (response) => ({ response, close: () => {} });

const CANDIDATES = [
  {
    name: 'AI SDK, streamText().toUIMessageStreamResponse()',
    open: (chunks, paced) =>
      openResponse(
        streamText({ model: languageModel(chunks, paced), messages: MESSAGES }).toUIMessageStreamResponse(),
      ),
  },
  { name: 'toUIMessageResponse', open: (...args) => openResponse(toUIMessageResponse(run(...args))) },
  { name: 'toAgUiResponse', open: (...args) => openResponse(toAgUiResponse(run(...args), { input: INPUT })) },
  { name: 'createChatHandler, MemoryRunStore', open: openConversation },
];

/** Reads the whole body in chunks, as a socket does. */
async function drain({ body }) {
  const reader = body.getReader();
  let bytes = 0;
  for (let read = await reader.read(); !read.done; read = await reader.read()) bytes += read.value.byteLength;
  return bytes;
}

/** Prints chunks per second (the median of the rounds) and the ratio to the AI SDK within each round. */
async function printSpeeds(chunks, paced) {
  const rates = new Map(CANDIDATES.map(({ name }) => [name, []]));
  for (let round = 0; round < ROUNDS; round += 1)
    for (const { name, open } of rotated(CANDIDATES, round)) {
      collectGarbage();
      const { response, close } = await open(chunks, paced);
      const startedAt = performance.now();
      await drain(response);
      rates.get(name).push((chunks / (performance.now() - startedAt)) * 1000);
      await close();
    }
  const [{ name: first }] = CANDIDATES;
  for (const [name, ownRates] of rates) {
    const ratio = median(ownRates.map((rate, round) => rate / rates.get(first)[round]));
    console.log(
      `  ${name}: ${Math.round(median(ownRates)).toLocaleString('en')} per second, ratio ${ratio.toFixed(2)}`,
    );
  }
}

/** Prints the time until the first text has arrived, in milliseconds. */
async function printFirstTextTimes() {
  const times = new Map([['the provider alone', []], ...CANDIDATES.map(({ name }) => [name, []])]);
  for (let round = 0; round < 300; round += 1) {
    const startedAt = performance.now();
    for await (const part of streamingProvider(1, true).stream({})) if (part.type === 'text-delta') break;
    times.get('the provider alone').push(performance.now() - startedAt);
    for (const { name, open } of rotated(CANDIDATES, round)) {
      const requestedAt = performance.now();
      const { response, close } = await open(1, true);
      const reader = response.body.getReader();
      for (let text = ''; !text.includes(TEXT); ) text += Buffer.from((await reader.read()).value);
      times.get(name).push(performance.now() - requestedAt);
      while (!(await reader.read()).done);
      await close();
    }
  }
  for (const [name, ownTimes] of times) console.log(`  ${name}: ${median(ownTimes.slice(50)).toFixed(2)} ms`);
}

/** Prints the memory of turns that wait for the model while a client has read everything sent so far. */
async function printStreamMemory() {
  const gate = Promise.withResolvers();
  const provider = {
    chat: () => Promise.reject(new Error('only streams')),
    async *stream() {
      yield { type: 'text-delta', text: TEXT };
      await gate.promise;
      yield { type: 'response', response: { content: TEXT, toolCalls: [], finishReason: 'stop' } };
    },
  };
  const config = { provider, model: 'm' };
  const conversations = new Conversations({
    store: new MemoryRunStore(),
    maxConcurrency: STREAMS + 1,
    config,
  });
  const handler = createChatHandler({ conversations, authenticate: () => 'user' });
  const openStream = async (index) => {
    const reader = (await post(handler, `open${index}`)).body.getReader();
    for (let text = ''; !text.includes(TEXT); ) text += Buffer.from((await reader.read()).value);
    return reader;
  };
  const first = await openStream('first');
  const before = memory();
  const readers = await Promise.all(Array.from({ length: STREAMS }, (_, index) => openStream(index)));
  const after = memory();
  const kib = (from, to) => `${((to - from) / STREAMS / 1024).toFixed(1)} KiB`;
  console.log(
    `  heap ${kib(before.heapUsed, after.heapUsed)} per stream, process ${kib(before.rss, after.rss)} per stream`,
  );
  gate.resolve();
  for (const reader of [first, ...readers]) while (!(await reader.read()).done);
  await conversations.close();
}

function memory() {
  collectGarbage();
  return process.memoryUsage();
}

console.log(`Node ${process.versions.node}\n\nTime to the first text, median of 250:`);
await printFirstTextTimes();
console.log(`\nChunks per second for a reply of ${CHUNKS.toLocaleString('en')} chunks, without pauses:`);
await printSpeeds(CHUNKS, false);
console.log(`\nThe same with each chunk in its own turn of the event loop, as from a socket:`);
await printSpeeds(CHUNKS, true);
console.log(`\n${STREAMS.toLocaleString('en')} open streams of chats that wait for the model:`);
await printStreamMemory();
