import { basename } from 'node:path';
import { Writable } from 'node:stream';
import { parseArgs } from 'node:util';
import { InvalidOptionsError, ToolDeclarationError } from '../../core/errors/author-fault.js';
import type { ToolRegistry } from '../../run/call/tool-registry.js';
import { type Command, type CommandEnvironment, UserFault } from './command.js';
import { NO_TOOLS, type OpenModule, openModule, registryOfModule } from './open-module.js';
import { packageManifest } from './package-manifest.js';

interface McpOptions {
  readonly module: string;
  readonly name: string;
  readonly allow?: readonly string[] | undefined;
  readonly deny?: readonly string[] | undefined;
}

/**
 * `toolwright mcp <module>`: serves the tools of a module over standard input and output, until the client
 * goes.
 */
export const mcpCommand: Command = {
  async run(args, environment) {
    const options = readOptions(args);
    const output = keepStandardOutput();
    const { createMcpServer } = await loadBridge();
    const opened = await openTools(options, environment);
    if (opened === undefined) return 1;
    const { registry } = opened;
    const mcp = createMcpServer(registry, {
      name: options.name,
      version: packageManifest().version,
      onError: (error) => environment.error(`toolwright: ${String(error)}\n`),
    });
    const connection = mcp.stdio({ output });
    environment.error(`toolwright: ${registry.count()} tools of ${options.module} over stdio\n`);
    const end = () => void connection.close();
    environment.signal?.addEventListener('abort', end);
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, end);
    await connection.closed;
    await mcp.close();
    await opened.close();
    return 0;
  },
};

function readOptions(args: readonly string[]): McpOptions {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: {
      name: { type: 'string' },
      allow: { type: 'string', multiple: true },
      deny: { type: 'string', multiple: true },
    },
    allowPositionals: true,
  });
  const [module, second] = positionals;
  if (module === undefined || second !== undefined)
    throw new UserFault('mcp takes one module: toolwright mcp dist/tools.js');
  const { allow, deny, name = basename(module).replace(/\.[cm]?[jt]s$/, '') } = values;
  return { module, name, ...(allow ? { allow } : {}), ...(deny ? { deny } : {}) };
}

/**
 * The protocol has standard output for itself: whatever else a toolset writes there goes to the error output,
 * which clients show as the log.
 */
function keepStandardOutput(): Writable {
  const write = process.stdout.write.bind(process.stdout);
  process.stdout.write = process.stderr.write.bind(process.stderr);
  // A client that is gone is noticed where its messages end.
  process.stdout.on('error', () => {});
  const output = new Writable({
    write: (chunk, _encoding, done) => void write(chunk, (error) => done(error)),
  });
  // Each message that has to wait listens for itself, however many there are.
  return output.setMaxListeners(0);
}

async function loadBridge() {
  try {
    return await import('../../surfaces/mcp/index.js');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new UserFault(
      'mcp needs @modelcontextprotocol/server: npm install @modelcontextprotocol/server',
      1,
    );
  }
}

/** A tool whose name was mistyped under `--deny` would be served. */
function checkPatterns(registry: ToolRegistry, patterns: Pick<McpOptions, 'allow' | 'deny'>): void {
  const unmet = Object.entries(patterns).flatMap(([option, names = []]) =>
    names
      .filter((name) => registry.view({ allow: [name] }).count() === 0)
      .map((name) => `--${option} '${name}'`),
  );
  if (unmet.length === 0) return;
  const verb = unmet.length === 1 ? 'matches' : 'match';
  throw new UserFault(`${unmet.join(' and ')} ${verb} no tool; there are ${registry.list().join(', ')}`);
}

/** The tools that are served, and the end of what was started for them. */
interface OpenTools extends Pick<OpenModule, 'close'> {
  readonly registry: ToolRegistry;
}

async function openTools(
  options: McpOptions,
  environment: CommandEnvironment,
): Promise<OpenTools | undefined> {
  try {
    const { exports, close } = await openModule(options.module, environment.folder);
    return { registry: filteredRegistry(exports, options), close };
  } catch (fault) {
    if (!(fault instanceof ToolDeclarationError || fault instanceof InvalidOptionsError)) throw fault;
    environment.error(`${fault.message}\n`);
    return undefined;
  }
}

function filteredRegistry(exports: OpenModule['exports'], { module, allow, deny }: McpOptions): ToolRegistry {
  const registry = registryOfModule(exports);
  if (registry === undefined) throw new UserFault(`${module} exports ${NO_TOOLS}`, 1);
  checkPatterns(registry, { allow, deny });
  return registry.view({ ...(allow ? { allow } : {}), ...(deny ? { deny } : {}) });
}
