import './tests.mjs';
import { runTests } from '@jest/globals';

/** The form in which Workers take a program. */
export default {
  async fetch() {
    return new Response(await runTests());
  },
};
