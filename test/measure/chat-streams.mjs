// What a chat costs: time to the first words beside the bare stream of the provider, chunks per second beside the AI
// SDK's own response, and the memory of open streams. npm run measure:chat [-- <chunks> <streams>]
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
const WORDS = 'some words ';
const USAGE = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };

/** Says so many words, one macrotask after another where `paced`, as a socket gives them. */
function speaker(chunks, paced) {
  return {
    chat: () => Promise.reject(new Error('only streams')),
    async *stream() {
      for (let index = 0; index < chunks; index += 1) {
        if (paced) await new Promise((next) => setImmediate(next));
        yield { type: 'text-delta', text: WORDS };
      }
      const response = { content: WORDS.repeat(chunks), toolCalls: [], finishReason: 'stop', usage: USAGE };
      yield { type: 'response', response };
    },
  };
}

/** The same for the AI SDK. */
function languageModel(chunks, paced) {
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  };
  return {
    specificationVersion: 'v4',
    provider: 'spoken',
    modelId: 'spoken',
    supportedUrls: {},
    async doStream() {
      const parts = async function* () {
        yield { type: 'stream-start', warnings: [] };
        yield { type: 'text-start', id: 't' };
        for (let index = 0; index < chunks; index += 1) {
          if (paced) await new Promise((next) => setImmediate(next));
          yield { type: 'text-delta', id: 't', delta: WORDS };
        }
        yield { type: 'text-end', id: 't' };
        yield { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage };
      };
      return { stream: ReadableStream.from(parts()) };
    },
  };
}

const MESSAGES = [{ role: 'user', content: 'Speak.' }];
const INPUT = { threadId: 't', runId: 'r', messages: [{ id: 'm', role: 'user', content: 'Speak.' }] };
const run = (chunks, paced) => streamToolLoop({ provider: speaker(chunks, paced), model: 'm' }, MESSAGES);

async function post(handler, chatId) {
  const body = {
    id: chatId,
    messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'Speak.' }] }],
  };
  const headers = { 'content-type': 'application/json' };
  const request = new Request('http://localhost/', { method: 'POST', headers, body: JSON.stringify(body) });
  return handler.fetch(request);
}

let chats = 0;
async function conversation(chunks, paced) {
  const handler = createChatHandler({
    provider: speaker(chunks, paced),
    model: 'm',
    store: new MemoryRunStore(),
    authenticate: () => 'somebody',
  });
  chats += 1;
  const response = await post(handler, `c${chats}`);
  return { response, close: () => handler.close() };
}

const whole = (response) => ({ response, close: () => {} });

const CANDIDATES = [
  {
    name: 'AI SDK, streamText().toUIMessageStreamResponse()',
    open: (chunks, paced) =>
      whole(
        streamText({ model: languageModel(chunks, paced), messages: MESSAGES }).toUIMessageStreamResponse(),
      ),
  },
  { name: 'toUIMessageResponse', open: (...given) => whole(toUIMessageResponse(run(...given))) },
  { name: 'toAgUiResponse', open: (...given) => whole(toAgUiResponse(run(...given), { input: INPUT })) },
  { name: 'createChatHandler, MemoryRunStore', open: conversation },
];

/** Reads all of a body, as a socket would. */
async function drain({ body }) {
  const reader = body.getReader();
  let bytes = 0;
  for (let read = await reader.read(); !read.done; read = await reader.read()) bytes += read.value.byteLength;
  return bytes;
}

/** Words per second, in alternation; the median of the rounds, and beside the AI SDK in the same round. */
async function speeds(chunks, paced) {
  const rates = new Map(CANDIDATES.map(({ name }) => [name, []]));
  for (let round = 0; round < ROUNDS; round += 1)
    for (const { name, open } of rotated(CANDIDATES, round)) {
      collectGarbage();
      const { response, close } = await open(chunks, paced);
      const begun = performance.now();
      await drain(response);
      rates.get(name).push((chunks / (performance.now() - begun)) * 1000);
      await close();
    }
  const [{ name: first }] = CANDIDATES;
  for (const [name, own] of rates) {
    const ratio = median(own.map((rate, round) => rate / rates.get(first)[round]));
    console.log(
      `  ${name}: ${Math.round(median(own)).toLocaleString('en')} a second, ${ratio.toFixed(2)} times`,
    );
  }
}

/** Milliseconds until the first words are there. */
async function firstWords() {
  const times = new Map([
    ['the bare stream of the provider', []],
    ...CANDIDATES.map(({ name }) => [name, []]),
  ]);
  for (let round = 0; round < 300; round += 1) {
    const begun = performance.now();
    for await (const part of speaker(1, true).stream({})) if (part.type === 'text-delta') break;
    times.get('the bare stream of the provider').push(performance.now() - begun);
    for (const { name, open } of rotated(CANDIDATES, round)) {
      const asked = performance.now();
      const { response, close } = await open(1, true);
      const reader = response.body.getReader();
      for (let text = ''; !text.includes(WORDS); ) text += Buffer.from((await reader.read()).value);
      times.get(name).push(performance.now() - asked);
      while (!(await reader.read()).done);
      await close();
    }
  }
  for (const [name, own] of times) console.log(`  ${name}: ${median(own.slice(50)).toFixed(2)} ms`);
}

/** Memory of turns that wait for their model, each with a reader that has read what there was. */
async function openStreams() {
  const gate = Promise.withResolvers();
  const provider = {
    chat: () => Promise.reject(new Error('only streams')),
    async *stream() {
      yield { type: 'text-delta', text: WORDS };
      await gate.promise;
      yield { type: 'response', response: { content: WORDS, toolCalls: [], finishReason: 'stop' } };
    },
  };
  const config = { provider, model: 'm' };
  const conversations = new Conversations({
    store: new MemoryRunStore(),
    maxConcurrency: STREAMS + 1,
    config,
  });
  const handler = createChatHandler({ conversations, authenticate: () => 'somebody' });
  const begin = async (index) => {
    const reader = (await post(handler, `open${index}`)).body.getReader();
    for (let text = ''; !text.includes(WORDS); ) text += Buffer.from((await reader.read()).value);
    return reader;
  };
  const first = await begin('first');
  const before = memory();
  const readers = await Promise.all(Array.from({ length: STREAMS }, (_, index) => begin(index)));
  const after = memory();
  const kib = (from, to) => `${((to - from) / STREAMS / 1024).toFixed(1)} KiB`;
  console.log(
    `  heap ${kib(before.heapUsed, after.heapUsed)} each, process ${kib(before.rss, after.rss)} each`,
  );
  gate.resolve();
  for (const reader of [first, ...readers]) while (!(await reader.read()).done);
  await conversations.close();
}

function memory() {
  collectGarbage();
  return process.memoryUsage();
}

console.log(`Node ${process.versions.node}\n\nTime to the first words, median of 250:`);
await firstWords();
console.log(`\nChunks of a reply of ${CHUNKS.toLocaleString('en')}, as fast as they are read:`);
await speeds(CHUNKS, false);
console.log(`\nThe same, each in a turn of the event loop, as a socket gives them:`);
await speeds(CHUNKS, true);
console.log(`\n${STREAMS.toLocaleString('en')} open streams, of chats whose model says nothing more:`);
await openStreams();
