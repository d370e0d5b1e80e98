import { report } from './report.js';

/** Workers require a default export. */
export default {
  async fetch(): Promise<Response> {
    return new Response(await report());
  },
};
