import type { LLMResponse } from '../../contract/llm-provider.js';
import { randomFrom } from '../faulty-fetch.js';
import { type Bench, inPieces, LOOK_UP, type ReplyDraft } from './bench.js';
import type { CaseDraft } from './conformance-case.js';
import { expectSame, expectThat, failureIn } from './expectations.js';
import { lostConnection } from './provider-backend.js';

const { name } = LOOK_UP.function;
/** Every character is more than a byte, or means something to a wire. */
const TEXT = 'Öß 世\n\n"data: 🙂"';
const CALLS = [
  { id: 'call_a1', name, arguments: '{"city":"Å\\n\\"{世}","days":31}' },
  { id: 'call_b2', name, arguments: '{ "city": "Ro\\u006de", "days": 5 }' },
];
const REPLY: ReplyDraft = { text: TEXT, calls: CALLS };

/** How a reply is sent is nothing that a reader of it could see. */
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

/** Ways to cut something into pieces: at every place, at every second and so on, and at a few by chance. */
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

/** Places at which something breaks off: at its ends, and between by chance. */
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

/** How replies come in pieces, and that only whole ones count. */
export const STREAM_CASES: readonly CaseDraft[] = [
  {
    title: 'puts texts and arguments together, split at any character',
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
  {
    title: 'tells the arguments of calls as they come',
    rule: 'a stream has call-input-start, call-input-delta and call-input-end for each call that has an id',
    needs: ['streaming', 'call-input'],
    methods: ['stream'],
    async run(bench) {
      const told: string[] = [];
      const { request } = bench.script({ ...REPLY, deltas: inPieces(5) });
      for await (const part of bench.parts(request))
        if ('callId' in part) told.push(`${part.type} ${part.callId}`);
      for (const { id } of CALLS) {
        const deltas = told.filter((part) => part === `call-input-delta ${id}`).length;
        expectThat(told.includes(`call-input-start ${id}`), `its stream has no call-input-start for ${id}`);
        expectThat(
          deltas > 1,
          `its stream has ${deltas} call-input-delta for ${id}, which came in many pieces`,
        );
      }
    },
  },
  {
    title: 'reads a reply that arrives cut at any byte',
    rule: 'how a connection cuts a reply into pieces changes nothing of it, also within a character',
    needs: ['any-reply', 'wire'],
    async run(bench) {
      for (const cuts of waysToCut()) expectWhole(await bench.reply(REPLY, {}, { cuts }));
    },
  },
  {
    title: 'throws where a reply breaks off at any byte',
    rule: 'implementations throw where no whole reply could be had, with `retryable: true`; half a reply is none',
    needs: ['any-reply', 'wire'],
    async run(bench) {
      for (const at of placesToBreak()) await expectBroken(bench, at);
    },
  },
];

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
  // What is lost behind the end of a reply is no loss.
  expectWhole(response);
}
