import type { LLMResponse } from '../../../core/contract/llm-provider.js';
import { checkOptions } from '../../../core/errors/author-fault.js';
import { withinLimits } from '../../../core/kernel/async.js';
import { errorMessage } from '../../../core/kernel/error-message.js';
import { isRecord } from '../../../core/kernel/json.js';
import {
  FILLED_TEXT,
  FUNCTION,
  listOf,
  MILLISECONDS,
  oneOf,
  optionTable,
  required,
} from '../../../core/kernel/options.js';
import { lostConnection, randomFrom } from '../faulty-fetch.js';
import {
  Bench,
  CAPABILITIES,
  type CaseDraft,
  type CaseDrafts,
  inPieces,
  LOOK_UP,
  type Method,
  type ProviderCapability,
  type ReplyDraft,
} from './bench.js';
import { BrokenRule, expectSame, expectThat } from './expectations.js';
import type { ModelCall, ProviderBackend, Route } from './provider-backend.js';
import { REQUEST_CASES, SETTING_CASES } from './request-cases.js';

/** Options of {@link providerConformance}. */
export interface ProviderConformanceOptions {
  /** The provider's name in titles: `MyProvider`. */
  readonly name: string;
  /** Creates the provider and its backend for each case: {@link httpBackend}, or your own object. */
  readonly backend: () => ProviderBackend | Promise<ProviderBackend>;
  /** Capabilities that the provider lacks; their cases are omitted. Default: none. */
  readonly without?: readonly ProviderCapability[];
  /** Time limit of a case in milliseconds; default: a minute. */
  readonly timeoutMs?: number;
}

/** A case of the suite, for any test runner. */
export interface ConformanceCase {
  /** `MyProvider.chat returns the text of the model unchanged`. */
  readonly title: string;
  /** Rejects with the violation, and the rule of the contract. */
  run(): Promise<void>;
}

/** A case that was omitted. */
export interface OmittedCase {
  readonly title: string;
  /** The missing capabilities that it needs. */
  readonly without: readonly ProviderCapability[];
}

/** The cases for a provider. */
export interface ProviderConformance extends ReadonlyArray<ConformanceCase> {
  readonly leftOut: readonly OmittedCase[];
}

const OPTIONS = optionTable<ProviderConformanceOptions>('providerConformance', {
  name: required(FILLED_TEXT),
  backend: required({ ...FUNCTION, fix: '() => httpBackend({ create: (url) => …, encode: (reply) => … })' }),
  without: listOf(oneOf(...CAPABILITIES), "['files', 'response-format']"),
  timeoutMs: MILLISECONDS,
});

const METHODS: readonly Method[] = ['chat', 'stream'];

/**
 * The contract of `LLMProvider` as cases for any test runner. Each case has a provider of its own with a scripted
 * model.
 *
 * @throws InvalidOptionsError for wrong options, and for unknown names in `without`.
 *
 * @example
 * ```ts
 * const cases = providerConformance({
 *   name: 'OfflineProvider',
 *   backend: () => ({ provider: new OfflineProvider(), model: 'offline', script: () => undefined }),
 *   without: ['streaming', 'any-reply', 'waiting', 'errors', 'origin', 'usage', 'reasoning', 'sent'],
 * });
 * const results = await Promise.allSettled(cases.map(({ run }) => run()));
 * console.log(results, cases.leftOut);
 * ```
 */
export function providerConformance(options: ProviderConformanceOptions): ProviderConformance {
  checkOptions(options, OPTIONS);
  const absent = new Set(options.without);
  const drafts = Object.entries({
    ...{ ...REPLY_CASES, ...STREAM_CASES, ...REQUEST_CASES },
    ...{ ...SETTING_CASES, ...FAILURE_CASES, ...ABORT_CASES },
  });
  const all = METHODS.flatMap((method) =>
    drafts
      .filter(([, { methods = METHODS }]) => methods.includes(method))
      .map(([title, draft]) => ({
        title: `${options.name}.${method} ${title}`,
        without: [...(method === 'stream' ? (['streaming'] as const) : []), ...(draft.needs ?? [])].filter(
          (need, at, needs) => absent.has(need) && needs.indexOf(need) === at,
        ),
        run: () => runCase(draft, method, options),
      })),
  );
  const cases = all.filter(({ without }) => without.length === 0).map(({ title, run }) => ({ title, run }));
  const leftOut = all
    .filter(({ without }) => without.length > 0)
    .map(({ title, without }) => ({ title, without }));
  return Object.assign(cases, { leftOut });
}

const PATIENCE_MS = 60_000;

async function runCase(
  { rule, run }: CaseDraft,
  method: Method,
  { name, backend: create, timeoutMs = PATIENCE_MS }: ProviderConformanceOptions,
): Promise<void> {
  const backend = await create();
  try {
    await withinLimits(run(new Bench(backend, method)), { timeoutMs, signal: undefined });
  } catch (error) {
    const isOurs = error instanceof BrokenRule || (isRecord(error) && error.name === 'TimeoutError');
    const problem = isOurs ? errorMessage(error) : `it throws “${errorMessage(error)}”`;
    throw new Error(`${name}.${method}: ${problem}.\nRule: ${rule}.`, { cause: error });
  } finally {
    await backend.close?.();
  }
}

/** Contains characters that a faulty decoder or encoder would change. */
const TEXT = 'Grüße, 世界 👩‍👩‍👧!\n\t"quoted" \\n \\ \u2028 </s> <tool_call> data: [DONE] ';

const { name } = LOOK_UP.function;
const OSLO = { id: 'call_a1', name, arguments: '{"city":"Oslo","days":3}' };
const ROME = { id: 'call_b2', name, arguments: '{"city":"Rome","days":5}' };

const DIGITS = '12345678901234567891';
const LONG_INTEGER = `{"city":"Oslo","days":${DIGITS}}`;

const THOUGHT = { text: 'Oslo first.\nThen “Rome” 🤔', sealed: 'c2VhbGVk+/==' };

/** Compares calls in the form of the contract; the texts must be JSON objects. */
function expectCalls(
  given: readonly { readonly name: string; readonly arguments: unknown }[],
  calls: readonly ModelCall[],
): void {
  const wanted = calls.map((call) => ({ name: call.name, arguments: JSON.parse(call.arguments) as unknown }));
  expectThat(
    given.length === calls.length,
    `it returns ${given.length} calls, but the model made ${calls.length}: ${calls.map(({ arguments: args }) => args).join(', ')}`,
  );
  for (const [at, call] of given.entries())
    expectSame(`call ${at + 1}`, { name: call.name, arguments: call.arguments }, wanted[at]);
}

/** Cases about the contents of replies. */
const REPLY_CASES: CaseDrafts = {
  'returns the text of the model unchanged': {
    rule: '`content` of LLMResponse is the complete, unchanged text of the reply',
    async run(bench) {
      const response = await bench.reply({ text: TEXT });
      expectSame('content', response.content, TEXT);
      expectSame('toolCalls', response.toolCalls, []);
      expectSame('finishReason', response.finishReason, 'stop');
    },
  },
  'returns a call with its tool and its arguments': {
    rule: '`toolCalls` of LLMResponse are the calls of the reply; `arguments` is an object if the model wrote an object',
    async run(bench) {
      const response = await bench.reply({ calls: [OSLO] });
      expectCalls(response.toolCalls, [OSLO]);
      expectSame('content', response.content, '');
      expectSame('finishReason', response.finishReason, 'tool_calls');
    },
  },
  'returns parallel calls separately and in order': {
    rule: '`toolCalls` contains each call of the model, in the order of the model, with a unique id',
    needs: ['parallel-calls'],
    async run(bench) {
      const calls = [OSLO, ROME, { ...OSLO, id: 'call_c3' }];
      const { toolCalls } = await bench.reply({ calls });
      expectCalls(toolCalls, calls);
      const ids = toolCalls.map(({ id }) => id);
      expectThat(!ids.includes(''), 'a call has no id');
      expectThat(new Set(ids).size === ids.length, `two calls have the same id: ${ids.join(', ')}`);
    },
  },
  'returns the ids that the model gave to its calls': {
    rule: '`id` of a call is the id of the provider’s API: the result is sent with that id',
    needs: ['call-ids'],
    async run(bench) {
      const { toolCalls } = await bench.reply({ calls: [OSLO, ROME] });
      expectSame(
        'the list of ids',
        toolCalls.map(({ id }) => id),
        [OSLO.id, ROME.id],
      );
    },
  },
  'returns both the text and the calls of a reply': {
    rule: 'a reply may have both `content` and `toolCalls`',
    needs: ['any-reply'],
    async run(bench) {
      const { content, toolCalls } = await bench.reply({ text: TEXT, calls: [OSLO] });
      expectSame('content', content, TEXT);
      expectCalls(toolCalls, [OSLO]);
    },
  },
  'returns deeply nested arguments, and empty arguments': {
    rule: '`arguments` of a call is the complete object that the model wrote',
    needs: ['any-reply'],
    async run(bench) {
      const deep = { a: [{ b: [[null, true, -0.5, 1e21]] }], 'ä "k"': TEXT, toString: '', '': {} };
      const calls = [
        { ...OSLO, arguments: JSON.stringify(deep) },
        { ...ROME, arguments: '{}' },
      ];
      expectCalls((await bench.reply({ calls })).toolCalls, calls);
    },
  },
  'returns arguments that are not a JSON object as text': {
    rule: '`arguments` of a call is the raw text if that is not a JSON object: the tool loop repairs it or reports it to the model',
    needs: ['raw-arguments'],
    async run(bench) {
      for (const text of ['{"city": "Oslo"', 'Oslo', '["Oslo"]']) {
        const { toolCalls } = await bench.reply({ calls: [{ ...OSLO, arguments: text }] });
        expectSame('the arguments of the call', toolCalls[0]?.arguments, text);
      }
    },
  },
  'preserves the digits of long integers in arguments': {
    rule: '`arguments` of a call is the raw text if it has integers that a number cannot represent',
    needs: ['any-reply', 'long-integers'],
    async run(bench) {
      const { toolCalls } = await bench.reply({ calls: [{ ...OSLO, arguments: LONG_INTEGER }] });
      const args = toolCalls[0]?.arguments;
      const text = typeof args === 'string' ? args : JSON.stringify(args);
      expectThat(
        text?.includes(DIGITS) === true,
        `the arguments of the call are ${text}, without all digits of ${DIGITS}`,
      );
    },
  },
  'reports the id and the model of a reply': {
    rule: '`origin` of LLMResponse is the server’s id of the reply and the model that created it',
    needs: ['origin'],
    async run(bench) {
      const origin = { id: 'reply_7', model: 'test-model-2026-02-28' };
      expectSame('origin', (await bench.reply({ text: 'Hello', ...origin })).origin, origin);
    },
  },
  'reports that a reply was cut off, also if it has calls': {
    rule: '`finishReason` is `length` or `content_filter` if the reply was cut off: its calls are not run',
    needs: ['any-reply'],
    async run(bench) {
      for (const finishReason of ['length', 'content_filter'] as const)
        expectSame(
          'finishReason',
          (await bench.reply({ text: 'Half a sen', finishReason })).finishReason,
          finishReason,
        );
      const { finishReason } = await bench.reply({ calls: [OSLO], finishReason: 'length' });
      expectSame('finishReason of a truncated reply with a call', finishReason, 'length');
    },
  },
  'counts the tokens': {
    rule: '`usage` of LLMResponse counts the whole input, the whole output including reasoning, and their sum',
    needs: ['usage'],
    async run(bench) {
      const { usage } = await bench.reply({ text: 'Hello' });
      const { inputTokens, outputTokens, totalTokens } = usage ?? {};
      const wanted = { inputTokens: 1_200, outputTokens: 340, totalTokens: 1_540 };
      expectSame('usage', usage && { inputTokens, outputTokens, totalTokens }, wanted);
    },
  },
  ...Object.fromEntries(
    (
      [
        ['cacheReadTokens', 'cache-read-tokens', 1_000],
        ['cacheWriteTokens', 'cache-write-tokens', 50],
        ['reasoningTokens', 'reasoning-tokens', 200],
      ] as const
    ).map(([part, capability, count]): [string, CaseDraft] => [
      `counts ${part}`,
      {
        rule: `\`usage.${part}\` is set if the API reports it`,
        needs: ['usage', capability],
        async run(bench) {
          const { usage } = await bench.reply({ text: 'Hello', reasoning: THOUGHT });
          expectSame(`usage.${part}`, usage?.[part], count);
        },
      },
    ]),
  ),
  'returns the reasoning separately from the text': {
    rule: '`reasoning` of LLMResponse is text for users, and never part of `content`',
    needs: ['reasoning'],
    async run(bench) {
      const response = await bench.reply({ text: 'Hello', reasoning: THOUGHT, calls: [OSLO] });
      expectSame('content', response.content, 'Hello');
      expectSame('reasoning', response.reasoning, THOUGHT.text);
    },
  },
};

/** The error of a request; throws if it is answered. */
async function errorOf(reply: Promise<unknown>, problem: string): Promise<unknown> {
  try {
    await reply;
  } catch (error) {
    if (error instanceof BrokenRule) throw error;
    return error;
  }
  throw new BrokenRule(problem);
}

/** The properties of a failed request in its error; errors of the AI SDK have `isRetryable`. */
function failureIn(error: unknown): {
  readonly [Fact in 'status' | 'retryable' | 'retryAfterMs']: unknown;
} {
  const { status, retryable, isRetryable, retryAfterMs } = isRecord(error) ? error : {};
  return { status, retryable: retryable ?? isRetryable, retryAfterMs };
}

/** Statuses of temporary failures, and below, of faulty requests. */
const PASSING = [408, 429, 500, 502, 503, 504] as const;
const LASTING = [400, 401, 403, 404, 413, 422] as const;

/** Cases about failures of a server. */
const FAILURE_CASES: CaseDrafts = {
  'throws errors that state whether to retry': {
    rule: 'implementations throw if they receive no reply; `status` is the status of the server, and `retryable` states whether the same request may succeed later (408, 429, 5xx)',
    needs: ['errors'],
    async run(bench) {
      for (const status of [...PASSING, ...LASTING]) {
        const failed = bench.fail({ status, message: 'Not now' });
        const failure = failureIn(await errorOf(failed, `a refusal with status ${status} gives a reply`));
        expectSame(`\`status\` of the error for status ${status}`, failure.status, status);
        const isPassing = PASSING.some((passing) => passing === status);
        expectSame(`\`retryable\` of the error for status ${status}`, failure.retryable, isPassing);
      }
      expectSame(
        'content of the reply after failures',
        (await bench.reply({ text: 'Hello' })).content,
        'Hello',
      );
    },
  },
  'reports how long the server asks to wait': {
    rule: '`retryAfterMs` of the error is the server’s `retry-after` in milliseconds',
    needs: ['errors', 'retry-after'],
    async run(bench) {
      for (const status of [429, 503]) {
        const failed = bench.fail({ status, message: 'Too many requests', retryAfter: 7 });
        const { retryAfterMs } = failureIn(
          await errorOf(failed, `a refusal with status ${status} gives a reply`),
        );
        expectSame(
          `\`retryAfterMs\` of the error for status ${status} with retry-after: 7`,
          retryAfterMs,
          7_000,
        );
      }
    },
  },
};

/** Every character has several bytes, or a meaning in a wire format. */
const STREAMED_TEXT = 'Öß 世\n\n"data: 🙂"';
const STREAMED_CALLS = [
  { id: 'call_a1', name, arguments: '{"city":"Å\\n\\"{世}","days":31}' },
  { id: 'call_b2', name, arguments: '{ "city": "Ro\\u006de", "days": 5 }' },
];
const REPLY: ReplyDraft = { text: STREAMED_TEXT, calls: STREAMED_CALLS };

/** Checks the reply: how it was sent must not matter. */
function expectWhole({ content, toolCalls, finishReason }: LLMResponse): void {
  expectSame('content', content, STREAMED_TEXT);
  const wanted = STREAMED_CALLS.map(({ arguments: args }) => ({
    name,
    arguments: JSON.parse(args) as unknown,
  }));
  expectSame(
    'toolCalls',
    toolCalls.map((call) => ({ name: call.name, arguments: call.arguments })),
    wanted,
  );
  expectSame('finishReason', finishReason, 'tool_calls');
}

/** Cases about streamed replies, of which only complete ones count. */
const STREAM_CASES: CaseDrafts = {
  'joins texts and arguments that are split at any character': {
    rule: 'a stream yields text, reasoning and the arguments of calls as they arrive; joined, they equal the response',
    needs: ['streaming'],
    methods: ['stream'],
    async run(bench) {
      const longest = Math.max(
        STREAMED_TEXT.length,
        ...STREAMED_CALLS.map(({ arguments: args }) => args.length),
      );
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
      for (const { id } of STREAMED_CALLS) {
        const deltas = streamed.filter((part) => part === `call-input-delta ${id}`).length;
        expectThat(
          streamed.includes(`call-input-start ${id}`),
          `its stream has no call-input-start for ${id}`,
        );
        expectThat(
          deltas > 1,
          `its stream has ${deltas} call-input-delta for ${id}, whose arguments arrived in many pieces`,
        );
      }
    },
  },
  'reads a reply that is split at any byte': {
    rule: 'the pieces in which a reply arrives do not change it, even if they split a character',
    needs: ['any-reply', 'wire'],
    async run(bench) {
      const every = [1, 2, 3, 7, 64].map(
        (size) => (length: number) =>
          Array.from({ length: Math.ceil(length / size) - 1 }, (_, at) => (at + 1) * size),
      );
      const random = randomFrom(7);
      const some = Array.from(
        { length: 25 },
        (_, seed) => (length: number) =>
          Array.from({ length: 1 + (seed % 4) }, () => 1 + Math.floor(random() * (length - 1))).sort(
            (one, other) => one - other,
          ),
      );
      for (const cuts of [...every, ...some]) expectWhole(await bench.reply(REPLY, {}, { cuts }));
    },
  },
  'throws if a reply breaks off at any byte': {
    rule: 'implementations throw with `retryable: true` if the reply is incomplete',
    needs: ['any-reply', 'wire'],
    async run(bench) {
      const random = randomFrom(11);
      const shares = Array.from({ length: 25 }, () => random());
      const places = [
        ...shares.map((share) => (length: number) => Math.floor(share * length)),
        (length: number) => length - 1,
        () => 1,
        () => 0,
      ];
      const lost = { what: 'a lost connection', wait: () => Promise.reject(lostConnection()) };
      // A proxy may also end a stream properly before it is complete.
      const ended = { what: 'a stream that ends too early', wait: async () => 'end' as const };
      for (const { what, wait } of bench.method === 'stream' ? [lost, ended] : [lost])
        for (const at of places) {
          let response: LLMResponse | undefined;
          try {
            response = await bench.reply(REPLY, {}, { stop: { at, wait } });
          } catch (error) {
            expectSame(`\`retryable\` of the error for ${what}`, failureIn(error).retryable, true);
          }
          // A connection that is lost after the end of a reply does not matter.
          if (response !== undefined) expectWhole(response);
        }
    },
  },
  'throws an error that the server reports within a stream': {
    rule: 'implementations throw if they receive no complete reply, even after a valid start of the stream; the message contains the error of the server',
    needs: ['streaming', 'stream-errors'],
    methods: ['stream'],
    async run(bench) {
      const failed = bench.reply({ text: STREAMED_TEXT, error: OVERLOADED });
      const error = await errorOf(failed, 'a stream that reports an error ends with a reply');
      const message = errorMessage(error);
      expectThat(
        message.includes(OVERLOADED),
        `the error is “${message}”, but the server reported “${OVERLOADED}”`,
      );
    },
  },
};

const OVERLOADED = 'The model is overloaded';

const LONG_TEXT = 'A long answer, which arrives word by word until it is aborted. ';

/** A route that stops at a place forever. */
function silentFrom(at: (length: number) => number): Route {
  return { stop: { at, wait: () => new Promise(() => {}) } };
}

const middle = (length: number): number => Math.floor(length / 2);

/** Checks that a request was rejected because of its abort. */
async function expectAborted(reply: Promise<unknown>): Promise<void> {
  const error = await errorOf(reply, 'an aborted request ends without an error');
  expectThat(failureIn(error).retryable !== true, 'an aborted request throws an error that is `retryable`');
}

/** Cases about aborted and concurrent requests. */
const ABORT_CASES: CaseDrafts = {
  'does not send a request that is already aborted': {
    rule: '`signal` of LLMRequest ends the request: an aborted request throws and never returns a reply',
    async run(bench) {
      const { request } = bench.script({ text: LONG_TEXT });
      await expectAborted(bench.ask({ ...request, signal: AbortSignal.abort() }));
    },
  },
  'ends a request that is aborted before the reply': {
    rule: '`signal` of LLMRequest ends the request: an aborted request throws immediately, even if the model is silent',
    needs: ['waiting'],
    async run(bench) {
      // A reply that arrives at once has no middle.
      await expectAbortedAt(bench, () => 0);
    },
  },
  'ends a request that is aborted in the middle of the reply': {
    rule: '`signal` of LLMRequest ends the request: an aborted request throws, even if half of the reply has arrived',
    needs: ['waiting'],
    async run(bench) {
      await expectAbortedAt(bench, middle);
    },
  },
  'streams text as it arrives, and throws if it is aborted during the stream': {
    rule: 'a stream yields parts as they arrive and throws after an abort; a stream that only ended would look complete',
    needs: ['waiting'],
    methods: ['stream'],
    async run(bench) {
      const { request } = bench.script(
        { text: LONG_TEXT.repeat(5), deltas: inPieces(5) },
        {},
        silentFrom((length) => Math.ceil(length / 2)),
      );
      const controller = new AbortController();
      const parts = bench.parts({ ...request, signal: controller.signal });
      const readUntilAborted = async (): Promise<void> => {
        for await (const { type } of parts) {
          if (type === 'response') return;
          if (type === 'text-delta') controller.abort();
        }
      };
      await expectAborted(readUntilAborted());
    },
  },
  'keeps two simultaneous replies separate': {
    rule: 'a provider serves many runs: it stores no data of a request',
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
