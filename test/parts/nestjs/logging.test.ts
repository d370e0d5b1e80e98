import { inspect } from 'node:util';
import { afterEach, expect, jest, test } from '@jest/globals';
import {
  type ArgumentsHost,
  type CanActivate,
  Catch,
  ConsoleLogger,
  type ConsoleLoggerOptions,
  type ExceptionFilter,
  type ExecutionContext,
  Injectable,
  Logger,
  type LoggerService,
  Module,
  NotFoundException,
  Scope,
  ServiceUnavailableException,
  UseFilters,
  UseGuards,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { type LogFields, Tool, ToolContext, ToolRegistry } from 'toolwright';
import { ToolwrightModule, type ToolwrightModuleOptions, ToolwrightService } from 'toolwright/nestjs';

@Injectable()
class HeaderGuard implements CanActivate {
  canActivate(context: ExecutionContext) {
    context.switchToHttp().getResponse().header('x-limit', '3');
    return true;
  }
}

@Catch()
class HttpErrorFilter implements ExceptionFilter {
  catch(_exception: unknown, host: ArgumentsHost) {
    host.switchToHttp().getResponse().status(500);
  }
}

@Catch(Error)
class SlowErrorFilter implements ExceptionFilter {
  async catch(_exception: unknown, host: ArgumentsHost) {
    await Promise.resolve();
    host.switchToHttp().getResponse().status(500);
  }
}

@Injectable()
class Tools {
  @Tool('Work')
  work() {
    return 'worked';
  }

  @Tool('Fail')
  fail() {
    throw new Error('broken');
  }

  @Tool('Find')
  find() {
    throw new NotFoundException('no such order');
  }

  @Tool('Find later')
  findLater(ctx: ToolContext) {
    return ctx.background(async () => {
      throw new NotFoundException('no such order');
    }, 'Started');
  }

  @Tool('Unavailable')
  unavailable() {
    throw new ServiceUnavailableException('the warehouse is closed');
  }

  @Tool('Greet')
  greet(name: string, password: string, customerNo: string) {
    return [name, password, customerNo].length;
  }

  @Tool('Refuse')
  @UseGuards({
    canActivate: () => {
      throw new Error('the guard broke');
    },
  })
  refuse() {}

  @Tool('Throttle')
  @UseGuards(HeaderGuard)
  throttle() {}

  @Tool('Closed')
  @UseGuards({ canActivate: () => false })
  closed() {}

  @Tool('Filtered')
  @UseFilters(HttpErrorFilter)
  filtered() {
    throw new Error('the disk is full');
  }

  @Tool('Filtered too')
  @UseFilters(new HttpErrorFilter())
  filteredToo() {
    throw new Error('the disk is full');
  }

  @Tool('Also filtered')
  @UseFilters(SlowErrorFilter)
  alsoFiltered() {
    throw new Error('the disk is full');
  }
}

@Injectable({ scope: Scope.REQUEST })
class Needy {
  constructor() {
    throw new Error('the pool is empty');
  }
}

@Injectable()
class NeedyTools {
  constructor(readonly needy: Needy) {}

  @Tool({ name: 'needy', description: 'Needy' })
  work() {}
}

/** Collects the log, with the levels that an application has enabled. */
class KeepingLogger extends ConsoleLogger {
  readonly kept: string[] = [];

  protected override printMessages(messages: unknown[], context = '', logLevel = 'log'): void {
    for (const message of messages) {
      const text =
        typeof message === 'object' && message !== null ? Reflect.get(message, 'message') : message;
      if (context === 'Toolwright') this.kept.push(`${logLevel}: ${text}`);
    }
  }
}

afterEach(() => {
  Logger.overrideLogger(['log', 'error', 'warn', 'debug', 'verbose', 'fatal']);
});

async function logOf(call: (tools: ToolRegistry) => Promise<unknown>, levels: ('verbose' | 'warn')[]) {
  const logger = new KeepingLogger();
  const module = await create(logger, { exposeErrors: true });
  logger.setLogLevels(levels.includes('verbose') ? ['verbose', 'debug', 'warn', 'error'] : ['warn', 'error']);
  await call(module.get(ToolRegistry));
  return logger.kept;
}

test('calls are logged with Nest’s logger, at levels that can be disabled', async () => {
  const all = await logOf((tools) => tools.execute('work'), ['verbose']);
  expect(all).toEqual(['debug: Tool started', 'debug: Tool completed']);
  expect(await logOf((tools) => tools.execute('work'), ['warn'])).toEqual([]);
  expect(await logOf((tools) => tools.execute('fail'), ['warn'])).toEqual(['error: Tool failed']);
});

test('ToolwrightModule logs once that `visible` throws, not for each tool and request', async () => {
  const logger = new KeepingLogger();
  const visible = () => {
    throw new Error('the directory is down');
  };
  const module = await create(logger, { visible });
  const toolwright = module.get(ToolwrightService);
  for (const request of [{}, {}]) expect(await toolwright.visibleTo(request)).toEqual({ allow: [] });
  expect(logger.kept).toEqual(['error: A tool is hidden because visible threw: the directory is down']);
});

test('ToolwrightModule logs arguments of calls only with logArguments, and redact hides more names', async () => {
  const kept = async (options?: ToolwrightModuleOptions) => {
    const got: unknown[] = [];
    const keep = (entry: unknown) => got.push(entry);
    const logger = { log: keep, error: keep, warn: keep, debug: keep, verbose: keep };
    const module = await create(logger, options);
    await module.get(ToolRegistry).execute('greet', { name: 'Ada', password: 'hunter2', customerNo: 'c-17' });
    return inspect(got);
  };
  const silent = await kept();
  for (const text of ['Ada', 'hunter2', 'c-17']) expect(silent).not.toContain(text);
  const asked = await kept({ logArguments: true, redact: ['customerNo'] });
  expect(asked).toContain('Ada');
  for (const text of ['hunter2', 'c-17']) expect(asked).not.toContain(text);
});

test('a guard that fails is logged with its name, the tool, the error and the missing response', async () => {
  const { lines } = await linesOf({ colors: false }, (tools) => tools.execute('refuse'));
  expect(lines[0]).toMatch(
    /ERROR \[Toolwright\] The tool 'refuse' was refused: the guard without a name threw sent="Internal error \(ref \w+\)" error="the guard broke"$/,
  );
  expect(lines[1]).toBe('Error: the guard broke');
  const lacking = await logOf((tools) => tools.execute('throttle'), ['warn']);
  expect(lacking).toContain(
    "error: The tool 'throttle' was refused: the guard HeaderGuard threw (a tool call has no response, and no request if the run has none; a guard that is not for tools begins with: if (context.getType<string>() === 'tool') return true;)",
  );
});

test('a guard that returns false is not an error', async () => {
  const kept = await logOf((tools) => tools.execute('closed'), ['warn']);
  expect(kept).toEqual(['warn: Tool call refused']);
});

test('a dependency of a call that cannot be created is logged as such', async () => {
  const { lines } = await linesOf({ colors: false }, (tools) => tools.execute('needy'));
  expect(lines[0]).toMatch(
    /The tool 'needy' was refused: a dependency of its call could not be created sent="Internal error \(ref \w+\)" error="the pool is empty"$/,
  );
});

test('a filter that needs a response is reported once, with the fix, however often it fails', async () => {
  const kept = await logOf(
    async (tools) => {
      const results = [await tools.execute('filtered'), await tools.execute('filtered')];
      expect(results.map(({ forLLM }) => forLLM)).toEqual(['the disk is full', 'the disk is full']);
      await tools.execute('filtered_too');
      await tools.execute('also_filtered');
    },
    ['warn'],
  );
  const warnings = kept.filter((line) => line.startsWith('warn'));
  expect(warnings).toEqual([
    expect.stringMatching(
      /^warn: The exception filter HttpErrorFilter cannot handle tool calls: .*'status'\) \(at the tool 'filtered'\)\. A tool call has no response; a filter that needs one begins with: if \(host\.getType<string>\(\) === 'tool'\) throw exception;$/,
    ),
    expect.stringContaining('The exception filter SlowErrorFilter cannot handle tool calls'),
  ]);
});

test('in Nest’s console, an entry is one line, and the stack of an unexpected error follows it', async () => {
  const { lines } = await linesOf({ colors: false }, (tools) => tools.execute('work'));
  expect(lines).toEqual([
    expect.stringMatching(/DEBUG \[Toolwright\] Tool started tool=work callId=\S+$/),
    expect.stringMatching(
      /DEBUG \[Toolwright\] Tool completed tool=work callId=\S+ durationMs=[\d.]+ resultLength=6$/,
    ),
  ]);
  const failed = await linesOf({ colors: false }, (tools) => tools.execute('fail'));
  const at = failed.lines.findIndex((line) => line.includes('Tool failed'));
  expect(failed.lines[at]).toMatch(
    /ERROR \[Toolwright\] Tool failed tool=fail callId=\S+ durationMs=[\d.]+ sent="Internal error \(ref \w+\)" error=".*broken"$/,
  );
  expect(failed.lines[at + 1]).toBe('Error: broken');
  expect(failed.lines[at + 2]).toContain('logging.test');
  const rejected = await linesOf({ colors: false }, (tools) => tools.execute('fail', 'nonsense'));
  expect(rejected.lines.filter((line) => line.includes('WARN'))).toHaveLength(1);
});

test('in Nest’s console with colours, the stack of an error has no escaped colour codes', async () => {
  const { lines } = await linesOf({ colors: true }, (tools) => tools.execute('fail'));
  expect(lines).toContain('Error: broken');
  expect(lines.join('\n')).not.toContain('\\u001b');
});

test('an entry about a call without an id has no call id', async () => {
  const { lines } = await linesOf({ colors: false }, (tools) =>
    tools.invoke({ id: '', name: 'none', arguments: {} }),
  );
  expect(lines).toEqual([expect.stringMatching(/WARN \[Toolwright\] Tool not found tool=none$/)]);
});

test('Nest logs the modules of the package with their names from the sources', async () => {
  const logger = new ConsoleLogger();
  const loaded = jest.spyOn(logger, 'log').mockImplementation(() => {});
  @Module({ imports: [ToolwrightModule.forRoot({ mcp: { path: 'mcp', name: 'shop' } })] })
  class AppModule {}
  const application = await NestFactory.createApplicationContext(AppModule, { logger });
  await application.close();
  const names = loaded.mock.calls.flatMap(([text]) => /^Toolwright\w+/.exec(String(text))?.[0] ?? []);
  expect(names).toEqual(expect.arrayContaining(['ToolwrightModule', 'ToolwrightCoreModule']));
  expect(names.filter((name) => !name.endsWith('Module'))).toEqual([]);
});

test('an HttpException below 500 is one line at debug, and not an error', async () => {
  const { lines } = await linesOf({ colors: false }, (tools) => tools.execute('find'));
  expect(lines).toEqual([
    expect.stringContaining('DEBUG [Toolwright] Tool started tool=find'),
    expect.stringMatching(
      /DEBUG \[Toolwright\] Tool failed tool=find callId=\S+ durationMs=[\d.]+ reason="no such order"$/,
    ),
  ]);
  const kept = await logOf((tools) => tools.execute('unavailable'), ['warn']);
  expect(kept).toEqual(['error: Tool failed']);
});

test('a given logger gets an HttpException below 500 at debug, also from background work', async () => {
  const got: (readonly [level: string, message: string, fields?: LogFields])[] = [];
  const at = (level: string) => (message: string, fields?: LogFields) => got.push([level, message, fields]);
  const logger = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
  const module = await create(new KeepingLogger(), { logger });
  const ended = Promise.withResolvers<void>();
  await module.get(ToolRegistry).execute('find');
  await module
    .get(ToolRegistry)
    .executeWithContext('find_later', {}, {}, () => ended.resolve())
    .then(() => ended.promise);
  expect(got.filter(([, message]) => message.includes('failed'))).toEqual([
    ['debug', 'Tool failed', expect.objectContaining({ tool: 'find', reason: 'no such order' })],
    ['debug', 'Async tool failed', expect.objectContaining({ tool: 'find_later', reason: 'no such order' })],
  ]);
});

test('a JSON logger gets the fields as data', async () => {
  const { lines } = await linesOf({ json: true }, async (tools) => {
    await tools.execute('work');
    await tools.execute('fail');
  });
  const entries = lines.map((line) => JSON.parse(line));
  expect(entries.map(({ message }) => message)).toMatchObject([
    { message: 'Tool started', tool: 'work' },
    { message: 'Tool completed', tool: 'work', durationMs: expect.any(Number), resultLength: 6 },
    { message: 'Tool started', tool: 'fail' },
    {
      message: 'Tool failed',
      tool: 'fail',
      error: "The tool 'fail' failed: broken",
      err: expect.stringContaining('logging.test'),
    },
  ]);
});

test('another kind of logger gets an object with the message and the fields', async () => {
  const got: unknown[] = [];
  const keep = (entry: unknown) => got.push({ ...(entry as object) });
  const logger = { log: () => {}, error: keep, warn: keep, debug: keep, verbose: () => {} };
  const module = await create(logger);
  await module.get(ToolRegistry).execute('work');
  expect(got).toMatchObject([
    { message: 'Tool started', tool: 'work' },
    { message: 'Tool completed', resultLength: 6 },
  ]);
});

/** What Nest’s own console logger prints. */
async function linesOf(options: ConsoleLoggerOptions, call: (tools: ToolRegistry) => Promise<unknown>) {
  const logger = new ConsoleLogger({ ...options, logLevels: ['warn', 'error'] });
  const module = await create(logger);
  logger.setLogLevels(['verbose', 'debug', 'warn', 'error']);
  const text: string[] = [];
  const write = (chunk: unknown) => text.push(String(chunk)) > 0;
  const spies = [process.stdout, process.stderr].map((stream) =>
    jest.spyOn(stream, 'write').mockImplementation(write),
  );
  try {
    await call(module.get(ToolRegistry));
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
  return { lines: text.join('').trimEnd().split('\n') };
}

function create(logger: LoggerService, options?: ToolwrightModuleOptions) {
  return Test.createTestingModule({
    imports: [ToolwrightModule.forRoot(options)],
    providers: [Tools, Needy, NeedyTools],
  })
    .setLogger(logger)
    .compile();
}
