import type { CallScope } from '../../core/contract/call.js';
import type { HookedCall, Hooks } from '../../core/contract/hooks.js';
import type { StoreWithCache } from '../../core/contract/result-store.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import { ToolResult } from '../../core/contract/tool-result.js';
import { checkOptions } from '../../core/errors/author-fault.js';
import { plainJson } from '../../core/kernel/json.js';
import {
  FUNCTION,
  MILLISECONDS,
  optionTable,
  protecting,
  required,
  storeWith,
} from '../../core/kernel/options.js';
import { jsonDigest } from '../call/effect-key.js';
import { isCutDetails, storedResult } from '../call/result-text.js';
import { fingerprintOf } from '../call/tasks.js';

/** Options of {@link cacheResults}. */
export interface CacheResultsOptions {
  /** Stores the results: a run store. */
  readonly store: StoreWithCache;
  /** Milliseconds that a result is stored; default: 300,000 (five minutes). */
  readonly lifetimeMs?: number;
  /**
   * Returns the owner of results: any JSON; default: the owner of the scope. Without an owner, results are not
   * cached.
   */
  readonly owner?: (scope: CallScope) => unknown;
}

const OPTIONS = optionTable<CacheResultsOptions>('cacheResults', {
  store: required({
    accepts: storeWith<StoreWithCache>('cache', ['cachedResult', 'cacheResult', 'forgetResult']),
    fix: "new SqliteRunStore({ path: 'runs.sqlite' }), or another store with a cache",
  }),
  lifetimeMs: MILLISECONDS,
  owner: protecting({ ...FUNCTION, fix: '({ data }) => data?.tenant' }),
});

const LIFETIME_MS = 300_000;

/**
 * A hook that answers a call of a `readOnly` tool with the earlier result of the same call: with the same owner, tool
 * name, tool definition and arguments. Policies and approvals still apply, and hooks see the cached result like a new
 * one. Failures, cut results and started work are not cached; a failing store is only logged.
 *
 * A tool can set `cache: false`, how long its results are valid (`lifetimeMs`), or that all owners share them
 * (`shared`). Without an owner, only shared results are cached, because such calls may come from different people.
 *
 * @throws InvalidOptionsError (521) for invalid options.
 *
 * @example
 * ```ts
 * const store = new SqliteRunStore({ path: 'runs.sqlite' });
 * const tools = new ToolRegistry({ hooks: [cacheResults({ store, lifetimeMs: 60_000 })] });
 * ```
 */
export function cacheResults(options: CacheResultsOptions): Hooks {
  checkOptions(options, OPTIONS);
  const { store, lifetimeMs = LIFETIME_MS, owner = (scope: CallScope) => scope.owner } = options;
  const { cache } = store;
  /** Everything that the result depends on; `undefined` if it must not be cached. */
  const keyFor = ({ tool, arguments: args, scope }: HookedCall): string | undefined => {
    const owned = owner(scope);
    if (tool === undefined || args === undefined || tool.cache === false) return undefined;
    if (tool.annotations?.readOnly !== true || tool.background || tool.execution === 'client')
      return undefined;
    const { shared = false } = cachingOf(tool);
    const whose = shared ? undefined : plainJson(owned);
    if (!shared && (whose === undefined || whose === null)) return undefined;
    // Agents have tools of their own, which may have the names of the calling run's tools.
    const definition = [tool.name, tool.description, fingerprintOf(tool)];
    return jsonDigest([shared ? 'shared' : 'owner', whose, ...definition, args]);
  };
  return {
    name: 'cache-results',
    beforeRun: async (call) => {
      const key = keyFor(call);
      if (key === undefined) return undefined;
      try {
        const kept = await cache.cachedResult(key);
        return kept === undefined ? undefined : { result: new ToolResult(kept), note: { cached: true } };
      } catch (error) {
        // The tool can answer instead.
        return { note: { failed: String(error) } };
      }
    },
    afterCall: async (call) => {
      const { status, original, isAnswered, isCompletion, tool } = call;
      const key = keyFor(call);
      const isKept = status === 'success' && !isAnswered && !isCompletion && !original.async;
      if (key === undefined || !isKept || isCutDetails(original.details)) return undefined;
      const { lifetimeMs: own = lifetimeMs } = cachingOf(tool);
      try {
        await cache.cacheResult(key, storedResult(original), own);
        return undefined;
      } catch (error) {
        return { note: { failed: String(error) } };
      }
    },
  };
}

function cachingOf(tool: ToolDefinition | undefined) {
  return typeof tool?.cache === 'object' ? tool.cache : {};
}
