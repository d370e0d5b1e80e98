import { report } from './report.js';

/** The form in which Workers take a program. */
export default {
  async fetch(): Promise<Response> {
    return new Response(await report());
  },
};
