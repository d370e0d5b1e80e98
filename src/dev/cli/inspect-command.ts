import { relative, resolve } from 'node:path';
import { counted } from '../../core/kernel/counted.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { createInspector, type InspectorOptions } from '../../surfaces/inspector/index.js';
import { type Command, closing, FLAG, readLine, STRING, UserFault } from './command.js';
import {
  type ModuleExports,
  type OpenModule,
  openModule,
  requiredRegistry,
  settingsOfModule,
  toolsOfModule,
} from './open-module.js';
import { openStore } from './open-store.js';
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

/** `toolwright inspect <module>`: serves a page about the tools of a module until it is stopped. */
export const command: Command = async (args, environment) => {
  const { name, values } = readInspectLine('inspect', args);
  const { folder } = environment;
  const ended = endAsked(environment);
  await using module = await openModule(name, folder);
  const registry = requiredRegistry(name, module);
  await using store = values.store === undefined ? undefined : await openStore(values.store, environment);
  const { provider, model, systemPrompt, store: own } = settingsOfModule(module);
  const { TOOLWRIGHT_INSPECTOR_TOKEN: token } = process.env;
  const tests = resolve(folder, values.tests ?? 'test');
  // The application's options, overridden by the command line.
  const options: InspectorOptions = {
    ...{ provider, model, systemPrompt, ...module.inspection },
    store: store ?? own,
    // Given by `toolwright dev`, so that an open page survives a restart.
    ...(token === undefined ? {} : { token }),
    tests: {
      folder: tests,
      setup: setupOf(module, { name, folder, tests }),
      ...(module.inspection === undefined ? {} : { scopeOf: 'scopeOf' }),
    },
    recordings: values.recordings && resolve(folder, values.recordings),
    ...(values.by === undefined ? {} : { answeredBy: personOf(values.by) }),
    // `readInspectLine` has refused production without the flag.
    allowInProduction: true,
  };
  await using inspector = closing(createInspector(registry, options));
  const { port = '0' } = values;
  const { url } = await inspector.listen({ port: Number(port) }).catch(refusePort(port));
  environment.out(`${url}\n`);
  environment.error(
    `toolwright: ${counted(registry.count(), 'tool')} of ${name}: open the address above; press Ctrl-C to stop\n`,
  );
  await ended;
  return 0;
};

/** Reads the line of `inspect` or `dev`; both refuse production. */
export function readInspectLine(command: 'dev' | 'inspect', args: readonly string[]) {
  const usage = `${command} takes one module: toolwright ${command} dist/tools.js`;
  const line = readLine(args, OPTIONS, usage);
  const { port, 'allow-in-production': isAllowed } = line.values;
  if (port !== undefined && !(/^\d{1,5}$/.test(port) && Number(port) <= HIGHEST_PORT))
    throw new UserFault(`--port must be a number from 0 to ${HIGHEST_PORT}, not '${port}'`);
  if (process.env.NODE_ENV === 'production' && !isAllowed)
    throw new UserFault(
      'NODE_ENV is production, and anyone with the token could call every tool: set NODE_ENV=development, or give --allow-in-production',
      1,
    );
  return line;
}

const HIGHEST_PORT = 65_535;

export function refusePort(port: string): (error: unknown) => never {
  return (error) => {
    const isTaken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
    const reason = isTaken ? 'another program uses this port: give another port, or 0 for any free port' : '';
    throw new UserFault(`--port ${port}: ${reason || errorMessage(error)}`, 1);
  };
}

/** Code with which a test gets the same tools as the command. */
function setupOf(
  { exports, inspection, nestModule }: OpenModule,
  { name, folder, tests }: { readonly name: string; readonly folder: string; readonly tests: string },
): string {
  let specifier = name;
  if (/^[./]|\.[cm]?[jt]s$/.test(name)) {
    const path = relative(tests, resolve(folder, name)).replaceAll('\\', '/');
    specifier = path.startsWith('.') ? path : `./${path}`;
  }
  const from = JSON.stringify(specifier).replaceAll('"', "'");
  if (inspection !== undefined) {
    const application = nameOf(exports, nestModule) ?? 'AppModule';
    return [
      "import { afterAll } from '@jest/globals';",
      "import { NestFactory } from '@nestjs/core';",
      "import { type CallScope, ToolRegistry } from 'toolwright';",
      "import { ToolwrightService } from 'toolwright/nestjs';",
      `import { ${application} } from ${from};`,
      '',
      `const application = await NestFactory.createApplicationContext(${application}, { logger: false });`,
      'const tools = application.get(ToolRegistry);',
      'const scopeOf = (request: object, scope: CallScope) => application.get(ToolwrightService).scopeOf(request, scope);',
      'void scopeOf;',
      'afterAll(() => application.close());',
    ].join('\n');
  }
  const { registry, tools = [] } = toolsOfModule(exports) ?? {};
  const exported = nameOf(exports, registry);
  if (exported === 'default') return `import tools from ${from};`;
  if (exported !== undefined)
    return `import { ${exported === 'tools' ? 'tools' : `${exported} as tools`} } from ${from};`;
  const more = tools.flatMap((tool) => nameOf(exports, tool) ?? []).map((tool) => `, module.${tool}`);
  return [
    "import { discoverTools, ToolRegistry } from 'toolwright';",
    `import * as module from ${from};`,
    '',
    `const tools = new ToolRegistry().register(...discoverTools()${more.join('')});`,
    ...(more.length === 0 ? ['void module;'] : []),
  ].join('\n');
}

function nameOf(exports: ModuleExports, value: unknown): string | undefined {
  if (value === undefined) return undefined;
  const names = Object.keys(exports).filter((name) => exports[name] === value);
  return names.find((name) => name !== 'default') ?? names[0];
}
