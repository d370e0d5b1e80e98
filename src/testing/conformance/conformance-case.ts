import type { Bench, Method } from './bench.js';

/** What providers may lack, by the name to declare it with; the guide on testing says what each means. */
export const CAPABILITIES = [
  'streaming',
  'call-input',
  'any-reply',
  'raw-arguments',
  'parallel-calls',
  'call-ids',
  'waiting',
  'wire',
  'errors',
  'retry-after',
  'usage',
  'cache-read-tokens',
  'cache-write-tokens',
  'reasoning-tokens',
  'reasoning',
  'provider-items',
  'sent',
  'images',
  'files',
  'tool-choice',
  'parallel-choice',
  'response-format',
  'json-format',
] as const;

/** Something that not all providers have. */
export type ProviderCapability = (typeof CAPABILITIES)[number];

/** One case before it is written for a provider. */
export interface CaseDraft {
  /** What the provider does, as the end of a sentence that begins with its name. */
  readonly title: string;
  /** What the contract says. */
  readonly rule: string;
  readonly needs?: readonly ProviderCapability[];
  /** Default: both. */
  readonly methods?: readonly Method[];
  run(bench: Bench): Promise<void>;
}
