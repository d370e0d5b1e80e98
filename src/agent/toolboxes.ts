import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { bothPolicies } from '../call/allow.js';
import type { RegisteredTool } from '../call/registration.js';
import { ToolRegistry } from '../call/tool-registry.js';
import { keepsBudgets } from '../contract/budget.js';
import type { StoreWithBudgets } from '../contract/budget-ledger.js';
import type { ToolPolicy } from '../contract/call.js';
import type { ClassType } from '../contract/declaration.js';
import type { Hooks } from '../contract/hooks.js';
import type { LLMProvider } from '../contract/llm-provider.js';
import type { Logger } from '../contract/ports.js';
import { keepsSchedules, type StoreWithSchedules } from '../contract/schedule-store.js';
import type { ToolDefinition } from '../contract/tool.js';
import type { ConversationsStore } from '../conversation/conversations-options.js';
import type { ToolContainer } from '../discovery/containers/toolset-host.js';
import { discoverTools, toolsOfInstances } from '../discovery/discover-tools.js';
import {
  type InvalidOption,
  InvalidOptionsError,
  refuseOptions,
  ToolDeclarationError,
} from '../errors/author-fault.js';
import { errorMessage, ofAnotherCopy } from '../kernel/error-message.js';
import { isRecord } from '../kernel/json.js';
import { toolMethods } from '../metadata/class-record.js';
import type { NamedAgent } from '../toolbox/agents/index.js';
import type { Permissions } from '../toolbox/permissions/index.js';
import type { SandboxShellOptions } from '../toolbox/sandbox/index.js';
import type { CommandShell } from '../toolbox/shell/index.js';
import { type OtherAgent, TOOLBOX_NAMES, type Toolbox, type ToolboxSettings } from './agent-options.js';
import { openProvider, readNamed } from './open-parts.js';
import { AgentFaults, codeOf } from './read-options.js';

export interface ToolboxSurroundings {
  /** Where named toolboxes work, absolute. */
  readonly folder: string;
  /** Where the paths in their settings begin, absolute. */
  readonly base: string;
  readonly container?: ToolContainer | undefined;
  readonly logger?: Logger | undefined;
  /** Of the agent itself, where they are right. */
  readonly provider?: LLMProvider | undefined;
  readonly model?: string | undefined;
  readonly policy?: ToolPolicy | undefined;
  readonly hooks?: readonly Hooks[] | undefined;
  readonly permissions?: Permissions | undefined;
  readonly store?: ConversationsStore | undefined;
}

/**
 * Opens a toolbox; what is named is loaded now.
 *
 * @throws InvalidOptionsError (521), ToolDeclarationError (502), and what the system says of a folder.
 */
async function openToolbox(
  toolbox: Toolbox,
  around: ToolboxSurroundings,
): Promise<{ readonly tools: ToolRegistry; readonly close?: NamedTools['close'] }> {
  if (toolbox instanceof ToolRegistry) return { tools: checked(toolbox) };
  const faults = ofAnotherCopy(ToolRegistry)(toolbox, 'it');
  refuseOptions(faults.map((fault) => ({ ...fault, where: 'toolbox', option: '' })));
  const named = readNamed(toolbox, { names: TOOLBOX_NAMES, of: 'toolbox' });
  const registry = new ToolRegistry(around.logger && { logger: around.logger });
  if (named === undefined) return { tools: registry.register(...ownTools(toolbox, around)) };
  const open = OPENERS[named.name as keyof ToolboxSettings];
  const { tools, close } = await open(named.settings as never, around);
  return { tools: registry.register(...tools), close };
}

/** A registry's policies and hooks stay behind when its tools are merged: what they guard must not be unguarded. */
function checked(registry: ToolRegistry): ToolRegistry {
  const lost = (what: string, option: string): InvalidOption => ({
    where: 'toolbox',
    option: '',
    problem: `the registry has ${what} of its own, which would not be heard`,
    fix: `${option}: … of createAgent, and a registry without`,
  });
  refuseOptions([
    ...(registry.policies.length > 0 ? [lost('a policy', 'policy')] : []),
    ...(registry.hooks.length > 0 ? [lost('hooks', 'hooks')] : []),
  ]);
  return registry;
}

function ownTools(toolbox: Toolbox, { container, logger }: ToolboxSurroundings): readonly RegisteredTool[] {
  const given = { ...(container && { container }), ...(logger && { logger }) };
  if (isToolset(toolbox)) return discoverTools({ ...given, toolsets: [toolbox] });
  const maker: unknown = typeof toolbox === 'object' && toolbox !== null ? toolbox.constructor : undefined;
  if (isToolset(maker)) return toolsOfInstances(toolbox as object);
  const mistake = mistakenFor(toolbox, maker);
  if (mistake !== undefined) throw new InvalidOptionsError([{ where: 'toolbox', option: '', ...mistake }]);
  return [toolbox as RegisteredTool];
}

/** What is taken for a toolbox and is none. A function is not called: nobody knows what it does. */
function mistakenFor(toolbox: unknown, maker: unknown): Pick<InvalidOption, 'problem' | 'fix'> | undefined {
  const fix = 'add @Toolset() before the class, and @Tool(…) before its methods';
  if (typeof toolbox === 'function') {
    if (/^class\b/.test(Function.prototype.toString.call(toolbox)))
      return { problem: `the class ${toolbox.name} has no tools`, fix };
    return { problem: 'a function is no toolbox', fix: 'the tool that it gives: defineTool({ … })' };
  }
  if (typeof maker !== 'function' || maker === Object || 'execute' in (toolbox as object)) return undefined;
  return { problem: `an instance of ${maker.name} has no tools`, fix };
}

function isToolset(value: unknown): value is ClassType {
  return typeof value === 'function' && value !== Object && toolMethods(value as ClassType).length > 0;
}

/** Opens toolboxes, those within lists too. What is wrong with any of them is kept with the other faults. */
export async function openToolboxes(
  toolboxes: readonly PlacedToolbox[],
  { faults, around }: { readonly faults: AgentFaults; readonly around: (at: string) => ToolboxSurroundings },
): Promise<{ readonly tools: ToolRegistry; readonly closers: readonly (() => Promise<void>)[] }> {
  const tools = new ToolRegistry();
  const closers: (() => Promise<void>)[] = [];
  const places = new Map<string, string>();
  for (const { at, toolbox } of toolboxes.flatMap(flatToolboxes)) {
    const open = await faults.of(at, () => openToolbox(toolbox, around(at)), at === 'skills' ? {} : toolbox);
    if (open === undefined) continue;
    if (open.close !== undefined) closers.push(open.close);
    const names = open.tools.list();
    for (const other of new Set(names.flatMap((name) => places.get(name) ?? [])))
      faults.add(at, {
        problem: twice(
          at,
          other,
          names.filter((name) => places.get(name) === other),
        ),
        fix: '@Toolset({ prefix }) for one of them, or one of them left out',
      });
    for (const name of names) places.set(name, at);
    tools.merge(open.tools);
  }
  return { tools, closers };
}

const MOST_NAMED = 3;

function twice(at: string, other: string, names: readonly string[]): string {
  const shown = names.slice(0, MOST_NAMED).map((name) => `'${name}'`);
  if (names.length === 1) return `${at} has a tool ${shown[0]}, which ${other} has, too`;
  const rest = names.length > MOST_NAMED ? ', …' : '';
  return `${at} has ${names.length} tools that ${other} has, too: ${shown.join(', ')}${rest}`;
}

export interface PlacedToolbox {
  readonly at: string;
  readonly toolbox: Toolbox;
}

function flatToolboxes({ at, toolbox }: PlacedToolbox): readonly PlacedToolbox[] {
  if (!Array.isArray(toolbox)) return [{ at, toolbox }];
  return toolbox.flatMap((one, index) => flatToolboxes({ at: `${at}[${index}]`, toolbox: one }));
}

/** The tools of a toolbox that has a name, and what ends what they have started. */
interface NamedTools {
  readonly tools: readonly ToolDefinition[];
  readonly close?: (() => Promise<void>) | undefined;
}

type Open<Settings> = (settings: Settings, around: ToolboxSurroundings) => Promise<NamedTools>;

const OPENERS: { readonly [Name in keyof ToolboxSettings]: Open<ToolboxSettings[Name]> } = {
  async files(settings, { folder, base }) {
    const { fileTools } = await import('../toolbox/files/index.js');
    return { tools: fileTools({ ...settings, root: placeIn(base, settings.root) ?? folder }) };
  },
  async shell({ sandbox, ...settings }, { folder, base, permissions, logger }) {
    const { LocalShell, ShellTools } = await import('../toolbox/shell/index.js');
    const own = { ...settings, folder: placeIn(base, settings.folder) ?? folder, ...(logger && { logger }) };
    const isLocal = sandbox === undefined ? permissions?.mode !== 'auto' : !isRecord(sandbox);
    const shell = isLocal
      ? new LocalShell({ ...own, ...(sandbox !== undefined && { sandbox: sandbox as 'external' }) })
      : await sandboxed({ ...own, ...(isRecord(sandbox) && sandbox) }, permissions);
    const instance = new ShellTools(shell);
    return { tools: toolsOfInstances(instance), close: () => instance.dispose() };
  },
  async web({ search, ...settings }) {
    const { SearxngSearch, WebSearch, webTools } = await import('../toolbox/web/index.js');
    const faults = new AgentFaults(() => 'web');
    const find = (): InstanceType<typeof WebSearch> | undefined => {
      if (search === undefined || search instanceof WebSearch) return search;
      const engine = readNamed(search, { names: ['searxng'], of: 'search engine' });
      return new SearxngSearch(engine?.settings as never);
    };
    const engine = await faults.of('search', find, search);
    const tools = await faults.of('', () => webTools({ ...settings, ...(engine && { search: engine }) }));
    faults.throwAll();
    return { tools: tools ?? [] };
  },
  async tasks(settings) {
    const wrong = { where: 'tasks', problem: 'tasks have no settings', fix: "'tasks'" };
    refuseOptions(Object.keys(settings).map((option) => ({ ...wrong, option })));
    const { taskTools } = await import('../toolbox/tasks/index.js');
    return { tools: taskTools() };
  },
  async skills({ folder: named, ...settings }, { folder, base }) {
    const { skillTools } = await import('../toolbox/skills/index.js');
    const root = placeIn(base, settings.root) ?? folder;
    return { tools: skillTools({ ...settings, root, folder: foldersIn(base, named) }) };
  },
  async openapi({ document, ...settings }, { base }) {
    const { toolsFromOpenApi } = await import('../toolbox/openapi/index.js');
    const faults = new AgentFaults(() => 'openapi');
    const read = await faults.of('', () => readDocument(document, base));
    const tools = await faults.of('', () => {
      try {
        return toolsFromOpenApi(read, settings);
      } catch (error) {
        // Of a document that cannot be read, nothing else is to be said.
        if (read === undefined && error instanceof ToolDeclarationError) return [];
        throw error;
      }
    });
    faults.throwAll();
    return { tools: tools ?? [] };
  },
  async schedule(settings, { store }) {
    const { scheduleTools } = await import('../toolbox/schedule/index.js');
    try {
      return { tools: scheduleTools({ ...settings, store: store as unknown as StoreWithSchedules }) };
    } catch (error) {
      if (keepsSchedules(store) || !(error instanceof InvalidOptionsError)) throw error;
      const others = error.faults.filter(({ option }) => option !== 'store');
      throw new InvalidOptionsError([...missingStore('schedules').faults, ...others]);
    }
  },
  async agents({ agents: others, total, ...settings }, around) {
    const { Agents, agentTools } = await import('../toolbox/agents/index.js');
    const { store, permissions } = around;
    const known = total === undefined || keepsBudgets(store) ? [] : missingStore('budgets').faults;
    const faults = new AgentFaults(() => 'agents');
    const opened = await openOthers(others, around, faults);
    const kept = keepsBudgets(store) ? { store: store as unknown as StoreWithBudgets } : {};
    const made = { ...settings, ...(total === undefined ? {} : { total, ...kept }), agents: opened.agents };
    const areNone = !faults.isEmpty && Object.keys(opened.agents).length === 0;
    const agents = areNone ? undefined : await faults.of('', () => new Agents(made));
    const close = async (): Promise<void> => {
      agents?.dispose();
      for (const closeOne of opened.closers) await closeOne();
    };
    if (agents !== undefined && faults.isEmpty)
      return { tools: agentTools(agents, permissions && { permissions }), close };
    await close();
    throw withFaults(known, faults.error);
  },
};

/** What rules close to tools is closed to commands, too, beside what the settings say. */
async function sandboxed(
  options: SandboxShellOptions,
  permissions: Permissions | undefined,
): Promise<CommandShell> {
  const { sandboxShell } = await import('../toolbox/sandbox/index.js');
  const { unreadable = [], unwritable = [] } = permissions?.closedPaths() ?? {};
  const all = (own: unknown, more: readonly string[]) =>
    own === undefined ? more : Array.isArray(own) ? [...own, ...more] : (own as readonly string[]);
  return sandboxShell({
    ...options,
    unreadable: all(options.unreadable, unreadable),
    unwritable: all(options.unwritable, unwritable),
  });
}

/** @throws InvalidOptionsError (521) where it is missing, cannot be read, or is no JSON. */
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
    throw wrong(`${path} is no JSON`);
  }
}

function missingStore(what: string): InvalidOptionsError {
  const problem = `the agent has no store that keeps ${what}`;
  const fix = "store: { sqlite: { path: 'agent.sqlite' } } of createAgent";
  return new InvalidOptionsError([{ where: 'store', option: '', problem, fix }]);
}

/** What is wrong besides; that a store is missing is told once. */
function withFaults(known: readonly InvalidOption[], error: unknown): unknown {
  if (known.length === 0) return error;
  if (error instanceof InvalidOptionsError)
    return new InvalidOptionsError([...known, ...error.faults.filter(({ option }) => option !== 'store')]);
  if (error instanceof ToolDeclarationError)
    return new InvalidOptionsError([...known, ...error.faults.map((fault) => ({ ...fault, option: '' }))]);
  return error;
}

const UNKNOWN_PROVIDER: LLMProvider = { chat: () => Promise.reject(new TypeError('There is no provider')) };

interface OpenOthers {
  readonly agents: Record<string, NamedAgent>;
  readonly closers: readonly (() => Promise<void>)[];
}

/** Opens the toolboxes of other agents. They are under the policy of the agent and within its hooks, whoever asks them. */
async function openOthers(
  others: Readonly<Record<string, OtherAgent>>,
  around: ToolboxSurroundings,
  faults: AgentFaults,
): Promise<OpenOthers> {
  if (!isRecord(others)) return { agents: others, closers: [] };
  const agents: Record<string, NamedAgent> = {};
  const closers: (() => Promise<void>)[] = [];
  for (const [name, other] of Object.entries(others)) {
    const at = `agents.${name}`;
    if (!isRecord(other)) {
      faults.add(at, { problem: `${at} is no object`, fix: "{ description: '…', toolboxes: ['web'] }" });
      continue;
    }
    const { toolboxes = [], provider, policy, hooks = [], ...own } = other as OtherAgent;
    const all = Array.isArray(hooks) ? [...(around.hooks ?? []), ...hooks] : hooks;
    const open = await openToolboxes([{ at: `${at}.toolboxes`, toolbox: toolboxes }], {
      faults,
      around: () => around,
    });
    closers.push(...open.closers);
    const both = bothPolicies(around.policy, policy);
    const asked = provider && (await faults.of(`${at}.provider`, () => openProvider(provider), provider));
    agents[name] = {
      ...own,
      // What the agent itself lacks is told of the agent.
      provider: asked ?? around.provider ?? UNKNOWN_PROVIDER,
      model: own.model ?? around.model ?? 'unknown',
      tools: own.agents === undefined ? open.tools : open.tools.tools(),
      ...(both && { policy: both }),
      ...(Array.isArray(all) && all.length === 0 ? {} : { hooks: all }),
    };
  }
  return { agents, closers };
}

/** What is no path is left for the toolset to refuse. */
function placeIn(base: string, path: string | undefined): string | undefined {
  return typeof path === 'string' && path !== '' ? resolve(base, path) : path;
}

function foldersIn(base: string, folder: string | readonly string[]): string | readonly string[] {
  const place = (one: string) => placeIn(base, one) ?? one;
  return Array.isArray(folder) ? folder.map(place) : place(folder as string);
}
