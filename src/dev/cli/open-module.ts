import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { CallScope } from '../../core/contract/call.js';
import type { ClassType } from '../../core/contract/declaration.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import { type LLMProvider, PROVIDER } from '../../core/contract/llm-provider.js';
import type { Logger } from '../../core/contract/ports.js';
import { RUN_STORE, type RunStore } from '../../core/contract/run-state.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import { InvalidOptionsError, ToolDeclarationError } from '../../core/errors/author-fault.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { isRecord, parsedJson } from '../../core/kernel/json.js';
import { TEXT } from '../../core/kernel/options.js';
import { loadedToolsets, readRecord } from '../../core/metadata/class-record.js';
import { ToolRegistry } from '../../run/call/tool-registry.js';
import type { ToolLoopConfig } from '../../run/loop/options.js';
import type { RecoverOptions } from '../../run/loop/recover-runs.js';
import type { InspectorOptions } from '../../surfaces/inspector/index.js';
import type { NestModule } from '../../surfaces/nestjs/open-application.js';
import { discoverTools } from '../../tools/discovery/discover-tools.js';
import { type CommandEnvironment, UserFault } from './command.js';

/** A module that brings tools. */
export interface OpenModule {
  readonly exports: Readonly<Record<string, unknown>>;
  /** Of an application: does what is kept for workers until it is closed; tells what that is. */
  work?(logger: Logger): readonly string[];
  /** Of an application: what runs without a holder are continued with. */
  readonly recovery?: Pick<RecoverOptions, 'config' | 'scope'>;
  /** Of an application: the settings for an inspector or a chat. */
  readonly inspection?: InspectorOptions;
  /** Of an application: its root module. */
  readonly nestModule?: NestModule;
  /** Ends what was started for its tools. */
  close(): Promise<void>;
}

/**
 * Loads a module as the user names it. Of a NestJS application the registry is what counts, and only the
 * application has it: the exported module class is started, without a server, as far as its hooks go.
 */
export async function openModule(
  name: string,
  folder: string,
  user: 'author' | 'operator' = 'author',
): Promise<OpenModule> {
  const open = () => openTools(name, folder);
  return user === 'operator' ? withoutAdvice(open) : open();
}

async function openTools(name: string, folder: string): Promise<OpenModule> {
  const exports = await loadModule(name, folder);
  const exported = Object.values(exports);
  const [module, second] = new Set(exported.filter(isNestModule));
  if (module === undefined || exported.some(isRegistry)) return { exports, close: async () => {} };
  if (second !== undefined)
    throw new UserFault(`${name} exports several NestJS modules: name a file that exports one`, 1);
  const application = await startApplication(module, name);
  return { ...application, nestModule: module, exports: { ...exports, ...application.exports } };
}

/** What a module could declare better is for its author: whoever operates it can do nothing about it. */
async function withoutAdvice<Value>(work: () => Promise<Value>): Promise<Value> {
  const { emitWarning } = process;
  process.emitWarning = (...given: readonly unknown[]) => {
    const { type } = Object(given[1]) as { readonly type?: unknown };
    if (type !== 'ToolwrightWarning') Reflect.apply(emitWarning, process, given);
  };
  try {
    return await work();
  } finally {
    process.emitWarning = emitWarning;
  }
}

const NEST_KEYS = ['imports', 'providers', 'controllers', 'exports'];

/** A class with `@Module`, or what a `forRoot` of one gives; read without NestJS, which need not be there. */
function isNestModule(value: unknown): value is NestModule {
  if (typeof value === 'object' && value !== null && 'module' in value)
    return typeof value.module === 'function' && NEST_KEYS.some((key) => key in value);
  const { hasOwnMetadata } = Reflect as {
    readonly hasOwnMetadata?: (key: string, target: object) => boolean;
  };
  if (typeof value !== 'function' || hasOwnMetadata === undefined) return false;
  return NEST_KEYS.some((key) => hasOwnMetadata(key, value));
}

async function startApplication(module: NestModule, name: string): Promise<OpenModule> {
  try {
    const { openApplication } = await import('../../surfaces/nestjs/open-application.js');
    const { registry, engine, ...application } = await openApplication(module);
    return { ...application, exports: { registry, ...(engine && { engine }) } };
  } catch (error) {
    // The command shows all mistakes in declarations; anything else that an application says is one line.
    if (error instanceof ToolDeclarationError || error instanceof InvalidOptionsError) throw error;
    const reason = error instanceof Error ? error.message.split('\n', 1) : error;
    const { name: named } = 'module' in module ? module.module : module;
    throw new UserFault(`the application of ${named} in ${name} cannot be started: ${reason}`, 1);
  }
}

/** Loads a module as the user names it: a file below the folder, or a package that the folder has. */
async function loadModule(name: string, folder: string): Promise<Readonly<Record<string, unknown>>> {
  const file = resolve(folder, name);
  const path = existsSync(file) ? file : resolvePackage(name, folder);
  const { href } = pathToFileURL(path);
  try {
    return await import(href).catch(async (error: unknown) => {
      if (!needsTsx(path, error) || !(await registerTsx(folder))) throw error;
      // Node remembers that the first address could not be loaded.
      return import(`${href}?tsx`);
    });
  } catch (error) {
    const advice = needsTsx(path, error) ? TYPESCRIPT_ADVICE : '';
    throw new UserFault(`${name} cannot be loaded: ${reasonOf(error)}${advice}`, 1);
  }
}

/** Node strips types, but has no decorators, enums and parameter properties, and no `.js` that stands for a `.ts`. */
function needsTsx(path: string, error: unknown): boolean {
  const { code } = Object(error) as { readonly code?: unknown };
  return (
    /\.[cm]?tsx?$/.test(path) &&
    (error instanceof SyntaxError || /TYPESCRIPT|MODULE_NOT_FOUND|UNKNOWN_FILE_EXTENSION/.test(String(code)))
  );
}

/** Lets `tsx` load TypeScript, if the project has it. */
async function registerTsx(folder: string): Promise<boolean> {
  let tsx: string;
  try {
    tsx = createRequire(pathToFileURL(join(folder, 'package.json'))).resolve('tsx/esm/api');
  } catch {
    return false;
  }
  const { register } = (await import(pathToFileURL(tsx).href)) as { readonly register: () => unknown };
  register();
  return true;
}

const TYPESCRIPT_ADVICE =
  ' (install tsx in the project to load TypeScript, or name the JavaScript file that the compiler writes)';

/** Of Node's own errors the first line says it; the framework's name every mistake in a line of its own. */
function reasonOf(error: unknown): string {
  if (ToolwrightError.is(error)) return error.message;
  return (error instanceof Error ? error.message : String(error)).split('\n', 1).join();
}

function resolvePackage(name: string, folder: string): string {
  try {
    return createRequire(pathToFileURL(join(folder, 'package.json'))).resolve(name);
  } catch {
    throw new UserFault(`there is no module ${name}`, 1);
  }
}

/** Opens a module for `work` and closes it. Mistakes in its declarations are printed, all together. */
export async function withModule(
  name: string,
  { folder, error }: Pick<CommandEnvironment, 'folder' | 'error'>,
  work: (module: OpenModule) => number | Promise<number>,
): Promise<number> {
  try {
    const module = await openModule(name, folder);
    try {
      return await work(module);
    } finally {
      await module.close();
    }
  } catch (fault) {
    if (!(fault instanceof ToolDeclarationError || fault instanceof InvalidOptionsError)) throw fault;
    error(`${fault.message}\n`);
    return 1;
  }
}

/** The settings of runs that a module exports, in its `config` or by themselves. */
export interface ModuleSettings {
  readonly provider?: LLMProvider;
  readonly model?: string;
  readonly systemPrompt?: string;
  readonly llmOptions?: Readonly<Record<string, unknown>>;
  readonly store?: RunStore;
}

/** The settings that are what they should be; of an application, those of its `forRoot`. */
export function settingsOfModule({ exports, inspection }: OpenModule): ModuleSettings {
  const all = { ...exports, ...(isRecord(exports.config) ? exports.config : {}), ...inspection };
  const settings: Readonly<Record<keyof ModuleSettings, (value: unknown) => boolean>> = {
    provider: PROVIDER.accepts,
    model: TEXT.accepts,
    systemPrompt: TEXT.accepts,
    llmOptions: isRecord,
    store: RUN_STORE.accepts,
  };
  return Object.fromEntries(
    Object.entries(settings)
      .map(([name, accepts]) => [name, all[name as keyof typeof all], accepts] as const)
      .filter(([, value, accepts]) => accepts(value)),
  );
}

/** The scope of calls that a command makes with this `data`. */
export function scopeOfModule(
  { inspection }: OpenModule,
  data: CallScope['data'] | undefined,
): CallScope | Promise<CallScope> {
  const chosen = data === undefined ? {} : { data };
  return inspection?.scope === undefined ? chosen : inspection.scope(chosen);
}

/** An option that is a JSON object. */
export function jsonObject(option: string, text: string): JsonObject {
  const value = parsedJson(text);
  if (isRecord(value)) return value as JsonObject;
  throw new UserFault(`${option} is a JSON object: ${option} '{"userId":"u1"}'`);
}

/** What the module exports as `config`; what is wrong in it, whoever uses it says. */
export function configOfModule(name: string, { config }: OpenModule['exports']): ToolLoopConfig {
  if (isRecord(config) && 'provider' in config) return config as unknown as ToolLoopConfig;
  throw new UserFault(`${name} exports no config: export const config = { provider, model, tools }`, 1);
}

/** What a module lacks that has no tools. */
export const NO_TOOLS = 'no ToolRegistry, no toolset class, no tool and no NestJS module';

/** What a module brings: a registry with its tools, or what one is made of. */
export interface ModuleTools {
  readonly registry?: ToolRegistry;
  readonly toolsets: readonly ClassType[];
  readonly tools: readonly ToolDefinition[];
}

/**
 * The registry that a module exports, under however many names; or, where it exports none, the toolset classes
 * that it loaded or exports and the tools that it exports. Nothing is created.
 *
 * @throws UserFault where it exports several: each has its own policy, and merging them would lose all of them.
 */
export function toolsOfModule(module: Readonly<Record<string, unknown>>): ModuleTools | undefined {
  const exported = Object.values(module).flatMap((value) => (Array.isArray(value) ? value : [value]));
  const [registry, second] = new Set(exported.filter(isRegistry));
  if (second !== undefined) throw new UserFault('the module exports several registries: export one', 1);
  if (registry !== undefined) return { registry, toolsets: [], tools: registry.tools() };
  const toolsets = [...new Set([...loadedToolsets(), ...exported.filter(isToolset)])];
  const tools = [...new Set(exported.filter(isTool))];
  return toolsets.length + tools.length === 0 ? undefined : { toolsets, tools };
}

/** Also of another copy of this package: what is used of it is public. */
function isRegistry(value: unknown): value is ToolRegistry {
  return hasMethods(value, ['invoke', 'tools', 'view', 'onChange']);
}

function isTool(value: unknown): value is ToolDefinition {
  return hasMethods(value, ['execute']) && 'parameters' in (value as object);
}

function isToolset(value: unknown): value is ClassType {
  return typeof value === 'function' && (readRecord(value)?.methods.size ?? 0) > 0;
}

function hasMethods(value: unknown, names: readonly string[]): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return names.every((name) => typeof (value as Readonly<Record<string, unknown>>)[name] === 'function');
}

/** The registry of a module that must have tools. */
export function requiredRegistry(name: string, { exports }: OpenModule): ToolRegistry {
  const registry = registryOfModule(exports);
  if (registry === undefined) throw new UserFault(`${name} exports ${NO_TOOLS}`, 1);
  return registry;
}

/**
 * The registry that a module exports, or one of the toolset classes and tools that it brings.
 *
 * @throws ToolDeclarationError (502) for every mistake in what the module declares.
 */
export function registryOfModule(module: Readonly<Record<string, unknown>>): ToolRegistry | undefined {
  const found = toolsOfModule(module);
  if (found === undefined) return undefined;
  const { registry, toolsets, tools } = found;
  if (registry !== undefined) return registry;
  // A module of plain objects has not loaded what discovery needs.
  const discovered = toolsets.length === 0 ? [] : discoverTools({ toolsets });
  // A tool that it exports beside a class of the same tools takes their place.
  return new ToolRegistry().register(...discovered).register(...tools);
}
