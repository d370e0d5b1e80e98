import type { DiscoveryService, ModuleRef, ModulesContainer } from '@nestjs/core';
import type { TaskQueue } from '../../invocation/task-queue.js';
import { REGISTRY_RULES, type ToolRegistryOptions } from '../../registry/tool-registry-options.js';
import { ApplicationTools } from './application-tools.js';
import type { ToolwrightModuleOptions } from './module-options.js';
import { nestLogger } from './nest-logger.js';
import type { ToolHost } from './provider-target.js';
import { createErrorDescriber } from './public-text.js';
import { RegisteredTools } from './registered-tools.js';
import type { ToolCaller } from './tool-caller.js';
import { ToolContainer } from './tool-container.js';
import { ToolFinder } from './tool-finder.js';

/** What Nest knows of the application. */
export interface ApplicationParts {
  readonly options: ToolwrightModuleOptions;
  readonly caller: ToolCaller;
  readonly tasks: TaskQueue;
  readonly discovery: DiscoveryService;
  readonly moduleRef: ModuleRef;
  readonly modules: ModulesContainer;
}

/**
 * The tools of an application, as far as they can be known before its providers are made: so that mistakes are
 * told while the application is created, like Nest's own.
 */
export function createApplicationTools(parts: ApplicationParts): ApplicationTools {
  const { options, caller, tasks, discovery, moduleRef, modules } = parts;
  const tools = new ApplicationTools({
    caller,
    finder: new ToolFinder(discovery),
    host: () => hostOf(modules),
    container: new ToolContainer(moduleRef),
    options: {
      logger: nestLogger(),
      // Nest's own logger prints every level unless it is told otherwise.
      logArguments: false,
      ...registryOptions(options),
      describeError: createErrorDescriber(options),
      tasks,
    },
    isStrict: options.strict ?? false,
  });
  tools.discover(false, options.tools);
  return tools;
}

function registryOptions(options: ToolwrightModuleOptions): ToolRegistryOptions {
  const given = Object.entries(options).filter(
    ([key, value]) => Object.hasOwn(REGISTRY_RULES, key) && value !== undefined,
  );
  return Object.fromEntries(given);
}

function hostOf(modules: ModulesContainer): ToolHost {
  for (const module of modules.values()) {
    const wrapper = module.providers.get(RegisteredTools);
    if (wrapper !== undefined) return { wrapper: wrapper as ToolHost['wrapper'], module };
  }
  throw new TypeError('ToolwrightModule is no part of this application.');
}
