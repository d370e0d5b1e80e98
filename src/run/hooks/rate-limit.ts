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
  /** The most calls of each tool, for each key. */
  readonly calls: number;
  /** The length of the window in milliseconds; it slides. */
  readonly perMs: number;
  /** Returns the key that has its own limit: any JSON; default: the owner of the scope. */
  readonly key?: (scope: CallScope) => unknown;
  /** Selects the limited calls; default: all. */
  readonly tools?: (call: HookedCall) => boolean;
  /** The clock, in milliseconds; default: `Date.now`. For tests. */
  readonly now?: () => number;
}

const OPTIONS = optionTable<RateLimitOptions>('rateLimit', {
  calls: required(COUNT),
  perMs: required(MILLISECONDS),
  key: protecting({ ...FUNCTION, fix: '({ data }) => data?.tenant' }),
  tools: protecting({ ...FUNCTION, fix: "({ name }) => name.startsWith('mail_')" }),
  now: FUNCTION,
});

/** Above this number of keys, expired ones are deleted. */
const MANY_KEYS = 1_000;

/**
 * A hook that refuses calls that come too often: the model learns when the next call is allowed. It counts calls that
 * are about to run, so rejected and refused calls do not count. It counts in this process; to count in a store for
 * all processes, use a budget of `calls` with a key and a window.
 *
 * @throws InvalidOptionsError (521) for invalid options.
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
      if (times.size > MANY_KEYS)
        for (const [known, at] of times) if ((at.at(-1) ?? 0) <= time - perMs) times.delete(known);
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
