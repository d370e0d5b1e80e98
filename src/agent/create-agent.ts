import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { bothPolicies } from '../call/allow.js';
import { SafeLog } from '../call/log.js';
import { ToolRegistry } from '../call/tool-registry.js';
import { keepsJobs } from '../contract/job-store.js';
import type { LLMProvider } from '../contract/llm-provider.js';
import { isRecord } from '../kernel/json.js';
import { budgetFaults } from '../loop/budget-accounts.js';
import type { PermissionMode, Permissions } from '../toolbox/permissions/index.js';
import { Agent } from './agent.js';
import type {
  AgentMcpClient,
  AgentMcpServer,
  AgentOptions,
  ConfiguredAgentOptions,
  StoreSettings,
} from './agent-options.js';
import { type OpenStore, openProvider, openStore, openTelemetryOf } from './open-parts.js';
import { type ReadOptions, readAgentOptions } from './read-options.js';
import { openToolboxes, type PlacedToolbox, type ToolboxSurroundings } from './toolboxes.js';

/**
 * Puts an agent together, from code, from a file, or from both: a model, toolboxes behind permissions, a store, and
 * whatever else its runs are to have. What is named is loaded when it is named, and what was opened here is closed by
 * {@link Agent.close}.
 *
 * @throws InvalidOptionsError (521) and ToolDeclarationError (502) naming everything that is wrong, with the file that
 *   it stands in; nothing stays open then.
 *
 * @example
 * ```ts
 * await using agent = await createAgent({
 *   provider: 'openai',
 *   model: 'gpt-5',
 *   toolboxes: ['files', 'shell', ShopTools],
 *   permissions: { mode: 'ask', rules: [{ decision: 'allow', command: 'npm test' }] },
 *   store: { sqlite: { path: 'agent.sqlite' } },
 * });
 * const { content, status } = await agent.run('Why does the test fail?');
 * ```
 */
export async function createAgent(options: AgentOptions | ConfiguredAgentOptions): Promise<Agent> {
  const read = readAgentOptions(options);
  const opened: Closers = [];
  try {
    return await putTogether(read, opened);
  } catch (error) {
    // What is wrong with the options says more than what could not be closed because of it.
    await closeAll(opened).catch(() => {});
    throw error;
  }
}

/** Closes what has been opened so far. */
type Closers = (() => unknown)[];

/** Closes everything, the last first, even if some of it fails: then it throws the first failure at the end. */
async function closeAll(closers: Closers): Promise<void> {
  const failures: unknown[] = [];
  for (const close of closers.splice(0).reverse())
    try {
      await close();
    } catch (error) {
      failures.push(error);
    }
  if (failures.length > 0) throw failures[0];
}

async function putTogether(read: ReadOptions, opened: Closers): Promise<Agent> {
  const { faults, options } = read;
  const { logger, hooks, engine } = options;
  // One that is missing has been told.
  const provider =
    options.provider && (await faults.of('provider', () => openProvider(options.provider), options.provider));
  const permissions = await openPermissions(read);
  const { telemetry: named } = options;
  const telemetry = named && (await faults.of('telemetry', () => openTelemetryOf(named), named));
  const store = await addStore(read, opened);
  addBudgetFaults(read, store);
  // Also the policy of the runs: agents within a call are under that of its run.
  const policy = faults.has('policy') ? undefined : bothPolicies(permissions?.policy, options.policy);
  const registry = new ToolRegistry({
    ...(logger && !faults.has('logger') && { logger }),
    ...(telemetry && { telemetry }),
    // Around calls of the registry and of jobs, too, and not only those of runs.
    ...(hooks && !faults.has('hooks') && { hooks }),
    // Work that a call starts is a job whoever makes it.
    ...(engine && !faults.has('engine') && keepsJobs(store) && { engine, store }),
    policy: policy ?? (() => false),
  });
  await addToolboxes(registry, read, { opened, provider, policy, permissions, store });
  await addMcpTools(registry, read, opened);
  faults.throwAll();
  return new Agent({
    options: { ...options, ...(policy && { policy }) },
    provider: provider as LLMProvider,
    permissions: permissions as Permissions,
    registry,
    ...(store && { store }),
    ...(telemetry && { telemetry }),
    close: () => closeAll(opened),
  });
}

async function openPermissions({
  options,
  faults,
  baseOf,
  folderPermissions,
}: ReadOptions): Promise<Permissions | undefined> {
  const { permissions: given = {}, folderConfigFile } = options;
  if (typeof given !== 'object' || given === null) return undefined;
  if ('policy' in given && typeof given.policy === 'function') {
    if (folderConfigFile !== undefined)
      faults.add('permissions', {
        problem: 'permissions are made already, and folderConfigFile has a say in them',
        fix: "permissions: { mode: 'ask', rules: […] }",
      });
    return given as Permissions;
  }
  const { Permissions } = await import('../toolbox/permissions/index.js');
  const { file, ...settings } = given as Exclude<typeof given, Permissions>;
  const place = typeof file === 'string' && file !== '' ? resolve(baseOf('permissions'), file) : file;
  const own = 'file' in given ? { ...settings, file: place } : settings;
  const made = await faults.of('permissions', () => new Permissions(own));
  if (folderPermissions === undefined) return made;
  const { mode, rules = [] } = folderPermissions;
  const ofFolder = await faults.of('folderConfigFile', () => new Permissions({ ...folderPermissions }), {
    permissions: folderPermissions,
  });
  if (made === undefined || ofFolder === undefined) return undefined;
  return new Permissions({
    ...own,
    mode: stricterMode(own.mode, mode),
    folderRules: [...(own.folderRules ?? []), ...rules],
  });
}

interface ToolboxParts extends Pick<ToolboxSurroundings, 'provider' | 'policy' | 'permissions' | 'store'> {
  readonly opened: Closers;
}

async function addToolboxes(
  registry: ToolRegistry,
  { options, faults, baseOf }: ReadOptions,
  { opened, ...parts }: ToolboxParts,
): Promise<void> {
  const { toolboxes = [], skills, model, folder: named = '.' } = options;
  if (!Array.isArray(toolboxes) || faults.has('folder')) return;
  const given = resolve(baseOf('folder'), named);
  const isThere = statSync(given, { throwIfNoEntry: false })?.isDirectory() === true;
  if (!isThere)
    faults.add('folder', {
      problem: `folder is ${given}, which is no folder`,
      fix: 'folder: process.cwd(), or the path of another folder that is there',
    });
  // What else is wrong with toolboxes is told, too; nothing runs.
  const folder = isThere ? given : process.cwd();
  const all: PlacedToolbox[] = [{ at: 'toolboxes', toolbox: toolboxes }];
  if (skills !== undefined) all.push({ at: 'skills', toolbox: { skills: { folder: skills } } });
  const container = faults.has('container') ? undefined : options.container;
  const logger = faults.has('logger') ? undefined : options.logger;
  const hooks = faults.has('hooks') ? undefined : options.hooks;
  const around = (at: string): ToolboxSurroundings => {
    return { ...parts, folder, base: baseOf(at), container, logger, model, hooks };
  };
  const { tools, closers } = await openToolboxes(all, { faults, around });
  opened.push(...closers);
  registry.merge(tools);
}

async function addStore(
  { options, faults, baseOf }: ReadOptions,
  opened: Closers,
): Promise<OpenStore['store'] | undefined> {
  const { store: given, engine, conversations } = options;
  if (engine === undefined && conversations?.jobConcurrency !== undefined)
    faults.add('conversations.jobConcurrency', {
      problem: 'conversations.jobConcurrency is of the jobs of an engine, and there is no engine',
      fix: 'no jobConcurrency',
    });
  if (given === undefined) {
    if (engine !== undefined)
      faults.add('store', {
        problem: 'store is missing, which keeps the jobs of engine',
        fix: STORE_FIX,
      });
    return undefined;
  }
  const open = await faults.of('store', () => openStore(withPath(given, faults), baseOf('store')), given);
  if (open?.close !== undefined) opened.push(open.close);
  if (engine !== undefined && open !== undefined && !keepsJobs(open.store))
    faults.add('store', {
      problem: 'store keeps no jobs, and those of engine are to be kept',
      fix: STORE_FIX,
    });
  return open?.store;
}

/** A path that a file leaves open makes no file; what else is wrong is told all the same. */
function withPath(given: NonNullable<AgentOptions['store']>, faults: ReadOptions['faults']): typeof given {
  const isOpen = faults.has('store.sqlite.path') && isRecord(given) && 'sqlite' in given;
  return isOpen ? { sqlite: { ...(given.sqlite as StoreSettings['sqlite']), path: ':memory:' } } : given;
}

function addBudgetFaults({ options, faults }: ReadOptions, store: OpenStore['store'] | undefined): void {
  const { budget, model, fallback = [] } = options;
  if (budget === undefined || ['budget', 'model', 'fallback', 'store'].some((name) => faults.has(name)))
    return;
  const models = [{ model }, ...fallback].flatMap((next) =>
    'model' in next && next.model ? [next.model] : [],
  );
  for (const { option, problem, fix } of budgetFaults(budget, { models, store }))
    faults.add(option, { problem, fix: option === 'budget.store' ? STORE_FIX : fix });
}

const STORE_FIX = "store: { sqlite: { path: 'agent.sqlite' } }";

/** Tools of MCP servers. Whoever answers over a network is asked last: not where something else is wrong. */
async function addMcpTools(registry: ToolRegistry, read: ReadOptions, opened: Closers): Promise<void> {
  const { options, faults } = read;
  if (!isRecord(options.mcp)) return;
  const clients: [string, AgentMcpClient][] = [];
  for (const [prefix, given] of Object.entries(options.mcp)) {
    const client = await faults.of(`mcp.${prefix}`, () => clientOf(given, read));
    if (client !== undefined) clients.push([prefix, client]);
  }
  if (clients.length === 0 || !faults.isEmpty) return;
  const { followMcpTools } = await import('../mcp/index.js');
  const { logger } = options;
  const onError = (error: unknown): void => {
    new SafeLog(logger).warn('The tools of an MCP server could not be read', { error });
  };
  for (const [prefix, client] of clients) {
    const following = await faults.of(`mcp.${prefix}`, () =>
      followMcpTools(registry, client, { prefix, onError, ...(logger && { logger }) }),
    );
    if (following !== undefined) opened.push(() => following.close());
  }
}

async function clientOf(
  given: AgentMcpClient | AgentMcpServer,
  { options, baseOf }: ReadOptions,
): Promise<AgentMcpClient> {
  if (typeof given === 'function' || (isRecord(given) && 'close' in given)) return given as AgentMcpClient;
  const { serverConnection } = await import('../mcp/client/connect-server.js');
  const folder = resolve(baseOf('folder'), options.folder ?? '.');
  if (!isRecord(given) || 'url' in given) return serverConnection(given as AgentMcpServer);
  const { cwd, ...settings } = given as Extract<AgentMcpServer, { readonly command: string }>;
  return serverConnection({ ...settings, cwd: cwd === undefined ? folder : resolve(baseOf('mcp'), cwd) });
}

const STRICTNESS: readonly PermissionMode[] = ['auto', 'ask', 'read-only'];

function stricterMode(one: PermissionMode = 'ask', other: PermissionMode = one): PermissionMode {
  return STRICTNESS.indexOf(other) > STRICTNESS.indexOf(one) ? other : one;
}
