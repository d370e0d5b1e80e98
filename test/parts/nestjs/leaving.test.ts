import { once } from 'node:events';
import { afterEach, expect, test } from '@jest/globals';
import {
  Catch,
  ConsoleLogger,
  Controller,
  type ExceptionFilter,
  type INestApplication,
  Injectable,
  Logger,
  Module,
  Query,
  Sse,
} from '@nestjs/common';
import { APP_FILTER, NestFactory } from '@nestjs/core';
import { filter, finalize, from, map, tap } from 'rxjs';
import { Tool, ToolContext, type ToolResult } from 'toolwright';
import { ToolwrightModule, ToolwrightService } from 'toolwright/nestjs';
import { ScriptedProvider } from 'toolwright/testing';
import { disableTimeouts } from '../../setup/loopback.js';

/** Collects the lines of a real logger instead of printing them. */
class KeepingLogger extends ConsoleLogger {
  readonly kept: string[] = [];

  protected override printMessages(messages: unknown[], context = '', logLevel = 'log'): void {
    for (const message of messages)
      this.kept.push(`${logLevel} ${context}: ${this.stringifyMessage(message, 'log')}`);
  }
}

const seen: unknown[] = [];

@Catch()
class Everything implements ExceptionFilter {
  catch(exception: unknown) {
    seen.push(exception);
    return undefined;
  }
}

const working = { begun: Promise.withResolvers<void>() };

@Injectable()
class Tools {
  @Tool('Deaf work')
  async deaf() {
    working.begun.resolve();
    await new Promise((resolve) => setTimeout(resolve, 60_000).unref());
  }

  @Tool('Work that hears')
  async hearing(context: ToolContext) {
    working.begun.resolve();
    await once(context.signal, 'abort');
    context.signal.throwIfAborted();
  }

  @Tool('Work that goes on after the answer')
  started(context: ToolContext) {
    return context.background(async () => {
      await working.begun.promise;
      return 'mailed';
    }, 'started');
  }

  @Tool('Work with the signal')
  async signalled(signal: AbortSignal) {
    working.begun.resolve();
    await once(signal, 'abort');
    signal.throwIfAborted();
  }
}

/** As in docs/guides/nestjs.md. */
@Controller('events')
class EventsController {
  constructor(private readonly toolwright: ToolwrightService) {}

  @Sse()
  events(@Query('text') text: string) {
    const left = new AbortController();
    let hasEnded = false;
    return from(this.toolwright.stream([{ role: 'user', content: text }], { signal: left.signal })).pipe(
      tap({ complete: () => (hasEnded = true) }),
      filter((event) => event.type === 'text-delta'),
      map((event) => ({ data: { text: event.text } })),
      finalize(() => hasEnded || left.abort()),
    );
  }
}

let app: INestApplication | undefined;

afterEach(async () => {
  await app?.close();
  Logger.overrideLogger(['log', 'error', 'warn', 'debug', 'verbose', 'fatal']);
});

test.each(['deaf', 'hearing', 'signalled'])(
  'a browser that disconnects during %s causes no error in the log, and reaches no filter',
  async (name) => {
    working.begun = Promise.withResolvers();
    seen.length = 0;
    const provider = new ScriptedProvider([
      { content: '', toolCalls: [{ id: 'c1', name, arguments: {} }] },
      { content: 'done' },
    ]);
    @Module({
      imports: [ToolwrightModule.forRoot({ provider, model: 'm' })],
      controllers: [EventsController],
      providers: [Tools, { provide: APP_FILTER, useClass: Everything }],
    })
    class AppModule {}
    const logger = new KeepingLogger();
    app = await NestFactory.create(AppModule, { logger });
    disableTimeouts(app.getHttpServer());
    await app.listen(0, '127.0.0.1');
    const leaving = new AbortController();
    const response = await fetch(`${await app.getUrl()}/events?text=hi`, { signal: leaving.signal });
    await working.begun.promise;
    leaving.abort();
    await response.text().catch(() => {});
    await app.close();
    expect(logger.kept.filter((line) => /^(?:error|fatal)/.test(line))).toEqual([]);
    expect(logger.kept).toContainEqual(
      expect.stringMatching(`^warn Toolwright: Tool call aborted tool=${name} `),
    );
    expect(logger.kept.join('\n')).not.toContain('filter');
    expect(seen).toEqual([]);
  },
);

test('the end of a stream does not cancel started work', async () => {
  working.begun = Promise.withResolvers();
  const completed = Promise.withResolvers<string>();
  const provider = new ScriptedProvider([
    { content: '', toolCalls: [{ id: 'c1', name: 'started', arguments: {} }] },
    { content: 'done' },
  ]);
  const onAsyncResult = (_: unknown, { forLLM }: ToolResult) => completed.resolve(forLLM);
  @Module({
    imports: [ToolwrightModule.forRoot({ provider, model: 'm', onAsyncResult })],
    controllers: [EventsController],
    providers: [Tools],
  })
  class AppModule {}
  app = await NestFactory.create(AppModule, { logger: false });
  disableTimeouts(app.getHttpServer());
  await app.listen(0, '127.0.0.1');
  const response = await fetch(`${await app.getUrl()}/events?text=hi`);
  expect(await response.text()).toContain('done');
  working.begun.resolve();
  expect(await completed.promise).toBe('mailed');
});
