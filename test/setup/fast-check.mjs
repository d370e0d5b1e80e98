// Tests import this as `fast-check`. `npm test` always tries the same cases, so that a failure is caused by a change;
// `npm run test:long` tries new cases each time.
import fc from '../../node_modules/fast-check/lib/fast-check.js';

const SEED = 1;

if (process.env.TOOLWRIGHT_RUNS === undefined) fc.configureGlobal({ seed: SEED });

// fast-check has a default export too.
export default fc;
