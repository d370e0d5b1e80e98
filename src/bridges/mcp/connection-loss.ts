/**
 * How a use of a connection failed: before anything was sent, with the answer lost, or for another reason than
 * the connection.
 */
export type ConnectionLoss = 'before' | 'during' | 'none';

/** Codes of Node and of the SDK that say that nothing was sent, and that the answer is lost. */
const LOSSES: ReadonlyMap<unknown, ConnectionLoss> = new Map<unknown, ConnectionLoss>([
  ...[
    'NOT_CONNECTED',
    ...['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'],
  ].map((code) => [code, 'before'] as const),
  ...[
    'CONNECTION_CLOSED',
    ...[
      'ECONNRESET',
      'EPIPE',
      'ETIMEDOUT',
      'UND_ERR_SOCKET',
      'UND_ERR_HEADERS_TIMEOUT',
      'UND_ERR_BODY_TIMEOUT',
    ],
  ].map((code) => [code, 'during'] as const),
]);
/** The server has forgotten the session, and did not look at the message. */
const SESSION_GONE = 404;
/** All that Node’s `fetch` says for itself. */
const FETCH_FAILED = 'fetch failed';
const MOST_CAUSES = 8;

/**
 * Whether an error says that there is no connection; told apart by its data, as there may be two copies of
 * the SDK.
 */
export function connectionLossOf(error: unknown): ConnectionLoss {
  if (typeof error !== 'object' || error === null) return 'none';
  const { data } = error as { readonly data?: { readonly status?: unknown } };
  if (data?.status === SESSION_GONE) return 'before';
  const causes = causesOf(error);
  const known = causes.map(({ code }) => LOSSES.get(code)).find((loss) => loss !== undefined);
  if (known !== undefined) return known;
  return causes.some(({ message }) => message === FETCH_FAILED) ? 'during' : 'none';
}

/** What is said of a server that did not answer, with what the network said for those who look after it. */
export function unreachableError(server: string, error: unknown): Error {
  if (connectionLossOf(error) === 'none')
    return new Error(`The ${server} cannot be reached: ${messageOf(error)}`, { cause: error });
  const code = causesOf(error).findLast((cause) => LOSSES.has(cause.code))?.code;
  return new Error(`The ${server} cannot be reached${code === undefined ? '' : ` (${String(code)})`}.`, {
    cause: error,
  });
}

interface Cause {
  readonly code?: unknown;
  readonly message?: unknown;
}

/** An error and what it was caused by. */
function causesOf(error: unknown): readonly Cause[] {
  const causes: Cause[] = [];
  for (let cause = error; typeof cause === 'object' && cause !== null && causes.length < MOST_CAUSES; )
    cause = (causes[causes.push(cause) - 1] as { readonly cause?: unknown }).cause;
  return causes;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
