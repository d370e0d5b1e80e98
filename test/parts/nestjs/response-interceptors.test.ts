import { expect, test } from '@jest/globals';
import {
  type CallHandler,
  ConflictException,
  ConsoleLogger,
  type ExecutionContext,
  Injectable,
  Logger,
  type NestInterceptor,
  UseFilters,
  UseInterceptors,
} from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { catchError, map, mergeMap, of, tap, throwError, timeout } from 'rxjs';
import { Tool, ToolRegistry, toolResult } from 'toolwright';
import { ToolwrightModule } from 'toolwright/nestjs';

/** Uses the response before the handler runs, as an interceptor that sets headers does. */
@Injectable()
class HeaderBefore implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler) {
    context.switchToHttp().getResponse().setHeader('x-shop', '1');
    return next.handle();
  }
}

/** Uses the response after the handler has run. */
@Injectable()
class HeaderAfter implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler) {
    return next.handle().pipe(tap(() => context.switchToHttp().getResponse().setHeader('x-shop', '1')));
  }
}

/** Returns a promise of its observable. */
@Injectable()
class LateHeader implements NestInterceptor {
  async intercept(context: ExecutionContext, next: CallHandler) {
    return next.handle().pipe(map(() => context.switchToHttp().getResponse().statusCode));
  }
}

@Injectable()
class PassesOn implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler) {
    return next.handle();
  }
}

/** Uses the response if the handler failed. */
@Injectable()
class ErrorLog implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler) {
    return next.handle().pipe(
      catchError((error) => {
        context.switchToHttp().getResponse().status(500);
        return throwError(() => error);
      }),
    );
  }
}

const conflicting = {
  intercept: (_context: ExecutionContext, next: CallHandler) =>
    next.handle().pipe(mergeMap(() => throwError(() => new ConflictException('somebody was faster')))),
};
const impatient = {
  intercept: (_context: ExecutionContext, next: CallHandler) => next.handle().pipe(timeout(20)),
};
const mapping = {
  intercept: (_context: ExecutionContext, next: CallHandler) =>
    next.handle().pipe(catchError(() => throwError(() => new ConflictException('mapped')))),
};

@Injectable()
class Orders {
  placed = 0;

  @Tool('Place before')
  @UseInterceptors(PassesOn, HeaderBefore)
  before() {
    this.placed += 1;
    return 'placed';
  }

  @Tool('Place')
  @UseInterceptors(PassesOn, HeaderAfter, PassesOn)
  place() {
    this.placed += 1;
    return 'placed';
  }

  @Tool('Place late')
  @UseInterceptors(LateHeader)
  late() {
    this.placed += 1;
    return of('placed');
  }

  @Tool('Fail')
  @UseInterceptors(ErrorLog)
  fail() {
    throw new ConflictException('sold out');
  }

  @Tool('Conflict')
  @UseInterceptors(conflicting)
  conflict() {
    return 'placed';
  }

  @Tool('Wait')
  @UseInterceptors(impatient)
  wait() {
    return new Promise(() => {});
  }

  @Tool('Mapped')
  @UseInterceptors(mapping)
  mapped() {
    throw new Error('unexpected');
  }

  @Tool('Filtered')
  @UseInterceptors(HeaderAfter)
  @UseFilters({ catch: () => ({ statusCode: 500 }) })
  filtered() {
    return 'placed';
  }

  @Tool('Filtered in words')
  @UseInterceptors(HeaderAfter)
  @UseFilters({ catch: () => toolResult('It is placed.') })
  worded() {
    return 'placed';
  }
}

class KeepingLogger extends ConsoleLogger {
  readonly kept: string[] = [];

  protected override printMessages(messages: unknown[], context = '', logLevel = 'log'): void {
    if (context !== 'Toolwright' || logLevel !== 'warn') return;
    this.kept.push(...messages.map(String));
  }
}

async function shop() {
  const logger = new KeepingLogger();
  const module = await Test.createTestingModule({
    imports: [ToolwrightModule.forRoot()],
    providers: [Orders],
  })
    .setLogger(logger)
    .compile();
  const tools = module.get(ToolRegistry);
  const told = async (name: string) => (await tools.execute(name)).forLLM;
  return { told, tools, orders: module.get(Orders), kept: logger.kept };
}

test('ToolwrightModule reports that a tool has run if an interceptor fails after its method', async () => {
  const { told, tools, orders } = await shop();
  const ran =
    /^The tool '\w+' ran, but its result was lost afterwards: Internal error \(ref \w+\)\nDo not repeat/;
  expect(await told('place')).toMatch(ran);
  expect(await told('late')).toMatch(ran);
  expect(orders.placed).toBe(2);
  expect((await tools.execute('place')).error).toMatchObject({ code: 501, cause: expect.any(TypeError) });
  expect(await told('conflict')).toBe(
    "The tool 'conflict' ran, but its result was lost afterwards: somebody was faster\nDo not repeat the call: the tool has already run.",
  );
});

test('ToolwrightModule reports this whatever an exception filter returns, except a ToolResult', async () => {
  const { told, tools } = await shop();
  expect(await told('filtered')).toMatch(/^The tool 'filtered' ran, but .*\{"statusCode":500\}/);
  expect(await tools.execute('worded')).toMatchObject({ isError: false, forLLM: 'It is placed.' });
});

test('ToolwrightModule does not report that a tool ran if its method was not called or did not return', async () => {
  const { told, orders } = await shop();
  expect(await told('before')).toMatch(/^Internal error \(ref \w+\)$/);
  expect(orders.placed).toBe(0);
  expect(await told('wait')).toMatch(
    /^The tool 'wait' had begun when its call failed: Internal error \(ref \w+\)\nFind out what it did before you repeat the call/,
  );
  expect(await told('mapped')).toBe('mapped');
});

test('ToolwrightModule reports an interceptor that needs a response once, with the fix', async () => {
  const { told, kept } = await shop();
  for (const name of ['before', 'before', 'place', 'place', 'late', 'conflict']) await told(name);
  expect(kept.filter((line) => line.startsWith('The '))).toEqual([
    expect.stringMatching(
      /^The interceptor HeaderBefore cannot handle tool calls: .*'setHeader'\) \(at the tool 'before'\)\. A tool call has no response, .*: if \(context\.getType<string>\(\) === 'tool'\) return next\.handle\(\);$/,
    ),
    expect.stringContaining('The interceptor HeaderAfter cannot handle tool calls'),
    expect.stringContaining('The interceptor LateHeader cannot handle tool calls'),
  ]);
});

test('ToolwrightModule reports why a method failed even if an interceptor then misses the response', async () => {
  const { told, kept } = await shop();
  expect(await told('fail')).toBe('sold out');
  expect(kept).toContainEqual(expect.stringContaining('The interceptor ErrorLog cannot handle tool calls'));
  Logger.overrideLogger(['log', 'error', 'warn', 'debug', 'verbose', 'fatal']);
});
