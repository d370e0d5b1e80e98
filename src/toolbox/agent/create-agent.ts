import { statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { keepsBudgets } from '../../core/contract/budget.js';
import type { StoreWithBudgets } from '../../core/contract/budget-ledger.js';
import type { ToolPolicy } from '../../core/contract/call.js';
import type { ClassType } from '../../core/contract/declaration.js';
import type { Hooks } from '../../core/contract/hooks.js';
import { keepsJobs } from '../../core/contract/job-store.js';
import { type LLMProvider, PROVIDER } from '../../core/contract/llm-provider.js';
import type { InstanceResolver, Logger } from '../../core/contract/ports.js';
import { keepsResults } from '../../core/contract/result-store.js';
import { keepsSchedules, type StoreWithSchedules } from '../../core/contract/schedule-store.js';
import { TELEMETRY, type Telemetry } from '../../core/contract/telemetry.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import {
  type InvalidOption,
  InvalidOptionsError,
  refuseOptions,
  ToolDeclarationError,
} from '../../core/errors/author-fault.js';
import { errorMessage, ofAnotherCopy } from '../../core/kernel/error-message.js';
import { isPlainObject, isRecord, withoutUndefined } from '../../core/kernel/json.js';
import { nearestNames } from '../../core/kernel/nearest-name.js';
import type { OptionRule } from '../../core/kernel/options.js';
import { isClass, toolMethods } from '../../core/metadata/class-record.js';
import { bothPolicies } from '../../run/call/allow.js';
import { type RegisteredTool, ToolRegistry } from '../../run/call/tool-registry.js';
import { type ConversationsStore, keepsConversations } from '../../run/conversation/conversations-options.js';
import { budgetFaults } from '../../run/loop/run-budget.js';
import type { McpConnector } from '../../surfaces/mcp/client/connect-mcp.js';
import type {
  McpConnectionStatus,
  McpConnectOptions,
  McpRemoteOptions,
  McpStdioOptions,
} from '../../surfaces/mcp/client/connect-options.js';
import { discoverTools, toolsOfInstances } from '../../tools/discovery/discover-tools.js';
import type { NamedAgent } from '../agents/index.js';
import { isWithin, realPathOf } from '../paths/folder-path.js';
import type { PermissionMode, Permissions } from '../permissions/index.js';
import type { SandboxShellOptions } from '../sandbox/index.js';
import type { CommandShell } from '../shell/index.js';
import { Agent, type AgentMcp } from './agent.js';
import {
  type AgentMcpClient,
  type AgentMcpServer,
  type AgentMcpTools,
  type AgentOptions,
  type ConfiguredAgentOptions,
  type OtherAgent,
  SQLITE,
  type StoreSettings,
  TOOLBOX_NAMES,
  type Toolbox,
  type ToolboxSettings,
} from './agent-options.js';
import { AgentFaults, codeOf, type ReadOptions, readAgentOptions } from './read-options.js';

/** Functions that close what was opened so far. */
type Closers = (() => unknown)[];

/** How to make the part of an option from one of its names and settings, and which other values are parts. */
interface PartKind<Part> {
  readonly named: Readonly<Record<string, (settings: Readonly<Record<string, unknown>>) => Promise<Part>>>;
  readonly rule: OptionRule;
  /** `a store`, for messages. */
  readonly what: string;
}

const PROVIDERS: PartKind<LLMProvider> = {
  named: {
    openai: async (settings) => new (await import('../../models/openai/index.js')).OpenAIProvider(settings),
    offline: async () => new (await import('../../models/offline/index.js')).OfflineProvider(),
  },
  rule: { ...PROVIDER, fix: "new OpenAIProvider(), 'openai' or 'offline'" },
  what: 'a provider',
};

const TELEMETRIES: PartKind<Telemetry> = {
  named: {
    opentelemetry: async (settings) =>
      (await import('../../observe/opentelemetry/index.js')).openTelemetry(settings),
  },
  rule: TELEMETRY,
  what: 'telemetry',
};

/** Stores; paths start at `base`. A given store is not closed. */
function storesIn(base: string, opened: Closers): PartKind<ConversationsStore> {
  const closing = <Store extends { close(): unknown }>(store: Store): Store => {
    opened.push(() => store.close());
    return store;
  };
  return {
    named: {
      memory: async (settings) =>
        new (await import('../../durable/stores/index.js')).MemoryRunStore(settings),
      async sqlite({ path, ...settings }) {
        const { SqliteRunStore } = await import('../../durable/stores/index.js');
        const isPath = typeof path === 'string' && path !== '' && path !== ':memory:';
        const place = (isPath ? resolve(base, path) : path) as string;
        return closing(new SqliteRunStore({ ...settings, path: place }));
      },
      postgres: async (settings) =>
        closing(new (await import('../../durable/postgres/index.js')).PostgresRunStore(settings)),
    },
    rule: STORE,
    what: 'a store',
  };
}

async function openPart<Part>(option: string, given: unknown, kind: PartKind<Part>): Promise<Part> {
  const { named, rule, what } = kind;
  const found = readNamed(given, option, Object.keys(named));
  if (found !== undefined) return (named[found.name] as (typeof named)[string])(found.settings);
  if (rule.accepts(given)) return given as Part;
  const problem = `the value is not ${what}`;
  throw new InvalidOptionsError([{ where: what, option: '', problem, fix: rule.fix }]);
}

const STORE: OptionRule = {
  accepts: keepsConversations,
  fix: `${SQLITE}, or a store that supports conversations`,
};

/**
 * The part that a string or an object with one key names; `undefined` if the value is the part itself.
 *
 * @throws InvalidOptionsError (521) for an unknown name.
 */
function readNamed(
  given: unknown,
  of: string,
  names: readonly string[],
): { readonly name: string; readonly settings: Readonly<Record<string, unknown>> } | undefined {
  const wrong = (problem: string, fix: string) =>
    new InvalidOptionsError([{ where: of, option: '', problem, fix }]);
  if (typeof given !== 'string') {
    if (!isRecord(given) || !isPlainObject(given)) return undefined;
    // An object with methods is a part itself, even if it is a plain object.
    if (Object.values(given).some((value) => typeof value === 'function')) return undefined;
  }
  const [entry, second] = typeof given === 'string' ? [[given, {}] as const] : Object.entries(given);
  if (entry === undefined || second !== undefined) {
    const found = entry === undefined ? 'no name' : 'several names';
    throw wrong(`${of} must be one name with its settings, but has ${found}`, `{ ${names[0]}: { … } }`);
  }
  const [name, settings] = entry;
  if (!isRecord(settings)) throw wrong(`the settings of '${name}' are not an object`, `{ ${name}: { … } }`);
  if (names.includes(name)) return { name, settings };
  const near = nearestNames(name, names).map((other) => `'${other}'`);
  const meant = near.length > 0 ? ` (did you mean ${near.join(' or ')}?)` : '';
  const own = of === 'toolbox' ? 'tools' : `a ${of}`;
  const known = names.map((other) => `'${other}'`).join(', ');
  throw wrong(`there is no ${of} '${name}'${meant}`, `one of ${known}, or ${own} of your own`);
}

interface ToolboxDeps {
  /** The absolute folder in which named toolboxes work. */
  readonly folder: string;
  /** The absolute folder at which paths in their settings start. */
  readonly base: string;
  readonly container?: InstanceResolver | undefined;
  readonly logger?: Logger | undefined;
  readonly opened: Closers;
  /** The folders of the toolboxes `files` and `shell`, in which tools can read and change files. */
  readonly folders: string[];
  /** The agent's own parts, if their options are valid. */
  readonly provider?: LLMProvider | undefined;
  readonly model?: string | undefined;
  readonly policy?: ToolPolicy | undefined;
  readonly hooks?: readonly Hooks[] | undefined;
  readonly permissions?: Permissions | undefined;
  readonly store?: ConversationsStore | undefined;
}

/**
 * Opens a toolbox; named toolboxes are imported here.
 *
 * @throws InvalidOptionsError (521), ToolDeclarationError (502), and system errors about a folder.
 */
async function openToolbox(toolbox: Toolbox, around: ToolboxDeps): Promise<ToolRegistry> {
  if (toolbox instanceof ToolRegistry) {
    // Merging takes only the tools of a registry, which would lose its policies and hooks.
    const lost = (what: string, option: string): InvalidOption => ({
      where: 'toolbox',
      option: '',
      problem: `the registry has ${what}, which would be ignored`,
      fix: `${option}: … of createAgent, and a registry without ${what}`,
    });
    refuseOptions([
      ...(toolbox.policies.length > 0 ? [lost('a policy', 'policy')] : []),
      ...(toolbox.hooks.length > 0 ? [lost('hooks', 'hooks')] : []),
    ]);
    return toolbox;
  }
  const faults = ofAnotherCopy(ToolRegistry)(toolbox, 'it');
  refuseOptions(faults.map((fault) => ({ ...fault, where: 'toolbox', option: '' })));
  const named = readNamed(toolbox, 'toolbox', TOOLBOX_NAMES);
  const registry = new ToolRegistry(around.logger && { logger: around.logger });
  if (named === undefined) return registry.register(...ownTools(toolbox, around));
  const open = OPENERS[named.name as keyof ToolboxSettings];
  return registry.register(...(await open(named.settings as never, around)));
}

function ownTools(toolbox: Toolbox, { container, logger }: ToolboxDeps): readonly RegisteredTool[] {
  const given = { ...(container && { container }), ...(logger && { logger }) };
  if (isToolset(toolbox)) return discoverTools({ ...given, toolsets: [toolbox] });
  const maker: unknown = typeof toolbox === 'object' && toolbox !== null ? toolbox.constructor : undefined;
  if (isToolset(maker)) return toolsOfInstances(toolbox as object);
  const mistake = mistakenFor(toolbox, maker);
  if (mistake !== undefined) throw new InvalidOptionsError([{ where: 'toolbox', option: '', ...mistake }]);
  return [toolbox as RegisteredTool];
}

/** What is wrong with a value that is not a toolbox. Functions are never called: they may have side effects. */
function mistakenFor(toolbox: unknown, maker: unknown): Pick<InvalidOption, 'problem' | 'fix'> | undefined {
  const fix = 'add @Toolset() before the class, and @Tool(…) before its methods';
  if (typeof toolbox === 'function') {
    if (isClass(toolbox)) return { problem: `the class ${toolbox.name} has no tools`, fix };
    return { problem: 'a function is not a toolbox', fix: 'the tool itself: defineTool({ … })' };
  }
  if (typeof maker !== 'function' || maker === Object || 'execute' in (toolbox as object)) return undefined;
  return { problem: `an instance of ${maker.name} has no tools`, fix };
}

function isToolset(value: unknown): value is ClassType {
  return typeof value === 'function' && value !== Object && toolMethods(value as ClassType).length > 0;
}

/** Opens toolboxes, including those within lists. Faults are collected with the others. */
async function openToolboxes(
  toolboxes: readonly PlacedToolbox[],
  faults: AgentFaults,
  around: (at: string) => ToolboxDeps,
): Promise<ToolRegistry> {
  const tools = new ToolRegistry();
  const places = new Map<string, string>();
  for (const { at, toolbox } of toolboxes.flatMap(flatToolboxes)) {
    const open = await faults.of(at, () => openToolbox(toolbox, around(at)), at === 'skills' ? {} : toolbox);
    if (open === undefined) continue;
    const names = open.list();
    const others = Map.groupBy(names, (name) => places.get(name));
    for (const [other, again] of others) {
      if (other === undefined) continue;
      const shown = again.slice(0, MOST_NAMED).map((name) => `'${name}'`);
      const rest = again.length > MOST_NAMED ? ', …' : '';
      const problem =
        again.length === 1
          ? `${at} and ${other} both have a tool ${shown[0]}`
          : `${at} and ${other} have ${again.length} tools with the same names: ${shown.join(', ')}${rest}`;
      faults.add(at, { problem, fix: '@Toolset({ prefix }) for one of them, or only one of them' });
    }
    for (const name of names) places.set(name, at);
    tools.merge(open);
  }
  return tools;
}

const MOST_NAMED = 3;

interface PlacedToolbox {
  readonly at: string;
  readonly toolbox: Toolbox;
}

function flatToolboxes({ at, toolbox }: PlacedToolbox): readonly PlacedToolbox[] {
  if (!Array.isArray(toolbox)) return [{ at, toolbox }];
  return toolbox.flatMap((one, index) => flatToolboxes({ at: `${at}[${index}]`, toolbox: one }));
}

/** Makes the tools of a named toolbox. */
type Open<Settings> = (settings: Settings, around: ToolboxDeps) => Promise<readonly ToolDefinition[]>;

const OPENERS: { readonly [Name in keyof ToolboxSettings]: Open<ToolboxSettings[Name]> } = {
  async files(settings, { folder, base, folders }) {
    const { fileTools } = await import('../files/index.js');
    const root = placeIn(base, settings.root) ?? folder;
    const tools = fileTools({ ...settings, root });
    folders.push(root);
    return tools;
  },
  async shell({ sandbox, ...settings }, { folder, base, folders, permissions, logger, opened }) {
    const { LocalShell, ShellTools } = await import('../shell/index.js');
    const own = { ...settings, folder: placeIn(base, settings.folder) ?? folder, ...(logger && { logger }) };
    const isLocal = sandbox === undefined ? permissions?.mode !== 'auto' : !isRecord(sandbox);
    let shell: CommandShell;
    if (isLocal)
      shell = new LocalShell({ ...own, ...(sandbox !== undefined && { sandbox: sandbox as 'external' }) });
    else {
      const { sandboxShell } = await import('../sandbox/index.js');
      const inSandbox: SandboxShellOptions = { ...own, ...(isRecord(sandbox) && sandbox) };
      // Paths that permission rules close are closed to commands, too, in addition to the settings.
      const { unreadable = [], unwritable = [] } = permissions?.closedPaths() ?? {};
      const all = (paths: unknown, more: readonly string[]) =>
        paths === undefined
          ? more
          : Array.isArray(paths)
            ? [...paths, ...more]
            : (paths as readonly string[]);
      shell = sandboxShell({
        ...inSandbox,
        unreadable: all(inSandbox.unreadable, unreadable),
        unwritable: all(inSandbox.unwritable, unwritable),
      });
    }
    folders.push(own.folder);
    const instance = new ShellTools(shell);
    opened.push(() => instance.dispose());
    return toolsOfInstances(instance);
  },
  async web({ search, ...settings }) {
    const { SearxngSearch, WebSearch, webTools } = await import('../web/index.js');
    const faults = new AgentFaults(() => 'web');
    const find = (): InstanceType<typeof WebSearch> | undefined => {
      if (search === undefined || search instanceof WebSearch) return search;
      const engine = readNamed(search, 'search engine', ['searxng']);
      return new SearxngSearch(engine?.settings as never);
    };
    const engine = await faults.of('search', find, search);
    const tools = await faults.of('', () => webTools({ ...settings, ...(engine && { search: engine }) }));
    faults.throwAll();
    return tools ?? [];
  },
  async tasks(settings) {
    const wrong = { where: 'tasks', problem: "the toolbox 'tasks' has no settings", fix: "'tasks'" };
    refuseOptions(Object.keys(settings).map((option) => ({ ...wrong, option })));
    const { taskTools } = await import('../tasks/index.js');
    return taskTools();
  },
  async skills({ folder: named, ...settings }, { folder, base }) {
    const { skillTools } = await import('../skills/index.js');
    const root = placeIn(base, settings.root) ?? folder;
    const place = (one: string) => placeIn(base, one) ?? one;
    const folders = Array.isArray(named) ? named.map(place) : place(named as string);
    return skillTools({ ...settings, root, folder: folders });
  },
  async openapi({ document, ...settings }, { base }) {
    const { toolsFromOpenApi } = await import('../openapi/index.js');
    const faults = new AgentFaults(() => 'openapi');
    const read = await faults.of('', () => readDocument(document, base));
    const tools = await faults.of('', () => {
      try {
        return toolsFromOpenApi(read, settings);
      } catch (error) {
        // If the document is unreadable, that is the only fault to report.
        if (read === undefined && error instanceof ToolDeclarationError) return [];
        throw error;
      }
    });
    faults.throwAll();
    return tools ?? [];
  },
  async schedule(settings, { store }) {
    const { scheduleTools } = await import('../schedule/index.js');
    try {
      return scheduleTools({ ...settings, store: store as unknown as StoreWithSchedules });
    } catch (error) {
      if (keepsSchedules(store) || !(error instanceof InvalidOptionsError)) throw error;
      throw withFaults(missingStore('schedules'), error);
    }
  },
  async agents({ agents: others, total, ...settings }, around) {
    const { Agents, agentTools } = await import('../agents/index.js');
    const { store, permissions, opened } = around;
    const known = total === undefined || keepsBudgets(store) ? [] : missingStore('budgets');
    const faults = new AgentFaults(() => 'agents');
    const named = await openOthers(others, around, faults);
    const kept = keepsBudgets(store) && { store: store as unknown as StoreWithBudgets };
    const made = { ...settings, ...(total !== undefined && { total, ...kept }), agents: named };
    const areNone = !faults.isEmpty && Object.keys(named).length === 0;
    const agents = areNone ? undefined : await faults.of('', () => new Agents(made));
    if (agents !== undefined) opened.push(() => agents.dispose());
    if (agents !== undefined && faults.isEmpty) return agentTools(agents, permissions && { permissions });
    throw withFaults(known, faults.error);
  },
};

/** @throws InvalidOptionsError (521) if it is missing, unreadable, or not JSON. */
async function readDocument(document: unknown, base: string): Promise<unknown> {
  const fix = 'the path of a JSON file with an OpenAPI document, or the document itself';
  const wrong = (problem: string) =>
    new InvalidOptionsError([{ where: 'openapi', option: 'document', problem, fix }]);
  if (document === undefined) throw wrong('document is missing');
  if (typeof document !== 'string') return document;
  const path = resolve(base, document);
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw wrong(`${path} cannot be read (${codeOf(error) ?? errorMessage(error)})`);
  });
  try {
    return JSON.parse(text);
  } catch {
    throw wrong(`${path} is not JSON`);
  }
}

function missingStore(what: string): readonly InvalidOption[] {
  const problem = `the agent has no store that supports ${what}`;
  return [{ where: 'store', option: '', problem, fix: `${STORE_FIX} of createAgent` }];
}

/** Adds the known faults to those of an error; a missing store is reported once. */
function withFaults(known: readonly InvalidOption[], error: unknown): unknown {
  if (known.length === 0) return error;
  if (error instanceof InvalidOptionsError)
    return new InvalidOptionsError([...known, ...error.faults.filter(({ option }) => option !== 'store')]);
  if (error instanceof ToolDeclarationError)
    return new InvalidOptionsError([...known, ...error.faults.map((fault) => ({ ...fault, option: '' }))]);
  return error;
}

const UNKNOWN_PROVIDER: LLMProvider = { chat: () => Promise.reject(new TypeError('There is no provider')) };

/** Opens the toolboxes of other agents. The policy and hooks of the main agent apply to them, whoever asks them. */
async function openOthers(
  others: Readonly<Record<string, OtherAgent>>,
  around: ToolboxDeps,
  faults: AgentFaults,
): Promise<Readonly<Record<string, NamedAgent>>> {
  // The agents refuse another value.
  if (!isRecord(others)) return others;
  const agents: Record<string, NamedAgent> = {};
  for (const [name, other] of Object.entries(others)) {
    const at = `agents.${name}`;
    if (!isRecord(other)) {
      faults.add(at, { problem: `${at} is not an object`, fix: "{ description: '…', toolboxes: ['web'] }" });
      continue;
    }
    const { toolboxes = [], provider, policy, hooks = [], ...own } = other as OtherAgent;
    const allHooks = Array.isArray(hooks) ? [...(around.hooks ?? []), ...hooks] : hooks;
    const all = [{ at: `${at}.toolboxes`, toolbox: toolboxes }];
    const tools = await openToolboxes(all, faults, () => around);
    const both = bothPolicies(around.policy, policy);
    const asked =
      provider &&
      (await faults.of(`${at}.provider`, () => openPart('provider', provider, PROVIDERS), provider));
    agents[name] = {
      ...own,
      // A missing provider is reported for the main agent.
      provider: asked ?? around.provider ?? UNKNOWN_PROVIDER,
      model: own.model ?? around.model ?? 'unknown',
      tools: own.agents === undefined ? tools : tools.tools(),
      ...(both && { policy: both }),
      ...(Array.isArray(allHooks) && allHooks.length === 0 ? {} : { hooks: allHooks }),
    };
  }
  return agents;
}

/** Other values are left for the toolset to refuse. */
function placeIn(base: string, path: string | undefined): string | undefined {
  return typeof path === 'string' && path !== '' ? resolve(base, path) : path;
}

/**
 * Creates an agent from code, from a file, or from both: a model, toolboxes with permissions, a store, and other
 * options of its runs. Named parts are imported on demand. {@link Agent.close} closes what this function opened.
 *
 * @throws InvalidOptionsError (521) and ToolDeclarationError (502) with all faults, and the file of each; nothing stays
 * open then.
 *
 * @example
 * ```ts
 * await using agent = await createAgent({
 *   provider: 'openai',
 *   model: 'gpt-5',
 *   toolboxes: ['files', 'shell', ShopTools],
 *   permissions: { mode: 'ask', rules: [{ decision: 'allow', command: 'npm test' }] },
 *   store: { sqlite: { path: '/var/lib/my-agent/agent.sqlite' } },
 * });
 * const { content, status } = await agent.run('Why does the test fail?');
 * ```
 */
export async function createAgent(options: AgentOptions | ConfiguredAgentOptions): Promise<Agent> {
  const draft: AgentDraft = { ...readAgentOptions(options), opened: [] };
  const { faults, opened, valid } = draft;
  try {
    const open = async <Part>(option: 'provider' | 'telemetry', kind: PartKind<Part>) => {
      const part = draft.options[option];
      // What is missing or `null` has been reported already.
      return part ? faults.of(option, () => openPart(option, part, kind), part) : undefined;
    };
    const provider = await open('provider', PROVIDERS);
    const permissions = await openPermissions(draft);
    const telemetry = await open('telemetry', TELEMETRIES);
    const store = await addStore(draft);
    addBudgetFaults(draft, store);
    // Runs have this policy, too, because agents within a call use the policy of the run.
    const policy = faults.has('policy') ? undefined : bothPolicies(permissions?.policy, draft.options.policy);
    const engine = valid('engine');
    const registry = new ToolRegistry({
      // Hooks apply to calls of the registry and of jobs, too, not only to those of runs.
      ...withoutUndefined({ logger: valid('logger'), hooks: valid('hooks'), telemetry }),
      // Background work becomes a job in every kind of call.
      ...(engine && keepsJobs(store) && { engine, store }),
      policy: policy ?? (() => false),
    });
    await addToolboxes(registry, draft, { provider, policy, permissions, store });
    const mcp = await addMcpTools(registry, draft, store);
    faults.throwAll();
    return new Agent({
      options: { ...draft.options, ...(policy && { policy }) },
      provider: provider as LLMProvider,
      permissions: permissions as Permissions,
      registry,
      ...(store && { store }),
      ...(telemetry && { telemetry }),
      mcp,
      close: () => closeAll(opened),
    });
  } catch (error) {
    // The faults of the options matter more than a failure to close.
    await closeAll(opened).catch(() => {});
    throw error;
  }
}

/** The options of an agent, and what was opened for them so far. */
interface AgentDraft extends ReadOptions {
  readonly opened: Closers;
}

/** Closes everything in reverse order, even if some of it fails; then throws the first error. */
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
        problem: 'permissions is a Permissions object, which folderConfigFile cannot restrict',
        fix: "permissions: { mode: 'ask', rules: […] }",
      });
    return given as Permissions;
  }
  const { Permissions } = await import('../permissions/index.js');
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
  const { mode: ownMode = 'ask' } = own;
  const isStricter = mode !== undefined && STRICTNESS.indexOf(mode) > STRICTNESS.indexOf(ownMode);
  return new Permissions({
    ...own,
    mode: isStricter ? mode : ownMode,
    folderRules: [...(own.folderRules ?? []), ...rules],
  });
}

async function addToolboxes(
  registry: ToolRegistry,
  { options, faults, baseOf, opened, valid }: AgentDraft,
  parts: Pick<ToolboxDeps, 'provider' | 'policy' | 'permissions' | 'store'>,
): Promise<void> {
  const { toolboxes = [], skills, model, folder: named = '.' } = options;
  if (!Array.isArray(toolboxes) || faults.has('folder')) return;
  const given = resolve(baseOf('folder'), named);
  const isThere = statSync(given, { throwIfNoEntry: false })?.isDirectory() === true;
  if (!isThere)
    faults.add('folder', {
      problem: `folder is ${given}, which is not an existing folder`,
      fix: 'folder: process.cwd(), or the path of an existing folder',
    });
  // Use another folder to report all other mistakes; nothing runs.
  const folder = isThere ? given : process.cwd();
  const all: PlacedToolbox[] = [{ at: 'toolboxes', toolbox: toolboxes }];
  if (skills !== undefined) all.push({ at: 'skills', toolbox: { skills: { folder: skills } } });
  const [container, logger, hooks] = [valid('container'), valid('logger'), valid('hooks')];
  const folders: string[] = [];
  const around = (at: string): ToolboxDeps => {
    return { ...parts, folder, folders, base: baseOf(at), opened, container, logger, model, hooks };
  };
  registry.merge(await openToolboxes(all, faults, around));
  if (isThere) refuseOwnFiles(folders, parts, faults);
}

/** With its store or its approvals in a folder of its tools, the agent could approve its own calls. */
function refuseOwnFiles(
  folders: readonly string[],
  { permissions, store }: Pick<ToolboxDeps, 'permissions' | 'store'>,
  faults: AgentFaults,
): void {
  const files = { 'permissions.file': permissions?.file, store: store && 'file' in store && store.file };
  for (const [option, file] of Object.entries(files)) {
    if (typeof file !== 'string' || file === '') continue;
    const folder = folders.find((one) => isWithin(realPathOf(resolve(file)), realPathOf(one)));
    if (folder === undefined) continue;
    const problem = `${option} is ${file}, in the folder ${folder}, where tools of the agent could read and change it`;
    faults.add(option, { problem, fix: 'a path outside of that folder' });
  }
}

async function addStore({
  options,
  faults,
  baseOf,
  opened,
}: AgentDraft): Promise<ConversationsStore | undefined> {
  const { store: given, engine, conversations } = options;
  if (engine === undefined && conversations?.jobConcurrency !== undefined)
    faults.add('conversations.jobConcurrency', {
      problem: 'conversations.jobConcurrency applies to the jobs of an engine, but engine is missing',
      fix: 'no jobConcurrency',
    });
  if (given === undefined) {
    const problem = 'store is missing; engine needs it for its jobs';
    if (engine !== undefined) faults.add('store', { problem, fix: STORE_FIX });
    return undefined;
  }
  const stores = storesIn(baseOf('store'), opened);
  // If the path is missing, `:memory:` serves to report the other mistakes without creating a file.
  const isPathless = faults.has('store.sqlite.path') && isRecord(given) && 'sqlite' in given;
  const usable = isPathless
    ? { sqlite: { ...(given.sqlite as StoreSettings['sqlite']), path: ':memory:' } }
    : given;
  const store = await faults.of('store', () => openPart('store', usable, stores), given);
  if (engine !== undefined && store !== undefined && !keepsJobs(store)) {
    const problem = 'store does not support jobs, which engine needs';
    faults.add('store', { problem, fix: STORE_FIX });
  }
  return store;
}

function addBudgetFaults({ options, faults }: ReadOptions, store: ConversationsStore | undefined): void {
  const { budget, model, fallback = [] } = options;
  if (budget === undefined || ['budget', 'model', 'fallback', 'store'].some((name) => faults.has(name)))
    return;
  for (const { option, problem, fix } of budgetFaults({ budget, model, fallback, store }))
    faults.add(option, { problem, fix: option === 'budget.store' ? STORE_FIX : fix });
}

const STORE_FIX = `store: ${SQLITE}`;

const NO_SERVERS: AgentMcp = { signIns: [], connections: new Map() };

/**
 * Connects MCP servers and adds their tools. Servers are contacted last, and only if there are no other faults.
 */
async function addMcpTools(
  registry: ToolRegistry,
  draft: AgentDraft,
  store: ConversationsStore | undefined,
): Promise<AgentMcp> {
  const { options, faults, opened } = draft;
  if (!isRecord(options.mcp)) return NO_SERVERS;
  const clients: {
    readonly prefix: string;
    readonly client: AgentMcpClient | McpConnector;
    readonly tools: AgentMcpTools;
  }[] = [];
  for (const [prefix, given] of Object.entries(options.mcp)) {
    const { server, tools } = isConnected(given) ? { server: given, tools: {} } : withoutTools(given);
    const client = await faults.of(`mcp.${prefix}`, () => clientOf(server, draft, store));
    if (client !== undefined) clients.push({ prefix, client, tools });
  }
  if (clients.length === 0 || !faults.isEmpty) return NO_SERVERS;
  const { followMcpTools } = await import('../../surfaces/mcp/index.js');
  const { logger } = options;
  const connections = new Map<string, { readonly status: McpConnectionStatus }>();
  for (const { prefix, client, tools } of clients) {
    const following = await faults.of(`mcp.${prefix}`, () =>
      followMcpTools(registry, client, { ...tools, prefix, ...(logger && { logger }) }),
    );
    if (following === undefined) continue;
    opened.push(() => following.close());
    connections.set(prefix, following);
  }
  const signIns = clients.flatMap(({ client }) => ('finishSignIn' in client ? [client] : []));
  return { signIns, connections };
}

function isConnected(given: AgentMcpClient | AgentMcpServer): given is AgentMcpClient {
  return typeof given === 'function' || (isRecord(given) && 'close' in given);
}

/** How to reach a server, and which of its tools the agent has. */
function withoutTools(given: AgentMcpServer): {
  readonly server: McpConnectOptions;
  readonly tools: AgentMcpTools;
} {
  // Anything else than an object is refused as a server.
  if (!isRecord(given)) return { server: given, tools: {} };
  const { allow, deny, timeoutMs, background, approve, ...server } = given as AgentMcpServer;
  const tools = Object.fromEntries(
    Object.entries({ allow, deny, timeoutMs, background, approve }).filter(([name]) => name in given),
  );
  return { server, tools };
}

async function clientOf(
  given: AgentMcpClient | McpConnectOptions,
  { options, baseOf }: ReadOptions,
  store: ConversationsStore | undefined,
): Promise<AgentMcpClient | McpConnector> {
  if (isConnected(given)) return given;
  const { connectMcp } = await import('../../surfaces/mcp/client/connect-mcp.js');
  const folder = resolve(baseOf('folder'), options.folder ?? '.');
  if (!isRecord(given) || !('command' in given)) {
    const server = given as McpRemoteOptions;
    const { stateSecret } = options;
    if (stateSecret === undefined || !keepsResults(store) || !isRecord(server?.auth))
      return connectMcp(server);
    const { storeTokens } = await import('../../surfaces/mcp/client/token-stores.js');
    return connectMcp({ ...server, auth: { tokens: storeTokens(store, stateSecret), ...server.auth } });
  }
  const { cwd, ...settings } = given as McpStdioOptions;
  return connectMcp({ ...settings, cwd: cwd === undefined ? folder : resolve(baseOf('mcp'), cwd) });
}

const STRICTNESS: readonly PermissionMode[] = ['auto', 'ask', 'read-only'];
