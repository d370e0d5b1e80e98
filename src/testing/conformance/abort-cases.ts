import type { LLMStreamPart } from '../../contract/llm-provider.js';
import { type Bench, inPieces } from './bench.js';
import type { CaseDraft } from './conformance-case.js';
import { errorOf, expectSame, expectThat, failureIn } from './expectations.js';
import type { Route } from './provider-backend.js';

const TEXT = 'A long answer, which comes word by word until somebody stops it. ';

/** A reply that comes to some place and then waits for ever. */
function silentFrom(at: (length: number) => number): Route {
  return { stop: { at, wait: () => new Promise(() => {}) } };
}

/** What comes as a whole is not there yet in its middle, and is for whoever reads it as it comes. */
const before = (): number => 0;
const middle = (length: number): number => Math.floor(length / 2);
const behindMiddle = (length: number): number => Math.ceil(length / 2);

/** What an aborted request ends with. */
async function expectAborted(reply: Promise<unknown>): Promise<void> {
  const error = await errorOf(reply, 'an aborted request ends without an error');
  expectThat(failureIn(error).retryable !== true, 'an aborted request throws an error that is `retryable`');
}

/** Requests that are given up, and requests that overlap. */
export const ABORT_CASES: readonly CaseDraft[] = [
  {
    title: 'makes no request that was aborted before',
    rule: '`signal` of LLMRequest ends the request: an aborted one throws, and never gives a reply',
    async run(bench) {
      const { request } = bench.script({ text: TEXT });
      await expectAborted(bench.ask({ ...request, signal: AbortSignal.abort() }));
    },
  },
  {
    title: 'gives up a request that is aborted before the reply',
    rule: '`signal` of LLMRequest ends the request: an aborted one throws at once, however silent the model is',
    needs: ['waiting'],
    async run(bench) {
      await expectAbortedAt(bench, before);
    },
  },
  {
    title: 'gives up a request that is aborted in the middle of the reply',
    rule: '`signal` of LLMRequest ends the request: an aborted one throws, also when half of the reply is there',
    needs: ['waiting'],
    async run(bench) {
      await expectAbortedAt(bench, middle);
    },
  },
  {
    title: 'tells a text as it comes, and ends with an error where it is aborted then',
    rule: 'a stream gives parts as they come and throws after an abort; a stream that just ends would be taken for whole',
    needs: ['waiting'],
    methods: ['stream'],
    async run(bench) {
      const { request } = bench.script(
        { text: TEXT.repeat(5), deltas: inPieces(5) },
        {},
        silentFrom(behindMiddle),
      );
      const controller = new AbortController();
      await expectAborted(
        readUntilAborted(bench.parts({ ...request, signal: controller.signal }), controller),
      );
    },
  },
  {
    title: 'keeps two replies apart that come at the same time',
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
];

async function expectAbortedAt(bench: Bench, at: (length: number) => number): Promise<void> {
  const { request, reached } = bench.script({ text: TEXT }, {}, silentFrom(at));
  const controller = new AbortController();
  const reply = bench.ask({ ...request, signal: controller.signal });
  // Where it fails before, that is told in its place.
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
