import { checkOptions } from '../../errors/author-fault.js';
import { withinLimits } from '../../kernel/async.js';
import { errorMessage } from '../../kernel/error-message.js';
import { isRecord } from '../../kernel/json.js';
import {
  FILLED_TEXT,
  FUNCTION,
  listOf,
  MILLISECONDS,
  oneOf,
  optionTable,
  required,
} from '../../kernel/options.js';
import { ABORT_CASES } from './abort-cases.js';
import { Bench, type Method } from './bench.js';
import { CAPABILITIES, type CaseDraft, type ProviderCapability } from './conformance-case.js';
import { BrokenRule } from './expectations.js';
import { FAILURE_CASES } from './failure-cases.js';
import type { ProviderBackend } from './provider-backend.js';
import { REPLY_CASES } from './reply-cases.js';
import { REQUEST_CASES } from './request-cases.js';
import { SETTING_CASES } from './setting-cases.js';
import { STREAM_CASES } from './stream-cases.js';

/** Options of {@link providerConformance}. */
export interface ProviderConformanceOptions {
  /** How titles name the provider: `MyProvider`. */
  readonly name: string;
  /** Makes the provider and what stands behind it, for each case anew: {@link httpBackend}, or an object of your own. */
  readonly backend: () => ProviderBackend | Promise<ProviderBackend>;
  /** What the provider does not have; cases that need it are left out. Default: it has everything. */
  readonly without?: readonly ProviderCapability[];
  /** Milliseconds after which a case is given up; default: a minute. */
  readonly timeoutMs?: number;
}

/** One case of the suite, for any test runner. */
export interface ConformanceCase {
  /** `MyProvider.chat gives a text as the model said it`. */
  readonly title: string;
  /** Rejects with what the provider does wrong, and the rule of the contract that it breaks. */
  run(): Promise<void>;
}

/** A case that was left out. */
export interface OmittedCase {
  readonly title: string;
  /** What of it was declared absent. */
  readonly without: readonly ProviderCapability[];
}

/** The cases of a provider. */
export interface ProviderConformance extends ReadonlyArray<ConformanceCase> {
  readonly leftOut: readonly OmittedCase[];
}

const OPTIONS = optionTable<ProviderConformanceOptions>('providerConformance', {
  name: required(FILLED_TEXT),
  backend: required({ ...FUNCTION, fix: '() => httpBackend({ create: (url) => …, encode: (reply) => … })' }),
  without: listOf(oneOf(...CAPABILITIES), "['files', 'response-format']"),
  timeoutMs: MILLISECONDS,
});

const DRAFTS = [
  ...REPLY_CASES,
  ...STREAM_CASES,
  ...REQUEST_CASES,
  ...SETTING_CASES,
  ...FAILURE_CASES,
  ...ABORT_CASES,
];
const METHODS: readonly Method[] = ['chat', 'stream'];

/**
 * What the contract of `LLMProvider` asks of a provider, as cases for any test runner. Each has a provider and a model
 * of its own; the model says what the case tells it to.
 *
 * @throws InvalidOptionsError for wrong options, and where `without` names what there is not.
 *
 * @example
 * ```ts
 * const cases = providerConformance({
 *   name: 'OfflineProvider',
 *   backend: () => ({ provider: new OfflineProvider(), model: 'offline', script: () => undefined }),
 *   without: ['streaming', 'any-reply', 'waiting', 'errors', 'usage', 'reasoning', 'sent'],
 * });
 * const results = await Promise.allSettled(cases.map(({ run }) => run()));
 * console.log(results, cases.leftOut);
 * ```
 */
export function providerConformance(options: ProviderConformanceOptions): ProviderConformance {
  checkOptions(options, OPTIONS);
  const absent = new Set(options.without);
  const all = METHODS.flatMap((method) =>
    DRAFTS.filter(({ methods = METHODS }) => methods.includes(method)).map((draft) => ({
      title: `${options.name}.${method} ${draft.title}`,
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
