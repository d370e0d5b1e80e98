import type { CaseDraft } from './conformance-case.js';
import { errorOf, expectSame, failureIn } from './expectations.js';

/** Statuses that may be others the next time, and those that say something of the request. */
const PASSING = [408, 429, 500, 502, 503, 504] as const;
const LASTING = [400, 401, 403, 404, 413, 422] as const;

/** What goes wrong at a server. */
export const FAILURE_CASES: readonly CaseDraft[] = [
  {
    title: 'throws errors that say whether to try again',
    rule: 'implementations throw where no reply could be had; `status` is the server’s, and `retryable` says whether the same request may succeed later (408, 429, 5xx)',
    needs: ['errors'],
    async run(bench) {
      for (const status of [...PASSING, ...LASTING]) {
        const failed = bench.fail({ status, message: 'Not now' });
        const failure = failureIn(await errorOf(failed, `a refusal with status ${status} gives a reply`));
        expectSame(`\`status\` of the error for status ${status}`, failure.status, status);
        const isPassing = PASSING.some((passing) => passing === status);
        expectSame(`\`retryable\` of the error for status ${status}`, failure.retryable, isPassing);
      }
      expectSame(
        'content of the reply after failures',
        (await bench.reply({ text: 'Hello' })).content,
        'Hello',
      );
    },
  },
  {
    title: 'tells how long the server asks to wait',
    rule: '`retryAfterMs` of the error is what the server’s `retry-after` asks for, in milliseconds',
    needs: ['errors', 'retry-after'],
    async run(bench) {
      for (const status of [429, 503]) {
        const failed = bench.fail({ status, message: 'Too many requests', retryAfter: 7 });
        const { retryAfterMs } = failureIn(
          await errorOf(failed, `a refusal with status ${status} gives a reply`),
        );
        expectSame(
          `\`retryAfterMs\` of the error for status ${status} with retry-after: 7`,
          retryAfterMs,
          7_000,
        );
      }
    },
  },
];
