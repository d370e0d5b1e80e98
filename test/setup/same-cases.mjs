// Everybody's `npm test` tries the same cases, so that what fails is what was changed; `npm run test:long` tries new ones.
// This is fast-check's `configureGlobal` for each test file, without fast-check for those that do not use it.
const SEED = 1;

if (process.env.TOOLWRIGHT_RUNS === undefined)
  globalThis[Symbol.for('fast-check/GlobalParameters')] = { seed: SEED };
