import type { DynamicModule, Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ToolRegistry } from '../call/tool-registry.js';

/** The root module of an application. */
export type NestModule = Type | DynamicModule;

/** A running application's tools. */
export interface OpenApplication {
  readonly registry: ToolRegistry;
  close(): Promise<void>;
}

/** Starts the application of a module without a server, for its tools. It logs mistakes only. */
export async function openApplication(module: NestModule): Promise<OpenApplication> {
  const application = await NestFactory.createApplicationContext(module, {
    logger: ['error', 'fatal'],
    abortOnError: false,
  });
  try {
    const registry = application.get(ToolRegistry, { strict: false });
    return { registry, close: () => application.close() };
  } catch {
    await application.close();
    throw new Error(
      'it has no tools; imports: [ToolwrightModule.forRoot()] makes a registry of its providers’',
    );
  }
}
