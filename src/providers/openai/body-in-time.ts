/** A request on its way, as the client gives it. */
interface SentRequest<Body> extends Promise<Body> {
  /** Settles when the headers of the answer are there. */
  asResponse(): Promise<unknown>;
}

/**
 * Sends a request and waits no longer for the body of the answer than for its headers. The client does so from
 * version 7 on; older ones would wait for ever.
 *
 * @throws what the client throws; Error where time is up.
 */
export async function bodyInTime<Body>(
  send: (signal: AbortSignal) => SentRequest<Body>,
  { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal?: AbortSignal },
): Promise<Body> {
  const late = new AbortController();
  const sent = send(signal === undefined ? late.signal : AbortSignal.any([signal, late.signal]));
  await sent.asResponse();
  const timer = setTimeout(() => late.abort(), timeoutMs);
  try {
    return await sent;
  } catch (error) {
    throw late.signal.aborted ? new Error('Request timed out.', { cause: error }) : error;
  } finally {
    clearTimeout(timer);
  }
}
