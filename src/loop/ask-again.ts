import { setTimeout as pause } from 'node:timers/promises';
import { SafeLog } from '../call/log.js';
import type { RequestTrace } from '../contract/telemetry.js';
import { isRecord } from '../kernel/json.js';
import type { Failure, PartListener, Reply } from './ask-model.js';
import { type LoopRun, targetOf } from './loop-run.js';
import { buildRequest, type Offer } from './request.js';
import { askWithin, requestEnd, traceOfRequest } from './trace-run.js';

const DEFAULT_RETRIES = 2;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 8_000;
/** A server that asks for a longer wait than this is not waited for. */
const LONGEST_RETRY_AFTER_MS = 60_000;

/** A request that failed, and how it was made. */
interface FailedRequest {
  readonly failure: Failure;
  readonly offer: Offer;
  readonly onPart?: PartListener | undefined;
  readonly trace: RequestTrace | undefined;
}

/**
 * What becomes of a request that failed: the same once more where the failure may pass, then the next provider of
 * the run, which is asked from then on. Once a part of the reply was told nothing is tried again: it would be told
 * twice.
 */
export async function askAgain(run: LoopRun, failed: FailedRequest): Promise<Reply> {
  const { failure, offer, onPart } = failed;
  let { trace } = failed;
  let reply: Reply = failure;
  for (let tries = 0; !reply.ok && reply.reason === 'failed' && !reply.isTold && !reply.isFinal; ) {
    const { cause } = reply.error;
    tries += triesOf(cause);
    const { providerRetries = DEFAULT_RETRIES } = run.config;
    const wait = tries <= providerRetries ? waitBefore(tries, cause) : undefined;
    if (wait === undefined) {
      if (run.failedOver === run.fallback.length) break;
      run.failedOver += 1;
      tries = 0;
    }
    await tellOfRetry(run, reply, wait ?? 0);
    if (!(await hasPassed(wait ?? 0, run.signal))) reply = { ok: false, reason: 'aborted' };
    else {
      run.providerRetries += 1;
      const asked = { provider: targetOf(run).provider, request: buildRequest(run, offer), onPart };
      if (wait !== undefined)
        trace?.event({ type: 'request-retry', delayMs: wait, error: reply.error.cause });
      else {
        // Another model is another request.
        trace?.end(requestEnd(reply));
        trace = traceOfRequest(run, asked);
      }
      reply = await askWithin(run, trace, asked);
    }
  }
  trace?.end(requestEnd(reply));
  return reply;
}

/** A client that tries again by itself says how often it did. */
function triesOf(cause: unknown): number {
  return isRecord(cause) && typeof cause.tries === 'number' ? Math.max(1, cause.tries) : 1;
}

/** Milliseconds until the same request may be made again; `undefined` where it would not help. */
function waitBefore(tries: number, cause: unknown): number | undefined {
  // The AI SDK's errors say `isRetryable`.
  if (!isRecord(cause) || !(cause.retryable ?? cause.isRetryable)) return undefined;
  const { retryAfterMs } = cause;
  if (typeof retryAfterMs === 'number' && retryAfterMs >= 0)
    return retryAfterMs <= LONGEST_RETRY_AFTER_MS ? retryAfterMs : undefined;
  const longest = Math.min(FIRST_PAUSE_MS * 2 ** (tries - 1), LONGEST_PAUSE_MS);
  // Clients that failed together would come back together.
  return longest * (0.5 + Math.random() / 2);
}

async function tellOfRetry(run: LoopRun, { error }: Failure, delayMs: number): Promise<void> {
  const { config, sink, iterations: iteration } = run;
  const model = targetOf(run).model ?? config.model;
  new SafeLog(config.logger).warn('The provider failed and the request is made again', {
    model,
    delayMs: Math.round(delayMs),
    error: error.message,
  });
  await sink?.({ type: 'request-retry', iteration, model, delayMs, error });
}

async function hasPassed(delayMs: number, signal: AbortSignal | undefined): Promise<boolean> {
  if (delayMs === 0) return !signal?.aborted;
  try {
    await pause(delayMs, undefined, { signal });
    return true;
  } catch {
    return false;
  }
}
