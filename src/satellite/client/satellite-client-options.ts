import type { Logger } from '../../contract/logger.js';
import {
  COUNT_LIMIT,
  FILLED_TEXT,
  HEADERS,
  instanceOf,
  LIMIT,
  LOGGER,
  MILLISECONDS,
  type OptionFault,
  type OptionRule,
  required,
  secret,
} from '../../kernel/option-rules.js';
import { optionTable } from '../../kernel/options.js';
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
  /** Milliseconds for one request, until its whole reply is there (300,000). */
  readonly timeoutMs?: number;
  /** Bytes of a reply at most, all its events included (10 mebibytes). */
  readonly maxReplyBytes?: number;
  /** Milliseconds for tools that set no `timeoutMs` (120,000). */
  readonly toolTimeoutMs?: number;
  /** Characters of a result at most, for tools that set no limit; the server takes a mebibyte (100,000). */
  readonly maxResultChars?: number;
  readonly logger?: Logger;
}

const URL_OPTION: OptionRule = {
  // `/v1/chat` goes behind it; `fetch` refuses users and passwords.
  accepts: (value) => {
    const url = URL.parse(String(value));
    return (
      /^https?:$/.test(url?.protocol ?? '') && !(url?.search || url?.hash || url?.username || url?.password)
    );
  },
  fix: "'https://assistant.example.org'",
  explain: (value, option) => {
    const url = URL.parse(String(value));
    if (!url?.username && !url?.password) return [];
    return [
      { option, problem: 'url holds a user or a password', fix: "headers: { authorization: 'Basic …' }" },
    ];
  },
};

export const CLIENT_OPTIONS = optionTable<SatelliteClientOptions>('SatelliteClient', {
  url: required(URL_OPTION),
  tools: required(instanceOf(ToolRegistry, 'new ToolRegistry()')),
  token: secret({
    accepts: (value) => FILLED_TEXT.accepts(value) && HEADERS.accepts({ authorization: `Bearer ${value}` }),
    fix: "'letters-and-digits'",
    explain: (value, option) => (FILLED_TEXT.accepts(value) ? [unsendable(option)] : []),
  }),
  headers: HEADERS,
  maxIterations: COUNT_LIMIT,
  maxRetries: LIMIT,
  timeoutMs: MILLISECONDS,
  maxReplyBytes: COUNT_LIMIT,
  toolTimeoutMs: MILLISECONDS,
  maxResultChars: LIMIT,
  logger: LOGGER,
});

function unsendable(option: string): OptionFault {
  return { option, problem: `${option} holds what no header can`, fix: `${option}: letters, digits and -` };
}
