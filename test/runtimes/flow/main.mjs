import './tests.mjs';
// Needs node:vm, which Workers do not have.
import '../../flow/results.test.ts';
import { runTests } from '@jest/globals';

// CommonJS bundles have no top-level `await`.
runTests().then((report) => console.log(report));
