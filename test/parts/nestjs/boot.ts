import type { ModuleMetadata } from '@nestjs/common';
import { Test, type TestingModule, type TestingModuleBuilder } from '@nestjs/testing';
import { ToolRegistry } from 'toolwright';
import { ToolwrightModule, type ToolwrightModuleOptions, ToolwrightService } from 'toolwright/nestjs';

/** An application under test. */
export interface Booted {
  readonly module: TestingModule;
  readonly tools: ToolRegistry;
  readonly toolwright: ToolwrightService;
}

export interface BootOptions extends ModuleMetadata {
  readonly options?: ToolwrightModuleOptions;
  /** Overrides providers. */
  readonly override?: (builder: TestingModuleBuilder) => TestingModuleBuilder;
}

/** Boots an application with its own `ToolwrightModule`, as Nest does, but without a log. */
export async function boot({ options, override, imports = [], ...metadata }: BootOptions): Promise<Booted> {
  const builder = Test.createTestingModule({
    ...metadata,
    imports: [ToolwrightModule.forRoot(options), ...imports],
  }).setLogger(false as never);
  const module = await (override?.(builder) ?? builder).compile();
  module.useLogger(false);
  await module.init();
  return { module, tools: module.get(ToolRegistry), toolwright: module.get(ToolwrightService) };
}
