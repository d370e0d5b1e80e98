import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { checkOptions } from '../../../core/errors/author-fault.js';
import {
  ADDRESS,
  FILLED_TEXT,
  HEADERS,
  listOf,
  type OptionRule,
  optionTable,
  RECORD,
  required,
  secret,
  TEXT,
} from '../../../core/kernel/options.js';

const TEXTS: OptionRule = {
  accepts: (value) =>
    RECORD.accepts(value) && Object.values(value as object).every((one) => typeof one === 'string'),
  fix: "{ NAME: 'value' }",
};

const PROGRAM = optionTable<Extract<McpServerSettings, { readonly command: string }>>(
  'an MCP server',
  {
    command: required(FILLED_TEXT),
    args: listOf(TEXT, "['--verbose']"),
    env: secret(TEXTS),
    cwd: FILLED_TEXT,
  },
  { environment: 'env: …', folder: 'cwd: …' },
);

const SERVER = optionTable<Extract<McpServerSettings, { readonly url: string }>>('an MCP server', {
  url: required(ADDRESS),
  headers: HEADERS,
});

/**
 * A function that connects to a server: it starts a program and uses its standard input and output, or connects to a
 * URL over streamable HTTP.
 *
 * @throws InvalidOptionsError (521).
 */
export function serverConnection(settings: McpServerSettings): () => Promise<Client> {
  checkOptions(settings, 'url' in settings ? SERVER : PROGRAM);
  return async () => {
    const client = new Client(
      { name: 'toolwright', version: '1.0.0' },
      { versionNegotiation: { mode: 'auto' } },
    );
    await client.connect(transportOf(settings));
    return client;
  };
}

function transportOf(settings: McpServerSettings): StdioClientTransport | StreamableHTTPClientTransport {
  if (!('url' in settings)) {
    const { command, args = [], env, cwd } = settings;
    return new StdioClientTransport({
      command,
      args: [...args],
      ...(env && { env: { ...env } }),
      ...(cwd && { cwd }),
    });
  }
  const { url, headers } = settings;
  return new StreamableHTTPClientTransport(new URL(url), headers && { requestInit: { headers } });
}

/** A server: a program to start, or a URL. */
export type McpServerSettings =
  | {
      readonly command: string;
      readonly args?: readonly string[];
      /** In addition to the variables that every program needs. */
      readonly env?: Readonly<Record<string, string>>;
      readonly cwd?: string;
    }
  | { readonly url: string; readonly headers?: Readonly<Record<string, string>> };
