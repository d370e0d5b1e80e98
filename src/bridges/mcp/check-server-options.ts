import { type InvalidOption, invalidOptions, refuseOptions } from '../../errors/invalid-options.js';
import {
  COUNT,
  COUNT_LIMIT,
  either,
  exactly,
  FUNCTION,
  MILLISECONDS,
  type OptionRule,
  protecting,
  secret,
  TEXT,
  WHOLE,
  withMethods,
} from '../../kernel/option-rules.js';
import { objectOf, optionTable } from '../../kernel/options.js';
import { readHost, readOrigin } from './allowed-names.js';
import type { McpServerOptions, McpSessionOptions } from './mcp-server-options.js';

const STATE_KEY_CHARACTERS = 32;

const STATE_KEY: OptionRule = {
  accepts: (value) => typeof value === 'string' && value.trim().length >= STATE_KEY_CHARACTERS,
  fix: `at least ${STATE_KEY_CHARACTERS} characters that nobody else knows`,
};

const SESSIONS = objectOf<McpSessionOptions>(
  {
    idleMs: { accepts: (value) => Number.isFinite(value) && Number(value) >= 1, fix: 'a number, 1 or more' },
    max: COUNT_LIMIT,
    maxPerPrincipal: COUNT_LIMIT,
    replay: WHOLE,
  },
  { fix: '{ max: 1_000 }' },
);

const OPTIONS = optionTable<McpServerOptions>(
  'createMcpServer',
  {
    name: TEXT,
    version: TEXT,
    title: TEXT,
    instructions: TEXT,
    pageSize: COUNT_LIMIT,
    scope: protecting({ ...FUNCTION, fix: '(caller) => ({ data: {} })' }),
    visible: protecting({ ...FUNCTION, fix: '(caller) => ({ deny: [] })' }),
    policy: protecting({ ...FUNCTION, fix: '({ tool, context }) => true' }),
    toolTimeoutMs: MILLISECONDS,
    onAsyncResult: { ...FUNCTION, fix: '(context, result) => {}' },
    allowedHosts: protecting(namesBy(readHost)),
    allowedOrigins: protecting(namesBy(readOrigin)),
    sessions: either(SESSIONS, exactly(false)),
    maxRequestBytes: COUNT,
    maxUnreadBytes: COUNT_LIMIT,
    principal: protecting({ ...FUNCTION, fix: "(authInfo) => authInfo?.clientId ?? ''" }),
    stateKey: protecting(secret(STATE_KEY)),
    configure: { ...FUNCTION, fix: '(server) => {}' },
    onError: { ...FUNCTION, fix: '(error) => console.error(error)' },
  },
  { allow: 'visible: () => ({ allow: […] })', deny: 'visible: () => ({ deny: […] })' },
);

/** What is used of a registry; it may be one of another copy of this package. */
const REGISTRY = withMethods(['invoke', 'tools', 'view', 'onChange', 'offered'], 'a ToolRegistry');

const NO_REGISTRY: InvalidOption = {
  where: OPTIONS.of,
  option: 'registry',
  problem: 'the first argument is no ToolRegistry',
  fix: 'createMcpServer(new ToolRegistry().register(…), { … })',
};

/** Throws all mistakes in what a server is made of, together. */
export function checkServerOptions(registry: unknown, options: unknown): void {
  refuseOptions([...(REGISTRY.accepts(registry) ? [] : [NO_REGISTRY]), ...invalidOptions(options, OPTIONS)]);
}

function namesBy(read: typeof readHost): OptionRule {
  return {
    accepts: (value) =>
      value === 'any' || (Array.isArray(value) && value.every((name) => !('problem' in read(name)))),
    fix: "['mcp.example.org'], or 'any'",
    explain: (value, option) => {
      if (!Array.isArray(value)) {
        const entry = typeof value === 'string' ? `'${value}'` : `'mcp.example.org'`;
        const fix = `${option}: [${entry}], or ${option}: 'any'`;
        return [{ option, problem: `${option} is no list`, fix }];
      }
      return value.map(read).flatMap((name) => ('problem' in name ? [{ option, ...name }] : []));
    },
  };
}
