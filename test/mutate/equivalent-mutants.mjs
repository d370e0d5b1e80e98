/** Mutants that no test can find because they do not change any visible behaviour. */
export const EQUIVALENT = [
  {
    path: 'src/tools/checking/interpreter/interpret-schema.ts',
    source: 'if (second === undefined) return only;',
    to: 'false',
    reason: 'A loop over a single validator gives the same result.',
  },
  {
    path: 'src/run/loop/guard.ts',
    source: 'if (call.signature !== undefined || call.record === undefined) return call.signature;',
    to: '(call.signature !== undefined) && (call.record === undefined)',
    reason: 'The signature is computed again and is the same text.',
  },
  {
    path: 'src/tools/checking/hydration/create-hydrator.ts',
    source: 'if (referred === undefined) return undefined;',
    to: 'false',
    reason: 'A schema whose reference cannot be resolved contains no instances, so it is never hydrated.',
  },
  {
    path: 'src/run/loop/options.ts',
    source: 'if (isRight && lease.length + history.length === 0) return;',
    to: 'false',
    reason: 'The line only skips checks that would find no invalid option.',
  },
  {
    path: 'src/tools/checking/patterns.ts',
    source: 'if (before !== undefined) return before;',
    to: 'false',
    reason: 'The cached result is computed again.',
  },
  {
    path: 'src/tools/checking/formats.ts',
    source: "const last = labels.at(-1) ?? '';",
    to: "'mutant'",
    reason: 'The array that `split` returns is never empty.',
  },
];
