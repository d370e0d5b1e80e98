import { basename } from 'node:path';
import { Writable } from 'node:stream';
import { parseArgs } from 'node:util';
import { withoutUndefined } from '../../core/kernel/json.js';
import type { ToolRegistry } from '../../run/call/tool-registry.js';
import { type Command, UserFault } from './command.js';
import { checkMcp } from './mcp-check.js';
import { writeServerJson } from './mcp-server-json.js';
import { requiredRegistry, withModule } from './open-module.js';
import { packageManifest } from './package-manifest.js';

interface McpOptions {
  readonly module: string;
  readonly name: string;
  readonly allow?: readonly string[] | undefined;
  readonly deny?: readonly string[] | undefined;
}

/**
 * `toolwright mcp <module>`: serves the tools of a module over standard input and output, until the client disconnects.
 * `mcp check` and `mcp server-json` have files of their own.
 */
export const mcpCommand: Command = {
  async run(args, environment) {
    const [first, ...rest] = args;
    if (first === 'check') return checkMcp(rest, environment);
    if (first === 'server-json') return writeServerJson(rest, environment);
    const options = readOptions(args);
    const output = keepStandardOutput();
    const { createMcpServer } = await loadBridge();
    return withModule(options.module, environment, async (module) => {
      const registry = visibleTools(requiredRegistry(options.module, module), options);
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
      return 0;
    });
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

/** Reserves standard output for the protocol: other output goes to standard error, which clients show as the log. */
function keepStandardOutput(): Writable {
  const write = process.stdout.write.bind(process.stdout);
  process.stdout.write = process.stderr.write.bind(process.stderr);
  // A disconnected client is noticed at the end of its input.
  process.stdout.on('error', () => {});
  const output = new Writable({
    write: (chunk, _encoding, done) => void write(chunk, (error) => done(error)),
  });
  // Each waiting message adds a listener; their number is not limited.
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

/** A pattern without a match is refused: with a typo in `--deny`, the tool would be served. */
function visibleTools(registry: ToolRegistry, { allow, deny }: McpOptions): ToolRegistry {
  const unmet = Object.entries({ allow, deny }).flatMap(([option, names = []]) =>
    names
      .filter((name) => registry.view({ allow: [name] }).count() === 0)
      .map((name) => `--${option} '${name}'`),
  );
  if (unmet.length === 0) return registry.view(withoutUndefined({ allow, deny }));
  const verb = unmet.length === 1 ? 'matches' : 'match';
  throw new UserFault(`${unmet.join(' and ')} ${verb} no tool; there are ${registry.list().join(', ')}`);
}
