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
import { type Fields, isRecord, parsedJson, withoutUndefined } from '../../core/kernel/json.js';
import { nodeFiles } from '../../core/kernel/node-module.js';
import { TEXT, withMethods } from '../../core/kernel/options.js';
import { loadedToolsets, readRecord } from '../../core/metadata/class-record.js';
import { ToolRegistry } from '../../run/call/tool-registry.js';
import type { ToolLoopConfig } from '../../run/loop/options.js';
import type { RecoverOptions } from '../../run/loop/stored-run.js';
import type { InspectorOptions } from '../../surfaces/inspector/index.js';
import type { NestModule } from '../../surfaces/nestjs/application.js';
import { discoverTools } from '../../tools/discovery/discover-tools.js';
import { type CommandEnvironment, closing, installAdvice, localUser, UserFault } from './command.js';

/** What a module exports, by name. */
export type ModuleExports = Fields;

/** A module with tools. */
export interface OpenModule extends AsyncDisposable {
  readonly exports: ModuleExports;
  /** For applications: processes waiting work until it is closed; returns the kinds of work. */
  work?(logger: Logger): readonly string[];
  /** For applications: how to continue runs without a holder. */
  readonly recovery?: Pick<RecoverOptions, 'config' | 'scope'>;
  /** For applications: the settings of an inspector or a chat. */
  readonly inspection?: InspectorOptions;
  /** For applications: the root module. */
  readonly nestModule?: NestModule;
  /** Stops the services that were started for its tools. */
  close(): Promise<void>;
}

/**
 * Loads a module by the user's name for it. A NestJS application has its registry only while it runs, so its module
 * class is started without a server, including its hooks.
 */
export async function openModule(
  name: string,
  folder: string,
  user: 'author' | 'operator' = 'author',
): Promise<OpenModule> {
  if (user === 'author') return closing(await openTools(name, folder));
  const { emitWarning } = process;
  // Advice about declarations is for the module's author, and an operator cannot use it.
  process.emitWarning = (...given: readonly unknown[]) => {
    const { type } = Object(given[1]) as Fields;
    if (type !== 'ToolwrightWarning') Reflect.apply(emitWarning, process, given);
  };
  try {
    return closing(await openTools(name, folder));
  } finally {
    process.emitWarning = emitWarning;
  }
}

async function openTools(
  name: string,
  folder: string,
): Promise<Omit<OpenModule, typeof Symbol.asyncDispose>> {
  const exports = await loadModule(name, folder);
  const exported = Object.values(exports);
  const [module, second] = new Set(exported.filter(isNestModule));
  if (module === undefined || exported.some(isRegistry)) return { exports, close: async () => {} };
  if (second !== undefined)
    throw new UserFault(`${name} exports several NestJS modules: give a file that exports only one`, 1);
  try {
    const { openApplication } = await import('../../surfaces/nestjs/application.js');
    const { registry, engine, ...application } = await openApplication(module);
    const tools = { registry, ...(engine && { engine }) };
    return { ...application, nestModule: module, exports: { ...exports, ...tools } };
  } catch (error) {
    // Faults in declarations are shown completely; other errors of an application are reduced to one line.
    if (error instanceof ToolDeclarationError || error instanceof InvalidOptionsError) throw error;
    const reason = error instanceof Error ? error.message.split('\n', 1) : error;
    const { name: named } = 'module' in module ? module.module : module;
    throw new UserFault(`the application of ${named} in ${name} cannot be started: ${reason}`, 1);
  }
}

const NEST_KEYS = ['imports', 'providers', 'controllers', 'exports'];

/** A class with `@Module`, or the result of its `forRoot`; checked without NestJS, which may not be installed. */
function isNestModule(value: unknown): value is NestModule {
  if (typeof value === 'object' && value !== null && 'module' in value)
    return typeof value.module === 'function' && NEST_KEYS.some((key) => key in value);
  const { hasOwnMetadata } = Reflect as {
    readonly hasOwnMetadata?: (key: string, target: object) => boolean;
  };
  if (typeof value !== 'function' || hasOwnMetadata === undefined) return false;
  return NEST_KEYS.some((key) => hasOwnMetadata(key, value));
}

/** Loads a module by the user's name for it: a file in the folder, or a package installed there. */
async function loadModule(name: string, folder: string): Promise<ModuleExports> {
  const path = modulePath(name, folder);
  const { href } = pathToFileURL(path);
  try {
    if (TYPESCRIPT.test(path)) await registerTsx(folder);
    return await import(href);
  } catch (error) {
    if (error instanceof UserFault) throw error;
    // Node strips types, but cannot run decorators, enums, parameter properties, or `.js` that stands for `.ts`.
    const { code } = Object(error) as Fields;
    const isSyntax =
      error instanceof SyntaxError || /TYPESCRIPT|MODULE_NOT_FOUND|UNKNOWN_FILE/.test(String(code));
    const advice = TYPESCRIPT.test(path) && isSyntax ? TYPESCRIPT_ADVICE : '';
    const reason = installAdvice(error) ?? `${reasonOf(error)}${advice}`;
    throw new UserFault(`${name} cannot be loaded: ${reason}`, 1);
  }
}

const TYPESCRIPT = /\.[cm]?tsx?$/;

/** Registers the project's `tsx`, before the first import, because Node caches a failure. */
async function registerTsx(folder: string): Promise<void> {
  let path: string;
  try {
    path = createRequire(pathToFileURL(join(folder, 'package.json'))).resolve('tsx/esm/api');
  } catch {
    // Without tsx, Node strips the types itself, and the advice follows if that is not enough.
    return;
  }
  const tsx = await import(pathToFileURL(path).href).catch((error: unknown) => {
    throw new UserFault(`tsx is installed but cannot be loaded: ${reasonOf(error)}`, 1);
  });
  try {
    tsx.register();
  } catch {
    // Jest has no such hooks, because it compiles TypeScript itself.
  }
}

const TYPESCRIPT_ADVICE =
  ' (install tsx in the project to load TypeScript, or give the JavaScript file that the compiler writes)';

/** The first line of Node's own errors is enough; the framework's errors have a line for each mistake. */
function reasonOf(error: unknown): string {
  if (ToolwrightError.is(error)) return error.message;
  return (error instanceof Error ? error.message : String(error)).split('\n', 1).join();
}

/** The file that a user's name for a module stands for. */
export function modulePath(name: string, folder: string): string {
  const file = resolve(folder, name);
  if (nodeFiles().existsSync(file)) return file;
  try {
    return createRequire(pathToFileURL(join(folder, 'package.json'))).resolve(name);
  } catch {
    throw new UserFault(`there is no module ${name}`, 1);
  }
}

/** Opens a module for `work` and closes it. */
export async function withModule<Result>(
  name: string,
  { folder }: Pick<CommandEnvironment, 'folder'>,
  work: (module: OpenModule) => Result | Promise<Result>,
): Promise<Result> {
  await using module = await openModule(name, folder);
  return await work(module);
}

/** The settings of runs that a module exports, in `config` or separately. */
export interface ModuleSettings {
  readonly provider?: LLMProvider;
  readonly model?: string;
  readonly systemPrompt?: string;
  readonly llmOptions?: JsonObject;
  readonly store?: RunStore;
}

/** The valid settings; for an application, those of its `forRoot`. */
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

/** The scope of a command's calls with this `data`: they belong to the user of the operating system. */
export function scopeOfModule(
  { inspection }: OpenModule,
  data: CallScope['data'] | undefined,
): CallScope | Promise<CallScope> {
  const chosen = withoutUndefined({ owner: { user: localUser() }, data });
  return inspection?.scope === undefined ? chosen : inspection.scope(chosen);
}

/** Parses an option that is a JSON object. */
export function jsonObject(option: string, text: string): JsonObject {
  const value = parsedJson(text);
  if (isRecord(value)) return value;
  throw new UserFault(`${option} must be a JSON object, such as ${option} '{"userId":"u1"}', not '${text}'`);
}

/** The `config` that the module exports; its user validates it. */
export function configOfModule(name: string, { config }: ModuleExports): ToolLoopConfig {
  if (isRecord(config) && 'provider' in config) return config as unknown as ToolLoopConfig;
  throw new UserFault(`${name} exports no config: export const config = { provider, model, tools }`, 1);
}

/** The message part about a module without tools. */
export const NO_TOOLS = 'no ToolRegistry, no toolset class, no tool and no NestJS module';

/** A registry with its tools, or the toolsets and tools of a module. */
export interface ModuleTools {
  readonly registry?: ToolRegistry;
  readonly toolsets: readonly ClassType[];
  readonly tools: readonly ToolDefinition[];
}

/**
 * The registry that a module exports, even under several names. If there is none: the toolset classes that it loads or
 * exports, and the tools that it exports. Nothing is created.
 *
 * @throws UserFault if it exports several registries: merging them would lose their policies.
 */
export function toolsOfModule(module: ModuleExports): ModuleTools | undefined {
  const exported = Object.values(module).flatMap((value) => (Array.isArray(value) ? value : [value]));
  const [registry, second] = new Set(exported.filter(isRegistry));
  if (second !== undefined) throw new UserFault('the module exports several registries: export only one', 1);
  if (registry !== undefined) return { registry, toolsets: [], tools: registry.tools() };
  const toolsets = [...new Set([...loadedToolsets(), ...exported.filter(isToolset)])];
  const tools = [...new Set(exported.filter(isTool))];
  return toolsets.length + tools.length === 0 ? undefined : { toolsets, tools };
}

/** Accepts a registry of another copy of this package: only its public methods are used. */
const REGISTRY = withMethods(['invoke', 'tools', 'view', 'onChange'], 'a ToolRegistry');

function isRegistry(value: unknown): value is ToolRegistry {
  return REGISTRY.accepts(value);
}

function isTool(value: unknown): value is ToolDefinition {
  return isRecord(value) && typeof value.execute === 'function' && 'parameters' in value;
}

function isToolset(value: unknown): value is ClassType {
  return typeof value === 'function' && (readRecord(value)?.methods.size ?? 0) > 0;
}

/** The registry of a module that must have tools. */
export function requiredRegistry(name: string, { exports }: OpenModule): ToolRegistry {
  const registry = registryOfModule(exports);
  if (registry === undefined) throw new UserFault(`${name} exports ${NO_TOOLS}`, 1);
  return registry;
}

/**
 * The registry that a module exports, or a registry of its toolset classes and tools.
 *
 * @throws ToolDeclarationError (502) with all faults of the module's declarations.
 */
export function registryOfModule(module: ModuleExports): ToolRegistry | undefined {
  const found = toolsOfModule(module);
  if (found === undefined) return undefined;
  const { registry, toolsets, tools } = found;
  if (registry !== undefined) return registry;
  // Without toolsets, `reflect-metadata` may not be loaded, which discovery needs.
  const discovered = toolsets.length === 0 ? [] : discoverTools({ toolsets });
  // An exported tool replaces a class's tool of the same name.
  return new ToolRegistry().register(...discovered).register(...tools);
}
