import type { CheckpointStore } from '../../contract/run-checkpoint.js';
import type { RunStore } from '../../contract/run-state.js';
import { checkOptions } from '../../errors/author-fault.js';
import { BOOLEAN, FILLED_TEXT, FUNCTION, optionTable, required } from '../../kernel/options.js';
import type { ConformanceCase } from '../conformance/provider-conformance.js';
import { CHECKPOINT_CASES, LIST_CASES } from './checkpoint-cases.js';
import { CLAIM_CASES } from './claim-cases.js';
import { CONCURRENT_CASES } from './concurrent-cases.js';
import { CheckpointBench, type OpenedStore, StoreBench } from './store-bench.js';

/** Options of {@link runStoreConformance}. */
export interface RunStoreConformanceOptions {
  /** How titles name the store: `MyRunStore`. */
  readonly name: string;
  /** Opens a store with nothing in it, for each case anew. */
  readonly open: () => OpenedStore | Promise<OpenedStore>;
  /** Whether it keeps runs under way, too: a `CheckpointStore`. Default: true. */
  readonly checkpoints?: boolean;
}

const OPTIONS = optionTable<RunStoreConformanceOptions>('runStoreConformance', {
  name: required(FILLED_TEXT),
  open: required({ ...FUNCTION, fix: '() => ({ store: new MyRunStore(), advance: (ms) => … })' }),
  checkpoints: BOOLEAN,
});

/**
 * What the contracts of `RunStore` and `CheckpointStore` ask of a store, as cases for any test runner: claims and
 * leases, writes that come too late, what two do at the same moment, pages and forgetting.
 *
 * @throws InvalidOptionsError (521) for wrong options.
 *
 * @example
 * ```ts
 * const cases = runStoreConformance({
 *   name: 'MemoryRunStore',
 *   open() {
 *     let time = Date.now();
 *     return {
 *       store: new MemoryRunStore({ now: () => time }),
 *       advance(ms) {
 *         time += ms;
 *       },
 *     };
 *   },
 * });
 * for (const { title, run } of cases) test(title, run);
 * ```
 */
export function runStoreConformance(options: RunStoreConformanceOptions): readonly ConformanceCase[] {
  checkOptions(options, OPTIONS);
  const { name, open, checkpoints = true } = options;
  const withStore = async (work: (opened: OpenedStore) => Promise<void>): Promise<void> => {
    const opened = await open();
    try {
      await work(opened);
    } finally {
      await opened.close?.();
    }
  };
  const claims = CLAIM_CASES.map(({ title, run }) => ({
    title: `${name}.${title}`,
    run: () => withStore((opened) => run(new StoreBench<RunStore>(opened))),
  }));
  if (!checkpoints) return claims;
  const others = [...CHECKPOINT_CASES, ...LIST_CASES, ...CONCURRENT_CASES].map(({ title, run }) => ({
    title: `${name}.${title}`,
    run: () => withStore((opened) => run(new CheckpointBench(opened as OpenedStore<CheckpointStore>))),
  }));
  return [...claims, ...others];
}
