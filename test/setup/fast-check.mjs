// What tests get for `fast-check`. Everybody's `npm test` tries the same cases, so that what fails is what was
// changed; `npm run test:long` tries new ones each time.
import fc from '../../node_modules/fast-check/lib/fast-check.js';

const SEED = 1;

if (process.env.TOOLWRIGHT_RUNS === undefined) fc.configureGlobal({ seed: SEED });

// As fast-check has it.
export default fc;
