import { relative, resolve } from 'node:path';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { counted } from '../../core/kernel/counted.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { createInspector, type InspectorOptions } from '../../surfaces/inspector/index.js';
import { type Command, closing, FLAG, type LineValues, readLine, STRING, UserFault } from './command.js';
import {
  type ModuleExports,
  type OpenModule,
  openModule,
  requiredRegistry,
  settingsOfModule,
  toolsOfModule,
} from './open-module.js';
import { type OpenStore, openStore } from './open-store.js';
import { personOf } from './runs-command.js';
import { endAsked } from './worker-command.js';

const OPTIONS = {
  port: STRING,
  store: STRING,
  tests: STRING,
  recordings: STRING,
  by: STRING,
  'allow-in-production': FLAG,
};

type InspectOptions = LineValues<typeof OPTIONS>;

/** `toolwright inspect <module>`: serves a page about the tools of a module until it is stopped. */
export const command: Command = async (args, environment) => {
  const { name, values } = readInspectLine('inspect', args);
  const { folder } = environment;
  const ended = endAsked(environment);
  try {
    await using module = await openModule(name, folder);
    const registry = requiredRegistry(name, module);
    await using store = values.store === undefined ? undefined : await openStore(values.store, environment);
    await using inspector = closing(
      createInspector(registry, optionsOf(module, { name, values, folder, store })),
    );
    const { port = '0' } = values;
    const { url } = await inspector.listen({ port: Number(port) }).catch(refusePort(port));
    environment.out(`${url}\n`);
    environment.error(
      `toolwright: ${counted(registry.count(), 'tool')} of ${name}: open the address above; Ctrl-C ends\n`,
    );
    await ended;
    return 0;
  } catch (error) {
    if (ToolwrightError.is(error)) throw new UserFault(error.message, 1);
    throw error;
  }
};

/** Reads the line of `inspect` or `dev`; both refuse production. */
export function readInspectLine(command: 'dev' | 'inspect', args: readonly string[]) {
  const usage = `${command} takes one module: toolwright ${command} dist/tools.js`;
  const line = readLine(args, OPTIONS, usage);
  const { port, 'allow-in-production': isAllowed } = line.values;
  if (port !== undefined && !(/^\d{1,5}$/.test(port) && Number(port) <= HIGHEST_PORT))
    throw new UserFault(`--port is a number from 0 to ${HIGHEST_PORT}, not '${port}'`);
  if (process.env.NODE_ENV === 'production' && !isAllowed)
    throw new UserFault(
      'NODE_ENV is production, where whoever has the token could call every tool: set NODE_ENV=development, or give --allow-in-production',
      1,
    );
  return line;
}

const HIGHEST_PORT = 65_535;

export function refusePort(port: string): (error: unknown) => never {
  return (error) => {
    const isTaken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
    const reason = isTaken ? 'another program uses this port: give another one, or 0 for any free port' : '';
    throw new UserFault(`--port ${port}: ${reason || errorMessage(error)}`, 1);
  };
}

interface Asked {
  readonly name: string;
  readonly values: InspectOptions;
  readonly folder: string;
  readonly store: OpenStore | undefined;
}

/** The application's options, overridden by the command line. */
function optionsOf(module: OpenModule, { name, values, folder, store }: Asked): InspectorOptions {
  const { provider, model, systemPrompt, store: own } = settingsOfModule(module);
  const { TOOLWRIGHT_INSPECTOR_TOKEN: token } = process.env;
  const tests = resolve(folder, values.tests ?? 'test');
  return {
    provider,
    model,
    systemPrompt,
    ...module.inspection,
    store: store ?? own,
    // Given by `toolwright dev`, so that an open page survives a restart.
    ...(token === undefined ? {} : { token }),
    tests: {
      folder: tests,
      setup: setupOf(module, specifierOf(name, folder, tests)),
      ...(module.inspection === undefined ? {} : { scopeOf: 'scopeOf' }),
    },
    recordings: values.recordings && resolve(folder, values.recordings),
    ...(values.by === undefined ? {} : { answeredBy: personOf(values.by) }),
    // `readInspectLine` has refused production without the flag.
    allowInProduction: true,
  };
}

/** The import specifier of the module for a test in the test folder. */
function specifierOf(name: string, folder: string, tests: string): string {
  if (!/^[./]|\.[cm]?[jt]s$/.test(name)) return name;
  const path = relative(tests, resolve(folder, name)).replaceAll('\\', '/');
  return path.startsWith('.') ? path : `./${path}`;
}

/** Code with which a test gets the same tools as the command. */
function setupOf({ exports, inspection, nestModule }: OpenModule, specifier: string): string {
  const from = JSON.stringify(specifier).replaceAll('"', "'");
  if (inspection !== undefined) return nestSetup(nameOf(exports, nestModule) ?? 'AppModule', from);
  const { registry, tools = [] } = toolsOfModule(exports) ?? {};
  const name = nameOf(exports, registry);
  if (name !== undefined)
    return `import ${name === 'default' ? 'tools' : `{ ${name} as tools }`} from ${from};`.replace(
      '{ tools as tools }',
      '{ tools }',
    );
  const loose = tools.flatMap((tool) => nameOf(exports, tool) ?? []);
  const more = loose.map((tool) => `, module.${tool}`).join('');
  return [
    "import { discoverTools, ToolRegistry } from 'toolwright';",
    `import * as module from ${from};`,
    '',
    `const tools = new ToolRegistry().register(...discoverTools()${more});`,
    ...(more === '' ? ['void module;'] : []),
  ].join('\n');
}

function nestSetup(name: string, from: string): string {
  return [
    "import { afterAll } from '@jest/globals';",
    "import { NestFactory } from '@nestjs/core';",
    "import { type CallScope, ToolRegistry } from 'toolwright';",
    "import { ToolwrightService } from 'toolwright/nestjs';",
    `import { ${name} } from ${from};`,
    '',
    `const application = await NestFactory.createApplicationContext(${name}, { logger: false });`,
    'const tools = application.get(ToolRegistry);',
    'const scopeOf = (request: object, scope: CallScope) => application.get(ToolwrightService).scopeOf(request, scope);',
    'void scopeOf;',
    'afterAll(() => application.close());',
  ].join('\n');
}

function nameOf(exports: ModuleExports, value: unknown): string | undefined {
  if (value === undefined) return undefined;
  const names = Object.keys(exports).filter((name) => exports[name] === value);
  return names.find((name) => name !== 'default') ?? names[0];
}
