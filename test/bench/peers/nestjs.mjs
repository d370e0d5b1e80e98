/* NestJS itself: a handler called through the pipeline that it makes for transports other than HTTP. */
import 'reflect-metadata';
import { Body, Module, UseGuards, UseInterceptors, UsePipes, ValidationPipe } from '@nestjs/common';
import { ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js';
import { ExternalContextCreator, NestFactory } from '@nestjs/core';
import { AddDto, CreateOrderDto, SearchDto } from '../.build/classes/dtos.js';
import { bodyOf, workloads } from '../workloads.mjs';
import { LetsPass, PassesOn } from './nest-enhancers.mjs';

const DTOS = { add: AddDto, search: SearchDto, create_order: CreateOrderDto };

const GUARDED = [UseGuards(LetsPass), UseInterceptors(PassesOn)];

const open = {};

/** A method called by Nest with nothing around it; its arguments are not checked. */
export async function nestjsBareCall({ tool }) {
  open.bare ??= start([]);
  return calling('NestJS: a handler', await open.bare, tool);
}

/** The same with a guard and an interceptor. */
export async function nestjsCall({ tool }) {
  open.guarded ??= start(GUARDED);
  return calling('NestJS: a handler with guard and interceptor', await open.guarded, tool);
}

/** The same, and its arguments are checked as those of a route are: by the decorators of a DTO. */
export async function nestjsValidatedCall({ tool }) {
  open.validated ??= start([...GUARDED, UsePipes(new ValidationPipe())]);
  return calling('NestJS: the same and `ValidationPipe`', await open.validated, tool);
}

function calling(name, handlers, tool) {
  return { name, encode: (input) => input, call: handlers[tool], read: String };
}

/* What a transport does to hand its message to a parameter with `@Body()`. */
const fromMessage = { exchangeKeyForValue: (_type, _data, [message]) => message };

/** The decorators by hand, because these files are not compiled. */
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
