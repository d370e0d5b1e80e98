import './tests.mjs';
import { runTests } from '@jest/globals';

/** Workers require a default export. */
export default {
  async fetch() {
    return new Response(await runTests());
  },
};
