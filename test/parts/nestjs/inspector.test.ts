import { afterEach, expect, jest, test } from '@jest/globals';
import {
  type CanActivate,
  type ExecutionContext,
  Injectable,
  Module,
  Scope,
  UseGuards,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Param, Tool, ToolContext } from 'toolwright';
import { ToolwrightModule, type ToolwrightModuleOptions, toolCallOf } from 'toolwright/nestjs';

interface AskingRequest {
  readonly user?: { readonly id: string; readonly isAdmin?: boolean };
}

@Injectable()
class AdminGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { request } = toolCallOf(context) ?? {};
    return (request as AskingRequest | undefined)?.user?.isAdmin === true;
  }
}

@Injectable()
class Ledger {
  readonly entries = ['rent', 'tea'];
}

@Injectable({ scope: Scope.DEFAULT })
class LedgerTools {
  constructor(private readonly ledger: Ledger) {}

  @Tool('Entries of the ledger')
  @UseGuards(AdminGuard)
  entries(@Param('How many') limit: number, context: ToolContext) {
    return { entries: this.ledger.entries.slice(0, limit), user: Reflect.get(context.data, 'user') };
  }
}

const TOKEN = 'a token of the test';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function start(options: ToolwrightModuleOptions) {
  @Module({
    imports: [
      ToolwrightModule.forRoot({
        data: (request: AskingRequest) => ({ user: request.user?.id }) as never,
        ...options,
      }),
    ],
    providers: [Ledger, LedgerTools],
  })
  class AppModule {}
  const application = await NestFactory.createApplicationContext(AppModule, {
    logger: false,
    abortOnError: false,
  });
  ends.push(() => application.close());
  return application;
}

async function ask(port: number, path: string, body?: object): Promise<unknown> {
  const response = await fetch(`http://127.0.0.1:${port}/api/${path}`, {
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
  });
  return response.json();
}

test('ToolwrightModule.forRoot({ inspector }) calls tools with injection, guards and the chosen request', async () => {
  const said = jest.spyOn(process.stderr, 'write').mockReturnValue(true);
  ends.push(() => said.mockRestore());
  const application = await start({ inspector: { token: TOKEN } });
  const [, found] = /http:\/\/127\.0\.0\.1:(\d+)\/#token=/.exec(String(said.mock.calls[0])) ?? [];
  const port = Number(found);
  expect(await ask(port, 'tools/entries')).toMatchObject({
    method: 'LedgerTools.entries',
    surroundings: expect.arrayContaining([{ kind: 'guard', name: 'AdminGuard' }]),
  });
  const call = { tool: 'entries', arguments: { limit: 1 } };
  expect(await ask(port, 'calls', call)).toMatchObject({ status: 'refused' });
  const scope = { request: { user: { id: 'ann', isAdmin: true } } };
  expect(await ask(port, 'calls', { ...call, scope })).toMatchObject({
    status: 'success',
    forLLM: '{"entries":["rent"],"user":"ann"}',
  });
  await application.close();
  await expect(ask(port, 'tools')).rejects.toThrow();
});

test.each(['production', undefined])(
  'ToolwrightModule.forRoot({ inspector }) starts none if NODE_ENV is %s, and warns',
  async (place) => {
    const { NODE_ENV } = process.env;
    if (place === undefined) delete process.env.NODE_ENV;
    else process.env.NODE_ENV = place;
    ends.push(() => {
      process.env.NODE_ENV = NODE_ENV;
    });
    const said = jest.spyOn(process.stderr, 'write').mockReturnValue(true);
    ends.push(() => said.mockRestore());
    const warnings: string[] = [];
    const logger = { ...console, warn: (message: string) => warnings.push(message) };
    await start({ inspector: { token: TOKEN }, logger: logger as never });
    expect(warnings).toEqual([
      expect.stringContaining(`The inspector is off, because NODE_ENV is ${place ?? 'not set'}`),
    ]);
    expect(said).not.toHaveBeenCalled();
  },
);

test('ToolwrightModule.forRoot refuses unknown options of the inspector', async () => {
  await expect(start({ inspector: { prot: 1 } as never })).rejects.toThrow('prot');
});
