import './tests.mjs';
// Needs node:vm, which Workers do not have.
import '../../flow/results.test.ts';
import { runTests } from '@jest/globals';

// Bundles that are CommonJS have no `await` at this level.
runTests().then((report) => console.log(report));
