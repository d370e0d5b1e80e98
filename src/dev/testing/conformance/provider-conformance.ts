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
import {
  Bench,
  CAPABILITIES,
  type CaseDraft,
  type CaseDrafts,
  LOOK_UP,
  type Method,
  type ProviderCapability,
} from './bench.js';
import { BrokenRule, errorOf, expectSame, expectThat, failureIn } from './expectations.js';
import type { ModelCall, ProviderBackend } from './provider-backend.js';
import { REQUEST_CASES, SETTING_CASES } from './request-cases.js';
import { ABORT_CASES, STREAM_CASES } from './stream-cases.js';

/** Options of {@link providerConformance}. */
export interface ProviderConformanceOptions {
  /** The provider's name in titles: `MyProvider`. */
  readonly name: string;
  /** Creates the provider and its backend for each case: {@link httpBackend}, or your own object. */
  readonly backend: () => ProviderBackend | Promise<ProviderBackend>;
  /** Capabilities that the provider lacks; their cases are left out. Default: none. */
  readonly without?: readonly ProviderCapability[];
  /** Time limit of a case in milliseconds; default: a minute. */
  readonly timeoutMs?: number;
}

/** A case of the suite, for any test runner. */
export interface ConformanceCase {
  /** `MyProvider.chat gives a text as the model said it`. */
  readonly title: string;
  /** Rejects with the violation, and the rule of the contract. */
  run(): Promise<void>;
}

/** A case that was left out. */
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
        without: needsOf(draft, method).filter((need) => absent.has(need)),
        run: () => runCase(draft, method, options),
      })),
  );
  const cases = all.filter(({ without }) => without.length === 0).map(({ title, run }) => ({ title, run }));
  const leftOut = all
    .filter(({ without }) => without.length > 0)
    .map(({ title, without }) => ({ title, without }));
  return Object.assign(cases, { leftOut });
}

function needsOf({ needs = [] }: CaseDraft, method: Method): readonly ProviderCapability[] {
  return method === 'stream' ? ['streaming', ...needs.filter((need) => need !== 'streaming')] : needs;
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
    throw new Error(`${name}.${method}: ${problemOf(error)}.\nRule: ${rule}.`, { cause: error });
  } finally {
    await backend.close?.();
  }
}

function problemOf(error: unknown): string {
  const isOurs = error instanceof BrokenRule || (isRecord(error) && error.name === 'TimeoutError');
  return isOurs ? errorMessage(error) : `it throws “${errorMessage(error)}”`;
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
    `it gives ${given.length} calls, and the model made ${calls.length}: ${calls.map(({ arguments: args }) => args).join(', ')}`,
  );
  for (const [at, call] of given.entries())
    expectSame(`call ${at + 1}`, { name: call.name, arguments: call.arguments }, wanted[at]);
}

function expectDistinct(ids: readonly string[]): void {
  expectThat(!ids.includes(''), 'a call has no id');
  expectThat(new Set(ids).size === ids.length, `two calls have one id: ${ids.join(', ')}`);
}

/** Cases about the contents of replies. */
const REPLY_CASES: CaseDrafts = {
  'gives a text as the model said it': {
    rule: '`content` of LLMResponse is the text of the reply, whole and unchanged',
    async run(bench) {
      const response = await bench.reply({ text: TEXT });
      expectSame('content', response.content, TEXT);
      expectSame('toolCalls', response.toolCalls, []);
      expectSame('finishReason', response.finishReason, 'stop');
    },
  },
  'gives a call with its tool and its arguments': {
    rule: '`toolCalls` of LLMResponse are the calls of the reply; `arguments` is an object where the model wrote one',
    async run(bench) {
      const response = await bench.reply({ calls: [OSLO] });
      expectCalls(response.toolCalls, [OSLO]);
      expectSame('content', response.content, '');
      expectSame('finishReason', response.finishReason, 'tool_calls');
    },
  },
  'gives parallel calls one by one and in their order': {
    rule: 'each call that the model makes is one of `toolCalls`, in the order of the model, with an id of its own',
    needs: ['parallel-calls'],
    async run(bench) {
      const calls = [OSLO, ROME, { ...OSLO, id: 'call_c3' }];
      const { toolCalls } = await bench.reply({ calls });
      expectCalls(toolCalls, calls);
      expectDistinct(toolCalls.map(({ id }) => id));
    },
  },
  'gives the ids of calls as the model has them': {
    rule: '`id` of a call is the provider’s own: the answer is sent to that',
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
    rule: '`content` and `toolCalls` of LLMResponse stand beside each other',
    needs: ['any-reply'],
    async run(bench) {
      const { content, toolCalls } = await bench.reply({ text: TEXT, calls: [OSLO] });
      expectSame('content', content, TEXT);
      expectCalls(toolCalls, [OSLO]);
    },
  },
  'gives arguments of any depth, and none': {
    rule: '`arguments` of a call is the object that the model wrote, whole',
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
  'gives arguments that are not a JSON object as their text': {
    rule: '`arguments` of a call is the raw text where it was not a JSON object: what reads it repairs it or tells the model',
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
        `the arguments of the call are ${text}, and lost digits of ${DIGITS}`,
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
    rule: '`finishReason` is `length` or `content_filter` where the model broke off: calls of such a reply are not run',
    needs: ['any-reply'],
    async run(bench) {
      for (const finishReason of ['length', 'content_filter'] as const)
        expectSame(
          'finishReason',
          (await bench.reply({ text: 'Half a sen', finishReason })).finishReason,
          finishReason,
        );
      const { finishReason } = await bench.reply({ calls: [OSLO], finishReason: 'length' });
      expectSame('finishReason of a cut reply with a call', finishReason, 'length');
    },
  },
  'counts the tokens': {
    rule: '`usage` of LLMResponse has all of the input, all of the output, reasoning included, and the sum',
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
        rule: `\`usage.${part}\` is there where the provider tells it`,
        needs: ['usage', capability],
        async run(bench) {
          const { usage } = await bench.reply({ text: 'Hello', reasoning: THOUGHT });
          expectSame(`usage.${part}`, usage?.[part], count);
        },
      },
    ]),
  ),
  'gives what the model thought apart from what it said': {
    rule: '`reasoning` of LLMResponse is text for people, and never part of `content`',
    needs: ['reasoning'],
    async run(bench) {
      const response = await bench.reply({ text: 'Hello', reasoning: THOUGHT, calls: [OSLO] });
      expectSame('content', response.content, 'Hello');
      expectSame('reasoning', response.reasoning, THOUGHT.text);
    },
  },
};

/** Statuses of temporary failures, and below, of faulty requests. */
const PASSING = [408, 429, 500, 502, 503, 504] as const;
const LASTING = [400, 401, 403, 404, 413, 422] as const;

/** Cases about failures of a server. */
const FAILURE_CASES: CaseDrafts = {
  'throws errors that say whether to try again': {
    rule: 'implementations throw where no reply could be had; `status` is the server’s, and `retryable` says whether the same request may succeed later (408, 429, 5xx)',
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
    rule: '`retryAfterMs` of the error is what the server’s `retry-after` asks for, in milliseconds',
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
