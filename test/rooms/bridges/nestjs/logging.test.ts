import { afterEach, expect, test } from '@jest/globals';
import { ConsoleLogger, Injectable, Logger, UseGuards } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { Tool, ToolRegistry } from 'toolwright';
import { ToolwrightModule } from 'toolwright/nestjs';

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

  @Tool('Refuse')
  @UseGuards({
    canActivate: () => {
      throw new Error('the guard broke');
    },
  })
  refuse() {}
}

/** Keeps what is logged, with the levels that an application has switched on. */
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
  const module = await Test.createTestingModule({
    imports: [ToolwrightModule.forRoot()],
    providers: [Tools],
  })
    .setLogger(logger)
    .compile();
  logger.setLogLevels(levels.includes('verbose') ? ['verbose', 'debug', 'warn', 'error'] : ['warn', 'error']);
  await call(module.get(ToolRegistry));
  return logger.kept;
}

test('what happens to calls is logged by Nest’s logger, at levels that can be left out', async () => {
  const all = await logOf((tools) => tools.execute('work'), ['verbose']);
  expect(all).toEqual(['debug: Tool started', 'verbose: Tool arguments', 'debug: Tool completed']);
  expect(await logOf((tools) => tools.execute('work'), ['warn'])).toEqual([]);
  expect(await logOf((tools) => tools.execute('fail'), ['warn'])).toEqual(['error: Tool failed']);
});

test('a guard that breaks is logged with what it threw', async () => {
  const kept = await logOf((tools) => tools.execute('refuse'), ['warn']);
  expect(kept).toContain('error: A tool call was refused, because what decides about it threw');
  expect(kept.join()).toContain('the guard broke');
});
