/* NestJS itself: a handler called through the pipeline that it makes for transports other than HTTP. */
import 'reflect-metadata';
import { Module, UseGuards, UseInterceptors } from '@nestjs/common';
import { ExternalContextCreator, NestFactory } from '@nestjs/core';
import { bodyOf, workloads } from '../workloads.mjs';
import { LetsPass, PassesOn } from './nest-enhancers.mjs';

let opened;

/** A method with a guard and an interceptor, called by Nest; its arguments are not checked. */
export async function nestjsCall({ tool }) {
  opened ??= open();
  const handlers = await opened;
  return {
    name: 'NestJS: a handler with guard and interceptor',
    encode: (input) => input,
    call: handlers[tool],
    read: String,
  };
}

/** The decorators by hand, because these files are not compiled. */
async function open() {
  class Handlers {}
  for (const { tool } of workloads) {
    const body = bodyOf(tool);
    Object.defineProperty(Handlers.prototype, tool, { value: async (input) => body(input) });
  }
  UseGuards(LetsPass)(Handlers);
  UseInterceptors(PassesOn)(Handlers);
  class BenchModule {}
  Module({ providers: [Handlers] })(BenchModule);
  const app = await NestFactory.createApplicationContext(BenchModule, { logger: ['error'] });
  const creator = app.get(ExternalContextCreator);
  const handlers = app.get(Handlers);
  return Object.fromEntries(
    workloads.map(({ tool }) => [tool, creator.create(handlers, handlers[tool], tool)]),
  );
}
