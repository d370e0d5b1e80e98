import type { DynamicModule, Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { JobEngine } from '../../core/contract/job-engine.js';
import type { Logger } from '../../core/contract/ports.js';
import type { ToolRegistry } from '../../run/call/tool-registry.js';
import type { InspectorOptions } from '../inspector/options.js';
import { Application, type ApplicationFleet, holdingBack } from './application.js';

/** The root module of an application. */
export type NestModule = Type | DynamicModule;

/** The tools of a running application. */
interface OpenApplication {
  readonly registry: ToolRegistry;
  readonly engine: JobEngine | undefined;
  /** Inspector options for it. */
  readonly inspection: InspectorOptions;
  /**
   * Takes turns of conversations, runs jobs and recovers runs until it is closed; returns which of these its store
   * allows. `logger` is used if the application has no logger.
   */
  work(logger: Logger): readonly string[];
  /** The config and scope of runs without a holder. */
  readonly recovery: ApplicationFleet['recovery'];
  close(): Promise<void>;
}

/** Starts a module's application without a server, for its tools or its work. Only errors are logged. */
export async function openApplication(module: NestModule): Promise<OpenApplication> {
  const application = await holdingBack(() =>
    NestFactory.createApplicationContext(module, { logger: ['error', 'fatal'], abortOnError: false }),
  );
  try {
    const { tools, fleet, inspector } = application.get(Application, { strict: false });
    return {
      registry: tools.registry,
      engine: fleet.engine,
      inspection: inspector.inspection(),
      recovery: fleet.recovery,
      work: (logger) => fleet.work(logger),
      close: () => application.close(),
    };
  } catch {
    await application.close();
    throw new Error(
      'it has no tools; imports: [ToolwrightModule.forRoot()] makes a registry of its providers’',
    );
  }
}
