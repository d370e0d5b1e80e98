import type { NestModule } from '../bridges/nestjs/open-application.js';
import { ToolDeclarationError } from '../errors/author-fault.js';
import { InvalidOptionsError } from '../errors/invalid-options.js';
import { loadModule } from './load-module.js';
import { isRegistry } from './tools-of-module.js';
import { UserFault } from './user-fault.js';

/** A module that brings tools. */
export interface OpenModule {
  readonly exports: Readonly<Record<string, unknown>>;
  /** Ends what was started for its tools. */
  close(): Promise<void>;
}

/**
 * Loads a module as the user names it. Of a NestJS application the registry is what counts, and only the
 * application has it: the exported module class is started, without a server, as far as its hooks go.
 */
export async function openModule(name: string, folder: string): Promise<OpenModule> {
  const exports = await loadModule(name, folder);
  const exported = Object.values(exports);
  const [module, second] = new Set(exported.filter(isNestModule));
  if (module === undefined || exported.some(isRegistry)) return { exports, close: async () => {} };
  if (second !== undefined)
    throw new UserFault(`${name} exports several NestJS modules: name a file that exports one`, 1);
  return startApplication(module, name);
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
    const { openApplication } = await import('../bridges/nestjs/open-application.js');
    const { registry, close } = await openApplication(module);
    return { exports: { registry }, close };
  } catch (error) {
    // The command shows all mistakes in declarations; anything else that an application says is one line.
    if (error instanceof ToolDeclarationError || error instanceof InvalidOptionsError) throw error;
    const reason = error instanceof Error ? error.message.split('\n', 1) : error;
    const { name: named } = 'module' in module ? module.module : module;
    throw new UserFault(`the application of ${named} in ${name} cannot be started: ${reason}`, 1);
  }
}
