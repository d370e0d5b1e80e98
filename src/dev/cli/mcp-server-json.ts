import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { isRecord, withoutUndefined } from '../../core/kernel/json.js';
import { type CommandEnvironment, UserFault } from './command.js';

const SCHEMA = 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json';
const NAME = /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/;

const OPTIONS = { name: { type: 'string' }, url: { type: 'string' } } as const;

/**
 * `toolwright mcp server-json`: writes the data for the official MCP registry, from the folder's package.json. The
 * registry verifies the name with `mcpName` of the published package.
 */
export async function writeServerJson(
  args: readonly string[],
  environment: CommandEnvironment,
): Promise<number> {
  const { values } = parseArgs({ args: [...args], options: OPTIONS });
  const manifest = readManifest(environment.folder);
  const name = values.name ?? manifest.mcpName;
  if (typeof name !== 'string' || !NAME.test(name))
    throw new UserFault(
      'the registry needs a name: "mcpName": "io.github.<user>/<server>" in package.json, or --name',
      1,
    );
  if (manifest.mcpName !== name)
    environment.error(
      `toolwright: the registry compares: "mcpName": "${name}" must be in the published package.json\n`,
    );
  const { version = '0.0.0', description = '', repository, private: isPrivate } = manifest;
  const { url } = values;
  const repositoryUrl = repositoryOf(repository);
  const server = withoutUndefined({
    $schema: SCHEMA,
    name,
    description,
    version,
    repository: repositoryUrl && {
      url: repositoryUrl,
      source: repositoryUrl.includes('github.com') ? 'github' : 'git',
    },
    packages: isPrivate
      ? undefined
      : [{ registryType: 'npm', identifier: manifest.name, version, transport: { type: 'stdio' } }],
    remotes: url === undefined ? undefined : [{ type: 'streamable-http', url }],
  });
  if (isPrivate && url === undefined)
    throw new UserFault('a private package is in no registry: --url https://… of the remote server', 1);
  environment.out(`${JSON.stringify(server, null, 2)}\n`);
  return 0;
}

function readManifest(folder: string): Readonly<Record<string, unknown>> {
  try {
    const manifest: unknown = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    if (isRecord(manifest)) return manifest;
  } catch {}
  throw new UserFault('there is no package.json here that can be read', 1);
}

function repositoryOf(repository: unknown): string | undefined {
  const given = isRecord(repository) ? repository.url : repository;
  if (typeof given !== 'string') return undefined;
  const [, short] = /^(?:github:)?([\w.-]+\/[\w.-]+)$/.exec(given) ?? [];
  return short === undefined
    ? given.replace(/^git\+/, '').replace(/\.git$/, '')
    : `https://github.com/${short}`;
}
