import type { DynamicModule, Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { JobEngine } from '../../core/contract/job-engine.js';
import type { Logger } from '../../core/contract/ports.js';
import type { ToolRegistry } from '../../run/call/tool-registry.js';
import type { InspectorOptions } from '../inspector/options.js';
import { Application } from './application.js';
import { type ApplicationFleet, holdingBack } from './application-fleet.js';

/** The root module of an application. */
export type NestModule = Type | DynamicModule;

/** A running application's tools. */
interface OpenApplication {
  readonly registry: ToolRegistry;
  readonly engine: JobEngine | undefined;
  /** What an inspector is told of it. */
  readonly inspection: InspectorOptions;
  /**
   * Takes turns of conversations, runs jobs and recovers runs until it is closed; which of these its store allows.
   * `logger` hears of it where the application has given none.
   */
  work(logger: Logger): readonly string[];
  /** With what runs go on that nobody holds. */
  readonly recovery: ApplicationFleet['recovery'];
  close(): Promise<void>;
}

/** Starts the application of a module without a server, for its tools or its work. It logs mistakes only. */
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
