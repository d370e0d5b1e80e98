import { expect, test } from '@jest/globals';
import {
  BadRequestException,
  Body,
  Catch,
  type ExceptionFilter,
  HttpException,
  Injectable,
  InternalServerErrorException,
  NotFoundException,
  UseFilters,
  UseGuards,
  UseInterceptors,
  UsePipes,
} from '@nestjs/common';
import fc from 'fast-check';
import { type Logger, RetryToolCall, Tool, ToolContext, ToolwrightError } from 'toolwright';
import { createMcpServer } from 'toolwright/mcp';
import type { ToolwrightModuleOptions } from 'toolwright/nestjs';
import { boot } from './boot.js';

const SECRET = 'connect ECONNREFUSED postgres://app:hunter2@db.internal:5432/orders';
const MASKED = /^Internal error \(ref [0-9a-f]{8}\)$/;

function breaks(): never {
  throw new Error(SECRET);
}

@Catch()
class BrokenFilter implements ExceptionFilter {
  catch(): never {
    breaks();
  }
}

/** Every place around and in a method where an error can occur. */
@Injectable()
class Broken {
  @Tool('method')
  method() {
    breaks();
  }

  @Tool('returned')
  returned() {
    return new Error(SECRET);
  }

  @Tool('thrown text')
  text() {
    throw SECRET;
  }

  @Tool('server error')
  server() {
    throw new InternalServerErrorException(SECRET);
  }

  @Tool('guard')
  @UseGuards({ canActivate: breaks })
  guard() {}

  @Tool('guard with a server error')
  @UseGuards({
    canActivate: () => {
      throw new HttpException(SECRET, 503);
    },
  })
  serverGuard() {}

  @Tool('pipe')
  @UsePipes({ transform: breaks })
  pipe(@Body('id') id: string) {
    return id;
  }

  @Tool('interceptor')
  @UseInterceptors({ intercept: breaks })
  interceptor() {}

  @Tool('filter')
  @UseFilters(BrokenFilter)
  filter() {
    throw new BadRequestException('no');
  }

  @Tool('reports another error')
  reported() {
    throw new ToolwrightError('ToolExecutionFailed', `The tool 'x' failed: ${SECRET}`, {
      cause: new Error(SECRET),
    });
  }

  @Tool('background')
  background(context: ToolContext) {
    return context.background(async () => breaks(), 'started');
  }
}

const NAMES = [
  ...['method', 'returned', 'text', 'server', 'guard', 'server_guard', 'pipe', 'interceptor', 'filter'],
  ...['reported', 'background'],
];

/** Errors that are meant for the model. */
@Injectable()
class Telling {
  @Tool('Not found')
  missing() {
    throw new NotFoundException('no such order');
  }

  @Tool('List')
  list() {
    throw new BadRequestException(['too long', 'too loud']);
  }

  @Tool('Again')
  again() {
    throw new RetryToolCall('give the id');
  }

  @Tool('Own')
  own() {
    throw new ToolwrightError('ToolRefused', 'not now');
  }

  @Tool('Later')
  later(context: ToolContext) {
    return context.background(async () => {
      throw new NotFoundException('no such report');
    }, 'started');
  }
}

@Injectable()
class Throwing {
  thrown: unknown;

  @Tool('Throw')
  fail() {
    throw this.thrown;
  }
}

function argumentsOf(name: string) {
  return name === 'pipe' ? { id: '1' } : {};
}

/** An application whose log is collected. */
async function shop(options: ToolwrightModuleOptions = {}) {
  const logged: { readonly message: string; readonly fields: Readonly<Record<string, unknown>> }[] = [];
  const keep = (message: string, fields = {}) => logged.push({ message, fields });
  const logger: Logger = { debug: () => {}, info: () => {}, warn: keep, error: keep };
  const booted = await boot({ options: { logger, ...options }, providers: [Broken] });
  return { ...booted, logged };
}

test('ToolwrightModule hides unexpected errors from the model, wherever they were thrown', async () => {
  const { tools } = await shop();
  for (const name of NAMES) {
    const { forLLM, forUser, isError } = await tools.execute(name, argumentsOf(name));
    expect(isError).toBe(true);
    expect(forLLM.replace(/^The tool '\w+' was refused: /, '')).toMatch(MASKED);
    expect(`${forLLM}${forUser}`).not.toContain('hunter2');
  }
});

test('ToolwrightModule logs an unexpected error with its stack and the reference that the model got', async () => {
  const { tools, logged } = await shop();
  const { forLLM } = await tools.execute('method');
  const entry = logged.find(({ message }) => message === 'Tool failed');
  expect(entry?.fields.sent).toBe(forLLM);
  const error = entry?.fields.error as (Error & { readonly cause: Error }) | undefined;
  expect(error?.cause.message).toBe(SECRET.replace('hunter2', '[redacted]'));
  expect(error?.cause.stack).toMatch(/ECONNREFUSED[\s\S]*error-texts/);
});

test('ToolwrightModule shows messages of HTTP exceptions below 500, of RetryToolCall and of its own errors', async () => {
  const { tools } = await boot({ providers: [Telling] });
  const told = async (name: string) => (await tools.execute(name)).forLLM;
  expect(await told('missing')).toBe('no such order');
  expect(await told('list')).toBe('too long; too loud');
  expect(await told('again')).toBe('give the id');
  expect(await told('own')).toBe('not now');
  expect(await told('later')).toBe('no such report');
});

test('ToolwrightModule shows every message with exposeErrors, and otherwise the text of describeError', async () => {
  const { tools } = await shop({ exposeErrors: true });
  for (const name of NAMES)
    expect((await tools.execute(name, argumentsOf(name))).forLLM).toContain('hunter2');
  const own = await shop({ describeError: () => 'Something broke' });
  expect((await own.tools.execute('method')).forLLM).toBe('Something broke');
  expect((await own.tools.execute('guard')).forLLM).toContain('Something broke');
});

test('ToolwrightModule gives equal errors the same reference, so that the loop guard detects repetitions', async () => {
  const { tools } = await shop();
  const first = await tools.execute('method');
  expect((await tools.execute('method')).forLLM).toBe(first.forLLM);
  expect((await tools.execute('text')).forLLM).not.toBe(first.forLLM);
});

test('ToolwrightModule shows no part of an unexpected message, whatever was thrown', async () => {
  const { tools, module } = await boot({ providers: [Throwing] });
  const texts = fc.string({ minLength: 24 });
  const thrown = fc.oneof(
    texts,
    texts.map((message) => new TypeError(message)),
    texts.map((message) => ({ message })),
    texts.map((message) => new HttpException(message, 500)),
    fc.anything(),
  );
  await fc.assert(
    fc.asyncProperty(thrown, async (value) => {
      module.get(Throwing).thrown = value;
      expect((await tools.execute('fail')).forLLM).toMatch(MASKED);
    }),
  );
});

test('createMcpServer with the tools of an application hides unexpected errors, too', async () => {
  const { tools } = await shop();
  const server = createMcpServer(tools, { sessions: false });
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  for (const name of NAMES) {
    const params = { name, arguments: argumentsOf(name) };
    const parsedBody = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
    const request = new Request('http://localhost/mcp', { method: 'POST', headers });
    const text = await (await server.fetch(request, { parsedBody })).text();
    expect(text).toContain('Internal error (ref ');
    expect(text).not.toContain('hunter2');
  }
  await server.close();
});
