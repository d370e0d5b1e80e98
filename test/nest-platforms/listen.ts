import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach } from '@jest/globals';
import type { ModuleMetadata } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { ToolwrightModule, type ToolwrightModuleOptions } from 'toolwright/nestjs';

/** The module of an application, and a callback before it listens. */
export interface ListenOptions extends ModuleMetadata {
  readonly options?: ToolwrightModuleOptions;
  readonly before?: (app: NestFastifyApplication) => Promise<void> | void;
}

const open = new Set<NestFastifyApplication>();

afterEach(async () => {
  await Promise.all([...open].map((app) => app.close()));
  open.clear();
});

/** Starts an application on Fastify, which is closed after the test. */
export async function listen({ options, before, imports = [], ...metadata }: ListenOptions) {
  class AppModule {}
  const root = { module: AppModule, ...metadata, imports: [ToolwrightModule.forRoot(options), ...imports] };
  const app = await NestFactory.create<NestFastifyApplication>(root, new FastifyAdapter(), {
    logger: false,
    abortOnError: false,
  });
  open.add(app);
  await before?.(app);
  await app.listen(0, '127.0.0.1');
  const { port } = (app.getHttpServer() as Server).address() as AddressInfo;
  return { app, host: `127.0.0.1:${port}`, url: `http://127.0.0.1:${port}` };
}
