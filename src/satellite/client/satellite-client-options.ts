import type { Logger } from '../../contract/logger.js';
import { type AuthorFault, ToolDeclarationError } from '../../errors/author-fault.js';
import { checkNumbers } from '../../errors/check-numbers.js';
import { ToolRegistry } from '../../registry/tool-registry.js';

/** Options of a `SatelliteClient`. */
export interface SatelliteClientOptions {
  /** Where the assistant is, before `/v1/chat` and without a query: `https://assistant.example.org`. */
  readonly url: string | URL;
  /** What can be run here; all limits and policies of the registry hold. */
  readonly tools: ToolRegistry;
  /** Sent as `Authorization: Bearer …`. */
  readonly token?: string;
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Requests of one `send` or `resume` at most (20). */
  readonly maxIterations?: number;
  /** How often a request is sent again that did not come through (5). */
  readonly maxRetries?: number;
  /** Milliseconds for tools that set no `timeoutMs` (120,000). */
  readonly toolTimeoutMs?: number;
  /** Characters of a result at most, for tools that set no limit; the server takes a mebibyte (100,000). */
  readonly maxResultChars?: number;
  readonly logger?: Logger;
}

const WHERE = 'new SatelliteClient';

/** @throws ToolDeclarationError (502) naming everything that is wrong. */
export function checkClientOptions(options: SatelliteClientOptions): void {
  const faults: AuthorFault[] = [];
  const url = URL.parse(String(options?.url));
  // `fetch` refuses these; and a password is not to be in a message.
  if (url?.username || url?.password)
    faults.push({
      where: WHERE,
      problem: 'its url holds a user or a password',
      fix: "headers: { authorization: 'Basic …' }",
    });
  // `/v1/chat` goes behind it.
  else if (!/^https?:$/.test(url?.protocol ?? '') || url?.search || url?.hash)
    faults.push({
      where: WHERE,
      problem: `url is ${String(options?.url)}`,
      fix: "url: 'https://assistant.example.org'",
    });
  if (!(options?.tools instanceof ToolRegistry))
    faults.push({ where: WHERE, problem: 'its tools are no ToolRegistry', fix: 'tools: new ToolRegistry()' });
  if (!canBeSent(options ?? {}))
    faults.push({
      where: WHERE,
      problem: 'its token or headers hold what no header can',
      fix: "token: 'letters-and-digits'",
    });
  if (faults.length > 0) throw new ToolDeclarationError(faults);
  checkNumbers(WHERE, options, {
    maxIterations: { min: 1, isWhole: true, allowsInfinity: true },
    maxRetries: { min: 0, isWhole: true, allowsInfinity: true },
    toolTimeoutMs: { min: 1, allowsInfinity: true },
    maxResultChars: { min: 0, isWhole: true, allowsInfinity: true },
  });
}

function canBeSent({ token = '', headers }: Pick<SatelliteClientOptions, 'token' | 'headers'>): boolean {
  try {
    new Headers({ ...headers, authorization: `Bearer ${token}` });
    return true;
  } catch {
    return false;
  }
}
