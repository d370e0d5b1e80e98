import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { RegisteredTool } from '../call/registration.js';
import { ToolRegistry } from '../call/tool-registry.js';
import type { ClassType } from '../contract/declaration.js';
import type { Logger } from '../contract/ports.js';
import { keepsSchedules, type StoreWithSchedules } from '../contract/schedule-store.js';
import type { ToolDefinition } from '../contract/tool.js';
import type { ToolContainer } from '../discovery/containers/toolset-host.js';
import { discoverTools } from '../discovery/discover-tools.js';
import { type InvalidOption, refuseOptions } from '../errors/author-fault.js';
import { toolMethods } from '../metadata/class-record.js';
import { TOOLBOX_NAMES, type Toolbox, type ToolboxSettings } from './agent-options.js';
import { readNamed } from './named-parts.js';

/** What toolboxes are opened with. */
interface ToolboxSurroundings {
  /** Where named toolboxes work, absolute. */
  readonly folder: string;
  /** Where the paths in their settings begin, absolute. */
  readonly base: string;
  readonly container?: ToolContainer | undefined;
  readonly logger?: Logger | undefined;
  /** Of the agent. */
  readonly store?: unknown;
}

/** The tools of a toolbox, and what ends what it has started. */
interface OpenToolbox {
  readonly tools: ToolRegistry;
  readonly close?: () => Promise<void>;
}

/**
 * Opens a toolbox; what is named is loaded now.
 *
 * @throws InvalidOptionsError (521), ToolDeclarationError (502), and what the system says of a folder.
 */
export async function openToolbox(toolbox: Toolbox, around: ToolboxSurroundings): Promise<OpenToolbox> {
  if (toolbox instanceof ToolRegistry) return { tools: checked(toolbox) };
  const named = readNamed(toolbox, { names: TOOLBOX_NAMES, of: 'toolbox' });
  const { tools, close } =
    named === undefined
      ? { tools: ownTools(toolbox, around), close: undefined }
      : await OPENERS[named.name as keyof ToolboxSettings](named.settings as never, around);
  const registry = new ToolRegistry(around.logger && { logger: around.logger }).register(...tools);
  return close === undefined ? { tools: registry } : { tools: registry, close };
}

/** A registry's policies and hooks stay behind when its tools are merged: what they guard must not be unguarded. */
function checked(registry: ToolRegistry): ToolRegistry {
  const lost = [
    ...(registry.policies.length > 0 ? ['policy'] : []),
    ...(registry.hooks.length > 0 ? ['hooks'] : []),
  ];
  refuseOptions(
    lost.map((option) => ({
      where: 'toolbox',
      option: '',
      problem: `the registry has ${option === 'policy' ? 'a policy' : 'hooks'} of its own, which would not be heard`,
      fix: `${option}: … of createAgent, and a registry without`,
    })),
  );
  return registry;
}

/** A class, an instance of one, or a tool. */
function ownTools(toolbox: Toolbox, { container, logger }: ToolboxSurroundings): readonly RegisteredTool[] {
  const given = { ...(container && { container }), ...(logger && { logger }) };
  if (isToolset(toolbox)) return discoverTools({ ...given, toolsets: [toolbox] });
  const maker: unknown = typeof toolbox === 'object' && toolbox !== null ? toolbox.constructor : undefined;
  if (isToolset(maker)) return toolsOf(maker, toolbox as object);
  return [toolbox as RegisteredTool];
}

function isToolset(value: unknown): value is ClassType {
  return typeof value === 'function' && value !== Object && toolMethods(value as ClassType).length > 0;
}

function toolsOf(toolset: ClassType, instance: object): readonly ToolDefinition[] {
  // The container of one class has nothing else to give.
  const resolve = <Instance>(): Instance => instance as Instance;
  return discoverTools({ toolsets: [toolset], container: { resolve } });
}

/** The toolboxes within lists, each with its place. */
export function flatToolboxes(
  toolboxes: readonly Toolbox[],
  at: string,
): readonly { readonly at: string; readonly toolbox: Toolbox }[] {
  return toolboxes.flatMap((toolbox, index) => {
    const place = `${at}[${index}]`;
    return Array.isArray(toolbox) ? flatToolboxes(toolbox, place) : [{ at: place, toolbox }];
  });
}

interface NamedTools {
  readonly tools: readonly ToolDefinition[];
  readonly close?: () => Promise<void>;
}

type Open<Settings> = (settings: Settings, around: ToolboxSurroundings) => Promise<NamedTools>;

const NO_STORE: InvalidOption = {
  where: 'schedule',
  option: '',
  problem: 'the agent has no store that keeps schedules',
  fix: "store: { sqlite: { path: 'agent.sqlite' } }",
};

const OPENERS: { readonly [Name in keyof ToolboxSettings]: Open<ToolboxSettings[Name]> } = {
  async files(settings, { folder, base }) {
    const { fileTools } = await import('../toolbox/files/index.js');
    return { tools: fileTools({ ...settings, root: placeIn(base, settings.root) ?? folder }) };
  },
  async shell(settings, { folder, base }) {
    const { LocalShell, ShellTools } = await import('../toolbox/shell/index.js');
    const shell = new LocalShell({ ...settings, folder: placeIn(base, settings.folder) ?? folder });
    const instance = new ShellTools(shell);
    return { tools: toolsOf(ShellTools, instance), close: () => instance.dispose() };
  },
  async web({ search, ...settings }) {
    const { SearxngSearch, WebSearch, webTools } = await import('../toolbox/web/index.js');
    if (search === undefined || search instanceof WebSearch)
      return { tools: webTools({ ...settings, ...(search === undefined ? {} : { search }) }) };
    const engine = readNamed(search, { names: ['searxng'], of: 'search engine' });
    return { tools: webTools({ ...settings, search: new SearxngSearch(engine?.settings as never) }) };
  },
  async tasks(settings) {
    refuseOptions(
      Object.keys(settings).map((option) => ({
        where: 'tasks',
        option,
        problem: 'tasks have no settings',
        fix: "'tasks'",
      })),
    );
    const { taskTools } = await import('../toolbox/tasks/index.js');
    return { tools: taskTools() };
  },
  async schedule(settings, { store }) {
    if (!keepsSchedules(store)) refuseOptions([NO_STORE]);
    const { Schedules, ScheduleTools } = await import('../toolbox/schedule/index.js');
    const schedules = new Schedules({ ...settings, store: store as StoreWithSchedules });
    return { tools: toolsOf(ScheduleTools, new ScheduleTools(schedules)) };
  },
  async skills({ folder, ...settings }, { base }) {
    const { skillTools } = await import('../toolbox/skills/index.js');
    return { tools: skillTools({ ...settings, folder: foldersIn(base, folder) }) };
  },
  async openapi({ document, ...settings }, { base }) {
    const { toolsFromOpenApi } = await import('../toolbox/openapi/index.js');
    const read =
      typeof document === 'string' ? JSON.parse(await readFile(resolve(base, document), 'utf8')) : document;
    return { tools: toolsFromOpenApi(read, settings) };
  },
};

/** What is no path is left for the toolset to refuse. */
function placeIn(base: string, path: string | undefined): string | undefined {
  return typeof path === 'string' && path !== '' ? resolve(base, path) : path;
}

function foldersIn(base: string, folder: string | readonly string[]): string | readonly string[] {
  const place = (one: string) => placeIn(base, one) ?? one;
  return Array.isArray(folder) ? folder.map(place) : place(folder as string);
}
