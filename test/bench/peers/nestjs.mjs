/* NestJS: handlers with the pipeline that NestJS creates for transports other than HTTP. */
import 'reflect-metadata';
import { Body, Module, UseGuards, UseInterceptors, UsePipes, ValidationPipe } from '@nestjs/common';
import { ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js';
import { ExternalContextCreator, NestFactory } from '@nestjs/core';
import { AddDto, CreateOrderDto, SearchDto } from '../.build/classes/dtos.js';
import { bodyOf, workloads } from '../workloads.mjs';
import { AllowAllGuard, PassThroughInterceptor } from './nest-enhancers.mjs';

const DTOS = { add: AddDto, search: SearchDto, create_order: CreateOrderDto };

const GUARDED = [UseGuards(AllowAllGuard), UseInterceptors(PassThroughInterceptor)];

const handlersBy = {};

/** A handler without guards; its arguments are not validated. */
export async function nestjsPlainCall({ tool }) {
  handlersBy.bare ??= start([]);
  return handlerCandidate('NestJS: a handler', await handlersBy.bare, tool);
}

/** A handler with a guard and an interceptor. */
export async function nestjsCall({ tool }) {
  handlersBy.guarded ??= start(GUARDED);
  return handlerCandidate('NestJS: a handler with guard and interceptor', await handlersBy.guarded, tool);
}

/** A handler with guard, interceptor and validation of its arguments by a DTO. */
export async function nestjsValidatedCall({ tool }) {
  handlersBy.validated ??= start([...GUARDED, UsePipes(new ValidationPipe())]);
  return handlerCandidate(
    'NestJS: guard, interceptor and `ValidationPipe`',
    await handlersBy.validated,
    tool,
  );
}

function handlerCandidate(name, handlers, tool) {
  return { name, encode: (input) => input, call: handlers[tool], read: String };
}

/* Passes the message to the parameter with `@Body()`, as a transport does. */
const fromMessage = { exchangeKeyForValue: (_type, _data, [message]) => message };

/** Decorators are called as functions, because these files are not compiled. */
async function start(decorators) {
  class Handlers {}
  const { prototype } = Handlers;
  for (const { tool } of workloads) {
    const body = bodyOf(tool);
    Object.defineProperty(prototype, tool, { value: async (input) => body(input) });
    if (decorators.length > GUARDED.length) {
      Body()(prototype, tool, 0);
      Reflect.defineMetadata('design:paramtypes', [DTOS[tool]], prototype, tool);
    }
  }
  for (const decorate of decorators) decorate(Handlers);
  class BenchModule {}
  Module({ providers: [Handlers] })(BenchModule);
  const app = await NestFactory.createApplicationContext(BenchModule, { logger: ['error'] });
  const creator = app.get(ExternalContextCreator);
  const handlers = app.get(Handlers);
  const parameters = decorators.length > GUARDED.length ? [ROUTE_ARGS_METADATA, fromMessage] : [];
  return Object.fromEntries(
    workloads.map(({ tool }) => [tool, creator.create(handlers, handlers[tool], tool, ...parameters)]),
  );
}
