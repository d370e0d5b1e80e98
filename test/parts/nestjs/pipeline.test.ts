import { expect, test } from '@jest/globals';
import {
  type ArgumentMetadata,
  type ArgumentsHost,
  BadRequestException,
  Body,
  type CallHandler,
  type CanActivate,
  Catch,
  ClassSerializerInterceptor,
  Controller,
  createParamDecorator,
  type ExceptionFilter,
  type ExecutionContext,
  Get,
  Inject,
  Injectable,
  type NestInterceptor,
  ParseIntPipe,
  type PipeTransform,
  Post,
  Query,
  Param as RouteParam,
  Scope,
  UnauthorizedException,
  UseFilters,
  UseGuards,
  UseInterceptors,
  UsePipes,
  ValidationPipe,
} from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR, APP_PIPE, REQUEST } from '@nestjs/core';
import { Exclude } from 'class-transformer';
import { IsInt, Min, ValidateBy } from 'class-validator';
import { map, Observable, of } from 'rxjs';
import { defineTool, RetryToolCall, Tool, ToolContext, ToolResult } from 'toolwright';
import { toolCallOf } from 'toolwright/nestjs';
import { boot } from './boot.js';

const seen: string[] = [];

function tracer(name: string) {
  @Injectable()
  class Guard implements CanActivate {
    canActivate(context: ExecutionContext): boolean {
      seen.push(`guard ${name} ${context.getType()} ${context.getClass().name}.${context.getHandler().name}`);
      return true;
    }
  }
  @Injectable()
  class Interceptor implements NestInterceptor {
    intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
      seen.push(`before ${name} ${toolCallOf(context)?.tool.name}`);
      return next.handle().pipe(map((value) => `${name}(${value})`));
    }
  }
  @Injectable()
  class Pipe implements PipeTransform {
    transform(value: unknown, { type, data }: ArgumentMetadata): unknown {
      seen.push(`pipe ${name} ${type} ${data} ${JSON.stringify(value)}`);
      return value;
    }
  }
  return { Guard, Interceptor, Pipe };
}

const global = tracer('global');
const ofClass = tracer('class');
const ofMethod = tracer('method');

let checks = 0;

class OrderDto {
  @IsInt()
  @Min(1)
  @ValidateBy({
    name: 'counted',
    validator: {
      validate() {
        checks += 1;
        return true;
      },
    },
  })
  quantity!: number;
}

const CurrentUser = createParamDecorator((field: string, context: ExecutionContext) =>
  Reflect.get(toolCallOf(context)?.context.data ?? {}, field),
);

@Injectable()
@UseGuards(ofClass.Guard)
@UseInterceptors(ofClass.Interceptor)
@UsePipes(ofClass.Pipe)
class ShopTools {
  @Tool('Find orders')
  @UseGuards(ofMethod.Guard)
  @UseInterceptors(ofMethod.Interceptor)
  @UsePipes(ofMethod.Pipe)
  find(customer: string, _context: ToolContext, limit = 10) {
    return `${customer} ${limit}`;
  }
}

test('guards, interceptors and pipes run in the order of a request: global, class, method', async () => {
  const { tools, module } = await boot({
    providers: [
      ShopTools,
      { provide: APP_GUARD, useClass: global.Guard },
      { provide: APP_INTERCEPTOR, useClass: global.Interceptor },
      { provide: APP_PIPE, useClass: global.Pipe },
    ],
  });
  seen.length = 0;
  const result = await tools.execute('find', { customer: 'c1' });
  expect(result.forLLM).toBe('global(class(method(c1 10)))');
  expect(seen).toEqual([
    'guard global tool ShopTools.find',
    'guard class tool ShopTools.find',
    'guard method tool ShopTools.find',
    'before global find',
    'before class find',
    'before method find',
    ...['customer "c1"', 'limit 10'].map((value) => `pipe global custom ${value}`),
    ...['customer "c1"', 'limit 10'].map((value) => `pipe class custom ${value}`),
    ...['customer "c1"', 'limit 10'].map((value) => `pipe method custom ${value}`),
  ]);
  await module.close();
});

test('a guard runs once per call, and not for invalid arguments', async () => {
  const { tools } = await boot({ providers: [ShopTools] });
  seen.length = 0;
  const rejected = await tools.execute('find', { customer: 7 });
  expect(rejected.forLLM).toContain('customer: must be string');
  expect(seen).toEqual([]);
  await tools.execute('find', { customer: 'c' });
  expect(seen.filter((entry) => entry.startsWith('guard class'))).toHaveLength(1);
});

test('a guard that useGlobalGuards adds to a running application applies to the next call', async () => {
  const { tools, module } = await boot({ providers: [ShopTools] });
  const app = module.createNestApplication();
  expect((await tools.execute('find', { customer: 'c' })).isError).toBe(false);
  app.useGlobalGuards({ canActivate: () => false });
  expect((await tools.execute('find', { customer: 'c' })).forLLM).toBe(
    "The tool 'find' was refused: Forbidden resource",
  );
});

test('an HTTP exception of a guard is shown to the model, and another error of a guard is not', async () => {
  @Injectable()
  class Tools {
    @Tool('a')
    @UseGuards({
      canActivate: () => {
        throw new UnauthorizedException('log in first');
      },
    })
    a() {}

    @Tool('b')
    @UseGuards({
      canActivate: () => {
        throw new TypeError('password is hunter2');
      },
    })
    b() {}

    @Tool('c')
    @UseGuards({ canActivate: async () => false })
    c() {}

    @Tool('d')
    @UseGuards({ canActivate: () => of(false) })
    d() {}

    @Tool('e')
    @UseGuards({
      canActivate: () => {
        throw new UnauthorizedException({ code: 'LOGIN' });
      },
    })
    e() {}

    @Tool('f')
    f() {
      throw new BadRequestException({ code: 'SOLD_OUT', left: 0 });
    }
  }
  const { tools } = await boot({ providers: [Tools] });
  const invoked = await tools.invoke({ id: '1', name: 'a', arguments: {} });
  expect(invoked.record.status).toBe('refused');
  expect(invoked.result.forLLM).toBe("The tool 'a' was refused: log in first");
  expect(invoked.result.error).toMatchObject({ code: 512 });
  expect((await tools.execute('b')).forLLM).toMatch(/^The tool 'b' was refused: Internal error \(ref \w+\)$/);
  expect((await tools.execute('c')).error).toMatchObject({ name: 'ToolRefused' });
  expect((await tools.execute('d')).error).toMatchObject({ name: 'ToolRefused' });
  expect((await tools.execute('e')).forLLM).toBe(`The tool 'e' was refused: {"code":"LOGIN"}`);
  expect((await tools.execute('f')).forLLM).toBe('{"code":"SOLD_OUT","left":0}');
});

test('pipes transform validated values, and a DTO is validated once', async () => {
  @Injectable()
  class Tools {
    @Tool('Order')
    order(dto: OrderDto) {
      return `${dto instanceof OrderDto} ${dto.quantity}`;
    }

    @Tool('Shout')
    @UsePipes({ transform: (value: string) => value.toUpperCase() })
    shout(text: string) {
      return text;
    }

    @Tool('Refuse')
    @UsePipes({
      transform: () => {
        throw new BadRequestException(['too loud', 'too long']);
      },
    })
    refuse(text: string) {
      return text;
    }
  }
  const pipe = new ValidationPipe({ whitelist: true, forbidNonWhitelisted: true });
  const { tools } = await boot({ providers: [Tools, { provide: APP_PIPE, useValue: pipe }] });
  checks = 0;
  expect((await tools.execute('order', { quantity: 2 })).forLLM).toBe('true 2');
  expect(checks).toBe(1);
  expect((await tools.execute('order', { quantity: 0 })).forLLM).toContain('quantity: must be >= 1');
  expect((await tools.execute('shout', { text: 'hi' })).forLLM).toBe('HI');
  const refused = await tools.execute('refuse', { text: 'hi' });
  expect(refused).toMatchObject({ isError: true, forLLM: 'too loud; too long' });
});

class OutOfStock extends Error {}

@Catch(OutOfStock)
class StockFilter implements ExceptionFilter {
  catch(exception: OutOfStock, host: ArgumentsHost) {
    return `filtered in ${host.getType()}: ${exception.message} (${toolCallOf(host)?.tool.name})`;
  }
}

test('exception filters turn errors into results, and errors that no filter catches stay unchanged', async () => {
  @Injectable()
  @UseFilters(StockFilter)
  class Tools {
    @Tool('Caught')
    caught() {
      throw new OutOfStock('no shoes');
    }

    @Tool('Uncaught')
    uncaught() {
      throw new Error('no socks');
    }

    @Tool('Broken around')
    @UseInterceptors({
      intercept: () => {
        throw new Error('no clock');
      },
    })
    brokenAround() {}

    @Tool('Worded')
    @UseFilters({
      catch: () => new ToolResult({ forLLM: 'none left', forUser: 'Sorry!' }),
    })
    worded() {
      throw new Error('no hats');
    }

    @Tool('Retry')
    @UseFilters({ catch: () => 'never' })
    retry() {
      throw new RetryToolCall('say which');
    }
  }
  const { tools } = await boot({ options: { exposeErrors: true }, providers: [Tools] });
  const caught = await tools.execute('caught');
  expect(caught).toMatchObject({ isError: true, forLLM: 'filtered in tool: no shoes (caught)' });
  expect(caught.error).toMatchObject({ code: 501, cause: { message: 'no shoes' } });
  expect(await tools.execute('uncaught')).toMatchObject({ isError: true, forLLM: 'no socks' });
  expect(await tools.execute('broken_around')).toMatchObject({
    isError: true,
    forLLM: 'no clock',
    error: { code: 501 },
  });
  expect(await tools.execute('worded')).toMatchObject({
    isError: false,
    forLLM: 'none left',
    forUser: 'Sorry!',
  });
  expect((await tools.invoke({ id: '1', name: 'retry', arguments: {} })).record.status).toBe('rejected');
});

test('ClassSerializerInterceptor removes excluded properties of a value, and leaves a ToolResult unchanged', async () => {
  class User {
    readonly id = 1;
    @Exclude()
    readonly password = 'hunter2';
  }
  @Injectable()
  class Tools {
    @Tool('User')
    user() {
      return new User();
    }

    @Tool('Worded')
    worded() {
      return new ToolResult({ forLLM: 'none left', forUser: 'Sorry!', isError: true });
    }

    @Tool('Later')
    later(context: ToolContext) {
      return context.background(async () => 'done', 'started');
    }
  }
  const { tools } = await boot({
    providers: [Tools, { provide: APP_INTERCEPTOR, useClass: ClassSerializerInterceptor }],
  });
  expect((await tools.execute('user')).forLLM).toBe('{"id":1}');
  expect(await tools.execute('worded')).toMatchObject({
    isError: true,
    forLLM: 'none left',
    forUser: 'Sorry!',
  });
  const completion = Promise.withResolvers<string>();
  const started = await tools.executeWithContext('later', {}, {}, (_context, { forLLM }) =>
    completion.resolve(forLLM),
  );
  expect(started).toMatchObject({ async: true, forLLM: 'started' });
  expect(await completion.promise).toBe('done');
});

test('the result of a filter for a guard is the reason, and a filter without a result changes nothing', async () => {
  const silent = { catch: () => undefined };
  @Injectable()
  class Tools {
    @Tool('Guarded')
    @UseFilters({ catch: () => 'ask the manager' })
    @UseGuards({ canActivate: () => false })
    guarded() {}

    @Tool('Silently guarded')
    @UseFilters(silent)
    @UseGuards({ canActivate: () => false })
    silentlyGuarded() {}

    @Tool('Silent')
    @UseFilters(silent)
    silent() {
      throw new Error('the disk is full');
    }
  }
  const { tools } = await boot({ options: { exposeErrors: true }, providers: [Tools] });
  expect((await tools.execute('guarded')).forLLM).toBe("The tool 'guarded' was refused: ask the manager");
  expect((await tools.execute('silently_guarded')).forLLM).toBe(
    "The tool 'silently_guarded' was refused: Forbidden resource",
  );
  expect(await tools.execute('silent')).toMatchObject({ isError: true, forLLM: 'the disk is full' });
});

test('a question is not an exception, and skips filters', async () => {
  @Injectable()
  @UseFilters({ catch: () => 'never' })
  class Tools {
    @Tool('Ask')
    ask(context: ToolContext) {
      return context.ask({ message: 'Sure?', schema: { type: 'boolean' } });
    }
  }
  const { tools } = await boot({ providers: [Tools] });
  expect((await tools.execute('ask')).error).toMatchObject({ code: 511 });
  expect((await tools.invoke({ id: '1', name: 'ask', arguments: {} })).record.status).toBe('suspended');
});

test('a global filter that is written for HTTP does not hide the error', async () => {
  @Catch()
  class HttpFilter implements ExceptionFilter {
    catch(_exception: unknown, host: ArgumentsHost) {
      host.switchToHttp().getResponse().status(500).json({});
    }
  }
  @Injectable()
  class Tools {
    @Tool('Fail')
    fail() {
      throw new Error('the disk is full');
    }
  }
  const { tools } = await boot({
    options: { exposeErrors: true },
    providers: [Tools, { provide: APP_FILTER, useClass: HttpFilter }],
  });
  expect((await tools.execute('fail')).forLLM).toBe('the disk is full');
});

test('request-scoped enhancers run for every tool, both global ones and those of a class', async () => {
  let made = 0;
  @Injectable({ scope: Scope.REQUEST })
  class RequestGuard implements CanActivate {
    constructor(@Inject(REQUEST) private readonly request: { readonly user: string }) {
      made += 1;
    }

    canActivate(): boolean {
      return this.request.user === 'ada';
    }
  }
  @Injectable()
  class Tools {
    @Tool('Plain')
    plain() {
      return 'ok';
    }

    @Tool('Guarded')
    @UseGuards(RequestGuard)
    guarded() {
      return 'ok';
    }
  }
  for (const providers of [[Tools], [Tools, { provide: APP_GUARD, useClass: RequestGuard }]]) {
    const isGlobal = providers.length === 2;
    const { tools, toolwright } = await boot({ providers });
    tools.register(defineTool({ name: 'late', description: 'Late', execute: () => 'ok' }));
    const as = (user: string) => toolwright.scopeOf({ user });
    for (const name of ['plain', 'guarded', 'late']) {
      const isGuarded = isGlobal || name === 'guarded';
      expect((await tools.executeWithContext(name, {}, as('ada'))).forLLM).toBe('ok');
      expect((await tools.executeWithContext(name, {}, as('bob'))).isError).toBe(isGuarded);
    }
    expect(made).toBeGreaterThan(0);
  }
});

test('transient guards apply on a method, on a class and globally', async () => {
  @Injectable({ scope: Scope.TRANSIENT })
  class Never implements CanActivate {
    canActivate(): boolean {
      return false;
    }
  }
  @Injectable()
  class OfMethod {
    @Tool('Work')
    @UseGuards(Never)
    work() {}
  }
  @Injectable()
  @UseGuards(Never)
  class OfClass {
    @Tool('Work')
    work() {}
  }
  @Injectable()
  class Open {
    @Tool('Work')
    work() {}
  }
  const global = { provide: APP_GUARD, useClass: Never, scope: Scope.TRANSIENT };
  for (const providers of [
    [OfMethod],
    [OfClass],
    [{ provide: 'X', useFactory: () => new OfClass() }],
    [Open, global],
  ]) {
    const { tools, toolwright } = await boot({ providers });
    for (const scope of [{}, toolwright.scopeOf({ user: 'ada' })])
      expect((await tools.executeWithContext('work', {}, scope)).error).toMatchObject({
        name: 'ToolRefused',
      });
  }
});

test('parameters with decorators of Nest are filled by them and hidden from the model', async () => {
  @Injectable()
  class Tools {
    @Tool('Mine')
    mine(@CurrentUser('name') name: string, year: number) {
      return `${name} ${year}`;
    }

    @Tool('Piped')
    piped(@CurrentUser('age', { transform: (age: number) => age + 1 }) age: number) {
      return age;
    }
  }
  const { tools } = await boot({ providers: [Tools] });
  expect(tools.get('mine')?.parameters).toEqual({
    type: 'object',
    properties: { year: { type: 'number' } },
    required: ['year'],
  });
  const scope = { data: { name: 'Ada', age: 36 } };
  expect((await tools.executeWithContext('mine', { year: 1843, name: 'Eve' }, scope)).forLLM).toBe(
    'Ada 1843',
  );
  expect((await tools.executeWithContext('piped', {}, scope)).forLLM).toBe('37');
});

test('observables return their last value, and generators their return value', async () => {
  const progress: unknown[] = [];
  @Injectable()
  class Tools {
    @Tool('Observed')
    observed() {
      return of('first', 'last');
    }

    @Tool('Generated')
    async *generated() {
      yield 'half';
      return 'done';
    }

    @Tool('Empty')
    empty() {
      return new Observable((subscriber) => subscriber.complete());
    }
  }
  const { tools } = await boot({ providers: [Tools] });
  const scope = { onUpdate: (update: unknown) => progress.push(update) };
  expect((await tools.execute('observed')).forLLM).toBe('last');
  expect((await tools.executeWithContext('generated', {}, scope)).forLLM).toBe('done');
  expect(progress).toEqual(['half']);
  expect((await tools.execute('empty')).forLLM).toBe('ok');
});

test('a route of a controller can also be a tool', async () => {
  @Controller('orders')
  class OrdersController {
    @Get()
    @Tool('List the orders')
    list(status = 'open') {
      return [status];
    }
  }
  const { tools } = await boot({ controllers: [OrdersController] });
  expect((await tools.execute('list', {})).forLLM).toBe('["open"]');
});

test('the parameters of a route are the arguments of the tool', async () => {
  @Controller('orders')
  class OrdersController {
    @Get(':id')
    @Tool('Read an order')
    read(@RouteParam('id', ParseIntPipe) id: number, @Query('lang') language = 'en') {
      return `${id} ${typeof id} ${language}`;
    }

    @Post()
    @Tool('Order')
    order(@Body() dto: OrderDto) {
      return `${dto instanceof OrderDto} ${dto.quantity}`;
    }
  }
  const { tools } = await boot({ controllers: [OrdersController] });
  expect(tools.get('read')?.parameters).toMatchObject({ required: ['id'] });
  expect((await tools.execute('read', { id: 7, language: 'de' })).forLLM).toBe('7 number de');
  expect((await tools.execute('order', { quantity: 3 })).forLLM).toBe('true 3');
  expect((await tools.execute('order', { quantity: 0 })).forLLM).toContain('quantity: must be >= 1');
});
