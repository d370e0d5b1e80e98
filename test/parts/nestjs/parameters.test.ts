import { describe, expect, test } from '@jest/globals';
import {
  Body,
  Controller,
  createParamDecorator,
  DefaultValuePipe,
  type ExecutionContext,
  Get,
  Injectable,
  ParseIntPipe,
  Post,
  Query,
  Param as RouteParam,
} from '@nestjs/common';
import { IsInt } from 'class-validator';
import { Param, Tool, ToolContext } from 'toolwright';
import { describeClass } from 'toolwright/decorators';
import { boot } from './boot.js';

interface User {
  readonly id: string;
}

const CurrentUser = createParamDecorator(
  (_data: unknown, context: ExecutionContext) => context.switchToHttp().getRequest()?.user,
);

function makeTools() {
  @Injectable()
  class Tools {
    @Tool('A')
    besideContext(@CurrentUser() me: User, context: ToolContext) {
      return `${me.id} ${context.toolName}`;
    }

    @Tool('B')
    besideSignal(@CurrentUser() me: User, n: number, signal: AbortSignal) {
      return `${me.id} ${n} ${signal.aborted}`;
    }

    @Tool('C')
    twice(@CurrentUser() me: User, @CurrentUser() again: User, n: number, _context: ToolContext) {
      return `${me.id} ${again.id} ${n}`;
    }
  }
  return Tools;
}

const NUMBER = { name: 'n', schema: { type: 'number' } } as const;
const GENERATED = {
  tools: {
    besideContext: { parameters: [{ name: 'me' }, { name: 'context', inject: 'context' }] },
    besideSignal: { parameters: [{ name: 'me' }, NUMBER, { name: 'signal', inject: 'signal' }] },
    twice: {
      parameters: [{ name: 'me' }, { name: 'again' }, NUMBER, { name: '_context', inject: 'context' }],
    },
  },
} as const;

describe.each([
  ['by its metadata', makeTools()],
  ['by a generated file', describeWith(makeTools())],
])('a class described %s', (_, Tools) => {
  test('fills decorated parameters beside the context and the signal, and several of them', async () => {
    const { tools, toolwright } = await boot({ providers: [Tools], options: { strict: true } });
    const scope = toolwright.scopeOf({ user: { id: 'u1' } });
    const say = async (name: string, args: object) =>
      (await tools.executeWithContext(name, args, scope)).forLLM;
    expect(await say('beside_context', {})).toBe('u1 beside_context');
    expect(await say('beside_signal', { n: 1 })).toBe('u1 1 false');
    expect(await say('twice', { n: 1 })).toBe('u1 u1 1');
    expect(Object.keys(tools.get('twice')?.parameters.properties ?? {})).toEqual(['n']);
  });
});

function describeWith(Tools: ReturnType<typeof makeTools>) {
  describeClass(Tools, GENERATED as never);
  return Tools;
}

test('two parameters that take the context are an error, whatever else the method takes', async () => {
  @Injectable()
  class Tools {
    @Tool('Twice')
    twice(@CurrentUser() _me: User, _one: ToolContext, _other: ToolContext) {}
  }
  await expect(boot({ providers: [Tools] })).rejects.toThrow('two parameters receive the context');
});

describe('a DefaultValuePipe', () => {
  class Page {
    @IsInt()
    size = 5;
  }

  @Controller('pages')
  class Pages {
    @Get()
    @Tool('One page')
    page(@Query('page', new DefaultValuePipe(1), ParseIntPipe) page: number) {
      return page;
    }

    @Get('named')
    @Tool('Named')
    named(
      @Query('page', new DefaultValuePipe('1'), ParseIntPipe) @Param('Which one') page: number,
      @Query('all', new DefaultValuePipe(Number.NaN)) @Param({ required: true }) all: number,
    ) {
      return [page, all];
    }

    @Post()
    @Tool('Whole')
    whole(@Body(new DefaultValuePipe({ size: 7 })) page: Page) {
      return page;
    }
  }

  test('makes a route parameter optional as an argument of the tool, and provides its value', async () => {
    const { tools } = await boot({ controllers: [Pages] });
    expect(tools.get('page')?.parameters).toEqual({
      type: 'object',
      properties: { page: { type: 'number', default: 1 } },
      required: [],
    });
    expect((await tools.execute('page', {})).forLLM).toBe('1');
    expect((await tools.execute('page', { page: 4 })).forLLM).toBe('4');
  });

  test('sets no default that does not match the type, and @Param takes precedence', async () => {
    const { tools } = await boot({ controllers: [Pages] });
    expect(tools.get('named')?.parameters).toEqual({
      type: 'object',
      properties: { page: { type: 'number', description: 'Which one' }, all: { type: 'number' } },
      required: ['all'],
    });
    expect((await tools.execute('named', { all: 2 })).forLLM).toBe('[1,2]');
  });

  test('changes nothing for a parameter that takes the whole body', async () => {
    const { tools } = await boot({ controllers: [Pages] });
    expect(Object.keys(tools.get('whole')?.parameters.properties ?? {})).toEqual(['size']);
  });
});

test('@Param of Nest in a provider that is not a controller is a warning that names both packages', async () => {
  @Injectable()
  class Orders {
    @Tool('Find orders')
    find(@RouteParam('Customer id, e.g. cus_1') customerId: string) {
      return customerId;
    }
  }
  @Controller('orders')
  class Routes {
    @Get(':id')
    @Tool('Get one')
    getOne(@RouteParam('id') id: string) {
      return id;
    }
  }
  const said: string[] = [];
  const keep = (text: string) => said.push(text);
  const logger = { debug: () => {}, info: () => {}, warn: keep, error: keep };
  await boot({ providers: [Orders], controllers: [Routes], options: { logger } });
  expect(said.filter((warning) => !warning.includes('no module provides'))).toHaveLength(1);
  expect(said[0]).toMatch(
    /^Orders\.find, parameter #0: its @Param\("Customer id, e\.g\. cus_1"\) comes from '@nestjs\/common'/,
  );
  expect(said[0]).toContain("import { Param } from 'toolwright'");
});
