import type { LLMResponse, LLMStreamPart } from '../../../core/contract/llm-provider.js';
import { errorMessage } from '../../../core/kernel/error-message.js';
import { lostConnection, randomFrom } from '../faulty-fetch.js';
import { type Bench, type CaseDrafts, inPieces, LOOK_UP, type ReplyDraft } from './bench.js';
import { errorOf, expectSame, expectThat, failureIn } from './expectations.js';
import type { Route } from './provider-backend.js';

const { name } = LOOK_UP.function;
/** Every character has several bytes, or a meaning in a wire format. */
const TEXT = 'Öß 世\n\n"data: 🙂"';
const CALLS = [
  { id: 'call_a1', name, arguments: '{"city":"Å\\n\\"{世}","days":31}' },
  { id: 'call_b2', name, arguments: '{ "city": "Ro\\u006de", "days": 5 }' },
];
const REPLY: ReplyDraft = { text: TEXT, calls: CALLS };

/** Checks the reply: how it was sent must not matter. */
function expectWhole({ content, toolCalls, finishReason }: LLMResponse): void {
  expectSame('content', content, TEXT);
  const wanted = CALLS.map(({ arguments: args }) => ({ name, arguments: JSON.parse(args) as unknown }));
  expectSame(
    'toolCalls',
    toolCalls.map((call) => ({ name: call.name, arguments: call.arguments })),
    wanted,
  );
  expectSame('finishReason', finishReason, 'tool_calls');
}

/** Ways to cut something into pieces: everywhere, at every second place and so on, and at a few random places. */
function waysToCut(): ((length: number) => readonly number[])[] {
  const every = [1, 2, 3, 7, 64].map(
    (size) => (length: number) =>
      Array.from({ length: Math.ceil(length / size) - 1 }, (_, at) => (at + 1) * size),
  );
  const random = randomFrom(7);
  const some = Array.from({ length: 25 }, (_, seed) => (length: number) => {
    const places = Array.from({ length: 1 + (seed % 4) }, () => 1 + Math.floor(random() * (length - 1)));
    return places.sort((one, other) => one - other);
  });
  return [...every, ...some];
}

/** Places at which something breaks off: at both ends, and at random places between. */
function placesToBreak(): ((length: number) => number)[] {
  const random = randomFrom(11);
  const between = Array.from({ length: 25 }, () => random());
  return [
    ...between.map((share) => (length: number) => Math.floor(share * length)),
    (length) => length - 1,
    () => 1,
    () => 0,
  ];
}

/** Cases about streamed replies, of which only complete ones count. */
export const STREAM_CASES: CaseDrafts = {
  'puts texts and arguments together, split at any character': {
    rule: 'a stream tells text, reasoning and the arguments of calls as they come; together they are the response',
    needs: ['streaming'],
    methods: ['stream'],
    async run(bench) {
      const longest = Math.max(TEXT.length, ...CALLS.map(({ arguments: args }) => args.length));
      expectWhole(await bench.reply({ ...REPLY, deltas: inPieces(1) }));
      for (let at = 1; at < longest; at += 1) {
        const deltas = (text: string) => [text.slice(0, at), text.slice(at)].filter((piece) => piece !== '');
        expectWhole(await bench.reply({ ...REPLY, deltas }));
      }
    },
  },
  'streams the arguments of calls as they arrive': {
    rule: 'a stream has call-input-start, call-input-delta and call-input-end for each call that has an id',
    needs: ['streaming', 'call-input'],
    methods: ['stream'],
    async run(bench) {
      const streamed: string[] = [];
      const { request } = bench.script({ ...REPLY, deltas: inPieces(5) });
      for await (const part of bench.parts(request))
        if ('callId' in part) streamed.push(`${part.type} ${part.callId}`);
      for (const { id } of CALLS) {
        const deltas = streamed.filter((part) => part === `call-input-delta ${id}`).length;
        expectThat(
          streamed.includes(`call-input-start ${id}`),
          `its stream has no call-input-start for ${id}`,
        );
        expectThat(
          deltas > 1,
          `its stream has ${deltas} call-input-delta for ${id}, which came in many pieces`,
        );
      }
    },
  },
  'reads a reply that arrives cut at any byte': {
    rule: 'how a connection cuts a reply into pieces changes nothing of it, also within a character',
    needs: ['any-reply', 'wire'],
    async run(bench) {
      for (const cuts of waysToCut()) expectWhole(await bench.reply(REPLY, {}, { cuts }));
    },
  },
  'throws where a reply breaks off at any byte': {
    rule: 'implementations throw where no whole reply could be had, with `retryable: true`; an incomplete reply is an error',
    needs: ['any-reply', 'wire'],
    async run(bench) {
      for (const at of placesToBreak()) await expectBroken(bench, at);
    },
  },
  'throws an error that the server reports within a stream': {
    rule: 'implementations throw if they receive no reply, also if the stream began well; the message contains what the server reports',
    needs: ['streaming', 'stream-errors'],
    methods: ['stream'],
    async run(bench) {
      const failed = bench.reply({ text: TEXT, error: OVERLOADED });
      const error = await errorOf(failed, 'a stream that reports an error ends with a reply');
      const message = errorMessage(error);
      expectThat(
        message.includes(OVERLOADED),
        `the error is “${message}”, and the server reported “${OVERLOADED}”`,
      );
    },
  },
};

const OVERLOADED = 'The model is overloaded';

async function expectBroken(bench: Bench, at: (length: number) => number): Promise<void> {
  const wait = () => Promise.reject(lostConnection());
  let response: LLMResponse;
  try {
    response = await bench.reply(REPLY, {}, { stop: { at, wait } });
  } catch (error) {
    const { retryable } = failureIn(error);
    expectSame('`retryable` of the error for a lost connection', retryable, true);
    return;
  }
  // A connection that is lost after the end of a reply does not matter.
  expectWhole(response);
}

const LONG_TEXT = 'A long answer, which comes word by word until somebody stops it. ';

/** A route that stops at a place forever. */
function silentFrom(at: (length: number) => number): Route {
  return { stop: { at, wait: () => new Promise(() => {}) } };
}

/** A reply that arrives at once has no middle; the stop must be before it for all methods. */
const before = (): number => 0;
const middle = (length: number): number => Math.floor(length / 2);
const behindMiddle = (length: number): number => Math.ceil(length / 2);

/** Checks that a request was rejected because of its abort. */
async function expectAborted(reply: Promise<unknown>): Promise<void> {
  const error = await errorOf(reply, 'an aborted request ends without an error');
  expectThat(failureIn(error).retryable !== true, 'an aborted request throws an error that is `retryable`');
}

/** Cases about aborted and concurrent requests. */
export const ABORT_CASES: CaseDrafts = {
  'makes no request that was aborted before': {
    rule: '`signal` of LLMRequest ends the request: an aborted one throws, and never gives a reply',
    async run(bench) {
      const { request } = bench.script({ text: LONG_TEXT });
      await expectAborted(bench.ask({ ...request, signal: AbortSignal.abort() }));
    },
  },
  'gives up a request that is aborted before the reply': {
    rule: '`signal` of LLMRequest ends the request: an aborted one throws at once, however silent the model is',
    needs: ['waiting'],
    async run(bench) {
      await expectAbortedAt(bench, before);
    },
  },
  'gives up a request that is aborted in the middle of the reply': {
    rule: '`signal` of LLMRequest ends the request: an aborted one throws, also when half of the reply is there',
    needs: ['waiting'],
    async run(bench) {
      await expectAbortedAt(bench, middle);
    },
  },
  'streams text as it arrives, and throws if it is aborted meanwhile': {
    rule: 'a stream gives parts as they come and throws after an abort; a stream that just ends would be taken for whole',
    needs: ['waiting'],
    methods: ['stream'],
    async run(bench) {
      const { request } = bench.script(
        { text: LONG_TEXT.repeat(5), deltas: inPieces(5) },
        {},
        silentFrom(behindMiddle),
      );
      const controller = new AbortController();
      await expectAborted(
        readUntilAborted(bench.parts({ ...request, signal: controller.signal }), controller),
      );
    },
  },
  'keeps two simultaneous replies apart': {
    rule: 'one provider serves many runs: nothing of a request is kept on the provider',
    needs: ['waiting'],
    async run(bench) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const slow = bench.script(
        { text: 'the slow reply' },
        {},
        { stop: { at: middle, wait: () => promise } },
      );
      const slowReply = bench.ask(slow.request);
      slowReply.catch(() => {});
      await Promise.race([slow.reached, slowReply]);
      const { content } = await bench.reply({ text: 'the fast reply' });
      resolve();
      expectSame('content of the fast reply', content, 'the fast reply');
      expectSame('content of the slow reply', (await slowReply).content, 'the slow reply');
    },
  },
};

async function expectAbortedAt(bench: Bench, at: (length: number) => number): Promise<void> {
  const { request, reached } = bench.script({ text: LONG_TEXT }, {}, silentFrom(at));
  const controller = new AbortController();
  const reply = bench.ask({ ...request, signal: controller.signal });
  // If the request fails earlier, its error is reported.
  await Promise.race([reached, reply]);
  controller.abort();
  await expectAborted(reply);
}

async function readUntilAborted(
  parts: AsyncIterable<LLMStreamPart>,
  controller: AbortController,
): Promise<void> {
  for await (const { type } of parts) {
    if (type === 'response') return;
    if (type === 'text-delta') controller.abort();
  }
}
