import type { CallScope } from '../../core/contract/call.js';
import type { HookedCall, Hooks } from '../../core/contract/hooks.js';
import { checkOptions } from '../../core/errors/author-fault.js';
import { canonicalJson, plainJson } from '../../core/kernel/json.js';
import {
  COUNT,
  FUNCTION,
  MILLISECONDS,
  optionTable,
  protecting,
  required,
} from '../../core/kernel/options.js';

/** Options of {@link rateLimit}. */
export interface RateLimitOptions {
  /** So many calls of each tool, for each key. */
  readonly calls: number;
  /** Within any so many milliseconds. */
  readonly perMs: number;
  /** Who has a limit of their own: any JSON; default: the owner of the scope. */
  readonly key?: (scope: CallScope) => unknown;
  /** Of which calls; default: all. */
  readonly tools?: (call: HookedCall) => boolean;
  /** Milliseconds since any moment; default: `Date.now`. A seam for tests. */
  readonly now?: () => number;
}

const OPTIONS = optionTable<RateLimitOptions>('rateLimit', {
  calls: required(COUNT),
  perMs: required(MILLISECONDS),
  key: protecting({ ...FUNCTION, fix: '({ data }) => data?.tenant' }),
  tools: protecting({ ...FUNCTION, fix: "({ name }) => name.startsWith('mail_')" }),
  now: FUNCTION,
});

/** Of more keys, those are forgotten whose time is over. */
const MANY_KEYS = 1_000;

/**
 * A hook that refuses calls which come too often: the model learns when the next one is allowed. It counts what is
 * about to run, so that what was rejected or refused before takes nothing away. It counts in this process; a budget of
 * `calls` with a key and a window counts in a store, for all of them.
 *
 * @throws InvalidOptionsError (521) for wrong options.
 *
 * @example
 * ```ts
 * const limited = rateLimit({ calls: 10, perMs: 60_000, key: ({ data }) => data?.tenant });
 * const tools = new ToolRegistry({ hooks: [limited] });
 * ```
 */
export function rateLimit(options: RateLimitOptions): Hooks {
  checkOptions(options, OPTIONS);
  const { calls, perMs, key = ({ owner }) => owner, tools, now = Date.now } = options;
  const times = new Map<string, number[]>();
  return {
    name: 'rate-limit',
    beforeRun: (call) => {
      const { name, scope } = call;
      if (tools?.(call) === false) return undefined;
      const time = now();
      if (times.size > MANY_KEYS) forgetBefore(times, time - perMs);
      const whose = canonicalJson([name, plainJson(key(scope)) ?? null]);
      const recent = (times.get(whose) ?? []).filter((at) => at > time - perMs);
      times.set(whose, recent);
      const [oldest] = recent;
      if (recent.length < calls || oldest === undefined) {
        recent.push(time);
        return undefined;
      }
      const waitMs = oldest + perMs - time;
      return { refuse: `it was called ${calls} times within ${perMs} ms; call it again in ${waitMs} ms` };
    },
  };
}

function forgetBefore(times: Map<string, number[]>, limit: number): void {
  for (const [whose, recent] of times) if ((recent.at(-1) ?? 0) <= limit) times.delete(whose);
}
