import { type AuthorFault, ToolDeclarationError } from '../../errors/author-fault.js';
import { checkNumbers } from '../../errors/check-numbers.js';
import { readHost, readOrigin } from './allowed-names.js';
import { MCP_SERVER_NUMBERS, MCP_SESSION_NUMBERS } from './mcp-server-options.js';

const WHERE = 'createMcpServer';
const STATE_KEY_CHARACTERS = 32;
const TEXTS = ['name', 'version', 'title', 'instructions', 'stateKey'];
const FUNCTIONS: Readonly<Record<string, string>> = {
  scope: '(caller) => ({ data: {} })',
  visible: '(caller) => ({ deny: [] })',
  policy: '({ tool, context }) => true',
  principal: '(authInfo) => authInfo?.clientId ?? ""',
  onAsyncResult: '(context, result) => {}',
  configure: '(server) => {}',
  onError: '(error) => console.error(error)',
};
/** What is used of a registry; it may be one of another copy of this package. */
const REGISTRY = ['invoke', 'tools', 'view', 'onChange', 'offered'];

type Given = Readonly<Record<string, unknown>>;

/** Throws all mistakes in what a server is made of, together. */
export function checkServerOptions(registry: unknown, options: object): void {
  const given = options as Given;
  const faults = [
    ...registryFaults(registry),
    ...TEXTS.flatMap((name) => typeFaults(given, name, { type: 'string', fix: `'…'` })),
    ...Object.entries(FUNCTIONS).flatMap(([name, fix]) => typeFaults(given, name, { type: 'function', fix })),
    ...nameFaults(given, 'allowedHosts', readHost),
    ...nameFaults(given, 'allowedOrigins', readOrigin),
    ...keyFaults(given.stateKey),
    ...faultsOf(() => checkNumbers(WHERE, given, MCP_SERVER_NUMBERS)),
    ...sessionFaults(given.sessions),
  ];
  if (faults.length > 0) throw new ToolDeclarationError(faults);
}

function registryFaults(registry: unknown): readonly AuthorFault[] {
  const methods = Object(registry) as Given;
  if (REGISTRY.every((name) => typeof methods[name] === 'function')) return [];
  const fix = 'createMcpServer(new ToolRegistry().register(…), { … })';
  return [{ where: WHERE, problem: 'the first argument is no ToolRegistry', fix }];
}

function typeFaults(
  given: Given,
  name: string,
  { type, fix }: { readonly type: string; readonly fix: string },
): readonly AuthorFault[] {
  const value = given[name];
  if (value === undefined || typeof value === type) return [];
  return [{ where: WHERE, problem: `${name} is no ${type}`, fix: `${name}: ${fix}` }];
}

function nameFaults(given: Given, list: string, read: typeof readHost): readonly AuthorFault[] {
  const names = given[list];
  if (names === undefined || names === 'any') return [];
  if (!Array.isArray(names)) {
    const entry = typeof names === 'string' ? `'${names}'` : `'mcp.example.org'`;
    return [{ where: WHERE, problem: `${list} is no list`, fix: `${list}: [${entry}], or ${list}: 'any'` }];
  }
  return names.map(read).flatMap((name) => {
    if (!('problem' in name)) return [];
    return [{ where: WHERE, parameter: list, problem: name.problem, fix: name.fix }];
  });
}

function keyFaults(key: unknown): readonly AuthorFault[] {
  if (typeof key !== 'string' || key.length >= STATE_KEY_CHARACTERS) return [];
  const fix = `stateKey: at least ${STATE_KEY_CHARACTERS} characters that nobody else knows`;
  return [{ where: WHERE, problem: 'stateKey can be guessed', fix }];
}

function sessionFaults(sessions: unknown): readonly AuthorFault[] {
  if (sessions === undefined || sessions === false) return [];
  if (typeof sessions !== 'object' || sessions === null)
    return [
      { where: WHERE, problem: `sessions is ${String(sessions)}`, fix: 'sessions: { max: 1_000 }, or false' },
    ];
  return faultsOf(() => checkNumbers(`${WHERE}: sessions`, sessions, MCP_SESSION_NUMBERS));
}

function faultsOf(check: () => void): readonly AuthorFault[] {
  try {
    check();
    return [];
  } catch (error) {
    if (error instanceof ToolDeclarationError) return error.faults;
    throw error;
  }
}
