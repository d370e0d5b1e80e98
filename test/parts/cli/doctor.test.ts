import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { PostgresRunStore } from 'toolwright/postgres';
import { SqliteRunStore } from 'toolwright/stores';
import type { Job } from '../../../src/core/contract/job-engine.js';
import type { JobStore } from '../../../src/core/contract/job-store.js';
import { builtFile } from '../../processes/built-file.js';
import { hidePackage } from '../../processes/hide-package.js';
import { runNode } from '../../processes/run-node.js';
import { describePostgres, describeRedis } from '../../services/services.js';
import { ROOT, readManifest } from '../../structure/repository.js';
import { TestSchemas } from '../postgres/test-schema.js';
import { compilerPackage, VERSIONS } from '../typegen/compilers.js';
import { type SmallProject, smallProject, withTypeScript } from '../typegen/small-project.js';
import { runCommand } from './run-command.js';

const TOOLS =
  "import { Tool } from 'toolwright';\nexport class Tools {\n  @Tool('A') a(x: string) { return x; }\n}\n";

const WORKER = `
  export const mail = {
    name: 'mail', description: 'Mail', parameters: { type: 'object', properties: {} }, execute: () => 'mailed',
  };`;

const PEERS = Object.keys((readManifest() as unknown as { peerDependencies: object }).peerDependencies);

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** A project without problems. */
async function soundProject(options: object = {}): Promise<SmallProject> {
  const main = "import './toolwright.gen.js';\n";
  const project = smallProject({ 'src/tools.ts': TOOLS, 'src/main.ts': main }, options);
  expect(await runCommand(['generate'], project.folder)).toMatchObject({ code: 0 });
  return project;
}

/** The problems that the command reports; its exit code must match. */
async function problemsIn({ folder }: SmallProject, ...args: readonly string[]): Promise<readonly string[]> {
  const { code, out, error } = await runCommand(['doctor', ...args], folder);
  expect(error).toBe('');
  for (const line of out.trimEnd().split('\n')) expect(line).toMatch(/^(ok {7}|problem {2})\S/);
  const problems = out.split('\n').flatMap((line) => /^problem {2}(.*)/.exec(line)?.[1] ?? []);
  expect(code).toBe(problems.length === 0 ? 0 : 1);
  return problems;
}

/** The packages of the repository, some in other versions; `undefined` removes a package. */
function withPackages({ folder }: SmallProject, versions: Readonly<Record<string, string | undefined>>) {
  const modules = join(folder, 'node_modules');
  rmSync(modules);
  for (const name of PEERS) {
    const path = join(modules, name);
    mkdirSync(name in versions ? path : dirname(path), { recursive: true });
    if (!(name in versions)) symlinkSync(join(ROOT, 'node_modules', name), path, 'junction');
    else if (versions[name] === undefined) rmSync(path, { recursive: true });
    else writeFileSync(join(path, 'package.json'), JSON.stringify({ name, version: versions[name] }));
  }
}

describe('toolwright doctor', () => {
  test('prints a line for each check and exits with 0 if everything is in order', async () => {
    using project = await soundProject();
    const { code, out, error } = await runCommand(['doctor'], project.folder);
    expect({ code, error }).toEqual({ code: 0, error: '' });
    expect(out.split('\n').map((line) => line.replace(/\d+(\.\d+)+/g, '1'))).toEqual([
      'ok       Node 1',
      'ok       TypeScript 1',
      'ok       tsconfig.json: experimentalDecorators is on',
      'ok       src/toolwright.gen.ts is up to date',
      expect.stringMatching(/^ok {7}peers: .*class-validator 1/),
      '',
    ]);
    for (const name of PEERS) expect(out).toMatch(new RegExp(`(peers:|,) ${name} \\d|TypeScript \\d`));
  });

  test.each(VERSIONS)('accepts TypeScript %s', async (version) => {
    using project = smallProject({ 'src/tools.ts': TOOLS }, { emitDecoratorMetadata: true });
    withTypeScript(project, compilerPackage(version));
    const { out } = await runCommand(['doctor'], project.folder);
    expect(out).toContain(`ok       TypeScript ${version}.`);
    expect(out).toContain(
      'ok       tsconfig.json: emitDecoratorMetadata is on; there is no src/toolwright.gen.ts',
    );
  });

  test('reports disabled decorators, and that neither metadata nor a generated file exists', async () => {
    using project = smallProject({ 'src/tools.ts': TOOLS }, { experimentalDecorators: false });
    expect(await problemsIn(project)).toEqual([
      'tsconfig.json: experimentalDecorators is off, but @Tool needs it: npx toolwright init turns it on',
      expect.stringMatching(
        /emitDecoratorMetadata is off and there is no src\/toolwright.gen.ts.*npx toolwright generate/,
      ),
    ]);
  });

  test('reports a generated file that no file imports', async () => {
    using project = await soundProject();
    project.write('src/main.ts', '');
    expect(await problemsIn(project)).toEqual([
      "no file imports src/toolwright.gen.ts, so its schemas are not used: add import './toolwright.gen.js' to the file that starts the application",
    ]);
  });

  test('reports a generated file that is out of date or cannot be updated', async () => {
    using project = await soundProject();
    project.write('src/tools.ts', TOOLS.replace('string', 'number'));
    expect(await problemsIn(project)).toEqual([
      'src/toolwright.gen.ts is out of date: npx toolwright generate',
    ]);
    project.write('src/tools.ts', TOOLS.replace('string', 'symbol'));
    expect(await problemsIn(project)).toEqual([
      'src/toolwright.gen.ts cannot be updated: npx toolwright generate reports the reason',
    ]);
  });

  test('checks the generated file at the path given with --out', async () => {
    using project = smallProject({ 'src/tools.ts': TOOLS, 'src/main.ts': "import './made.ts';" });
    const where = ['--project', 'tsconfig.json', '--out', 'src/made.ts', '--import-ending', 'ts'];
    await runCommand(['generate', ...where], project.folder);
    expect(await problemsIn(project, ...where)).toEqual([]);
  });

  test('reports a missing or unsupported TypeScript', async () => {
    using project = smallProject({});
    withPackages(project, { typescript: undefined });
    expect(await problemsIn(project)).toEqual([expect.stringContaining('npm install --save-dev typescript')]);
    rmSync(join(project.folder, 'tsconfig.json'));
    expect(await problemsIn(project)).toEqual([]);
    using old = smallProject({});
    withPackages(old, { typescript: '5.4.5' });
    expect(await problemsIn(old)).toEqual([
      expect.stringContaining('TypeScript 5.4.5'),
      "typescript 5.4.5 is installed, but >=5.9.0 <8 is required: npm install 'typescript@>=5.9.0 <8'",
    ]);
  });

  test.each([
    ['tsyringe', '4.7.9', /^tsyringe 4\.7\.9 is installed, but \^4\.8\.0 is required: npm install/],
    ['tsyringe', '5.0.0', /5\.0\.0/],
    ['tsyringe', '4.10.0', undefined],
    ['@nestjs/core', '10.4.0', /10\.4\.0.*\^11\.0\.0 \|\| \^12\.0\.0/],
    ['@nestjs/core', '11.1.3', undefined],
    ['class-validator', '0.16.0', /0\.16\.0/],
    ['class-validator', '0.15.9', undefined],
    ['openai', '5.0.0', /5\.0\.0/],
    ['openai', '8.0.0', /8\.0\.0/],
    ['pg', undefined, undefined],
  ] as const)('checks the version of %s %s', async (name, version, message) => {
    using project = smallProject({});
    withPackages(project, { [name]: version });
    rmSync(join(project.folder, 'tsconfig.json'));
    const problems = await problemsIn(project);
    expect(problems).toEqual(message === undefined ? [] : [expect.stringMatching(message)]);
  });

  test('accepts a package without a version', async () => {
    using project = smallProject({});
    withPackages(project, { pg: '' });
    writeFileSync(join(project.folder, 'node_modules/pg/package.json'), '{ "name": "pg" }');
    rmSync(join(project.folder, 'tsconfig.json'));
    expect(await problemsIn(project)).toEqual([]);
  });

  test('reports a store that does not exist, is not a store, or cannot be reached', async () => {
    using project = smallProject({ 'other.sqlite': 'no database' });
    rmSync(join(project.folder, 'tsconfig.json'));
    const [missing] = await problemsIn(project, '--store', 'none.sqlite');
    expect(missing).toMatch(/none\.sqlite does not exist: .*start a worker or the application/);
    const [other] = await problemsIn(project, '--store', 'other.sqlite');
    expect(other).toContain('other.sqlite');
    const [away] = await problemsIn(project, '--store', 'postgres://nobody@127.0.0.1:1/none');
    expect(away).toMatch(/ECONNREFUSED.*PostgreSQL at 127\.0\.0\.1:1\/none.*start the server, or correct/);
  });

  test('reports a module that does not exist, has an invalid tool or exports no tools', async () => {
    using project = smallProject({ 'empty.mjs': 'export const config = {};' });
    rmSync(join(project.folder, 'tsconfig.json'));
    expect(await problemsIn(project, '--module', 'none.mjs')).toEqual(['there is no module none.mjs']);
    // In a process of its own, because the command also reads toolsets that this process has loaded.
    const args = [builtFile('dist/src/dev/cli/main.js'), 'doctor', '--module', 'empty.mjs'];
    const { exitCode, stdout } = runNode(args, { folder: project.folder });
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(
      /^problem {2}empty\.mjs exports no ToolRegistry, no toolset class, no tool and no NestJS module$/m,
    );
    using bad = smallProject({ 'bad.mjs': WORKER.replace("'mail'", "'no name'") });
    rmSync(join(bad.folder, 'tsconfig.json'));
    expect(await problemsIn(bad, '--module', 'bad.mjs')).toEqual([expect.stringContaining('no name')]);
  });

  test('reports that tsx cannot be loaded for a TypeScript module', async () => {
    using project = smallProject({ 'app.ts': 'export const config: object = {};' });
    for (const path of ['tsconfig.json', 'node_modules']) rmSync(join(project.folder, path));
    const manifest = { type: 'module', exports: { './esm/api': './api.js' } };
    project.write('node_modules/tsx/package.json', JSON.stringify(manifest));
    project.write(
      'node_modules/tsx/api.js',
      "throw new Error('esbuild is of another platform\\nInstall it again')",
    );
    expect(await problemsIn(project, '--module', 'app.ts')).toEqual([
      'tsx is installed but cannot be loaded: esbuild is of another platform',
    ]);
  });
});

describe('toolwright doctor with the engine of a module', () => {
  const entryPoint = (name: string) => JSON.stringify(builtFile(`dist/src/${name}`));
  const nest = JSON.stringify(createRequire(import.meta.url).resolve('@nestjs/common'));
  const ENGINES = {
    BullMQ: [
      `import { bullmqEngine } from ${entryPoint('durable/bullmq/index.js')};`,
      "bullmqEngine({ connection: 'redis://127.0.0.1:1' })",
      "BullMQ, queue 'toolwright' in Redis at 127.0.0.1:1",
    ],
    'pg-boss': [
      `import { pgBossEngine } from ${entryPoint('durable/pg-boss/index.js')};`,
      "pgBossEngine({ connection: 'postgres://nobody@127.0.0.1:1/none' })",
      "pg-boss, queue 'toolwright' in PostgreSQL at 127.0.0.1:1/none",
    ],
  } as const;
  const nestModule = (engine: string) => `
    import { Module } from ${nest};
    import { ToolwrightModule } from ${entryPoint('surfaces/nestjs/index.js')};
    import { MemoryRunStore } from ${entryPoint('durable/stores/index.js')};
    import { defineTool } from ${entryPoint('index.js')};
    const tools = [defineTool({ name: 'mail', description: 'Mail', execute: () => 'mailed' })];
    export class AppModule {}
    Module({ imports: [ToolwrightModule.forRoot({
      provider: { chat: () => {} }, model: 'm', worker: false, tools, engine: ${engine}, store: new MemoryRunStore(),
    })] })(AppModule);`;

  test.each([
    ['that the module exports', 'BullMQ', (engine: string) => `${WORKER}export const engine = ${engine};`],
    ['that the module exports', 'pg-boss', (engine: string) => `${WORKER}export const engine = ${engine};`],
    ['in the config', 'BullMQ', (engine: string) => `${WORKER}export const config = { engine: ${engine} };`],
  ] as const)('reports an engine %s, %s, that cannot be reached', async (_, kind, moduleOf) => {
    const [imported, engine, place] = ENGINES[kind];
    using project = smallProject({ 'worker.mjs': `${imported}${moduleOf(engine)}` });
    rmSync(join(project.folder, 'tsconfig.json'));
    expect(await problemsIn(project, '--module', 'worker.mjs')).toEqual([
      `${place} does not answer: connect ECONNREFUSED 127.0.0.1:1: start it, correct its connection, or install the missing driver`,
    ]);
  });

  test.each([
    ['', (engine: string) => `${WORKER}export const engine = ${engine};`],
    [' of a NestJS application', nestModule],
  ])('reports an engine%s whose driver is not installed', (_, moduleOf) => {
    const [imported, engine, place] = ENGINES.BullMQ;
    using project = smallProject({ 'worker.mjs': `${imported}${moduleOf(engine)}` });
    const command = [builtFile('dist/src/dev/cli/main.js'), 'doctor', '--module', 'worker.mjs'];
    const args = ['--import', hidePackage('ioredis'), ...command];
    const { status, stdout } = spawnSync(process.execPath, args, { cwd: project.folder, encoding: 'utf8' });
    expect(stdout).toMatch(new RegExp(`^problem  ${place} does not answer: .*'ioredis'.*npm install`, 'm'));
    expect(status).toBe(1);
  });

  const testAnswering = (engine: string, imported: string) => async () => {
    const module = `${imported}${WORKER}export const engine = ${engine};`;
    using project = smallProject({ 'worker.mjs': module });
    rmSync(join(project.folder, 'tsconfig.json'));
    const { code, out } = await runCommand(['doctor', '--module', 'worker.mjs'], project.folder);
    expect(out).toMatch(/^ok {7}(BullMQ|pg-boss), queue '\w+' in (Redis|PostgreSQL) at \S+ answers$/m);
    expect(code).toBe(0);
  };

  describeRedis('that is reachable', (service) => {
    const options = JSON.stringify({ connection: service.url, queue: service.newName() });
    test('accepts BullMQ', testAnswering(`bullmqEngine(${options})`, ENGINES.BullMQ[0]));
  });

  describePostgres('that is reachable and has no tables yet', (service) => {
    const schemas = new TestSchemas(service);
    const schema = schemas.newSchema();
    const options = JSON.stringify({ connection: service.url, schema });
    test('accepts pg-boss', async () => {
      await testAnswering(`pgBossEngine(${options})`, ENGINES['pg-boss'][0])();
      const { rows } = await schemas.pool.query('SELECT to_regnamespace($1) AS made', [schema]);
      expect(rows).toEqual([{ made: null }]);
    });
  });
});

const job = (id: string, tool: string): Job => ({
  ...{ id, tool, arguments: {}, scope: {} },
  ...{ fingerprint: 'f', idempotencyKey: id, callId: id },
});

const RESULT = { forLLM: 'mailed', forUser: '', silent: false, isError: false, async: false };

/** A store whose clock can be set, and its value of --store. */
interface JobStoreCase {
  readonly named: string;
  /** Does something as if it had happened this long ago. */
  ago(ms: number, work: (jobs: JobStore) => unknown): Promise<void>;
}

/** The command's reports about the jobs of a store. */
function testJobs(open: (folder: string) => Promise<JobStoreCase>): void {
  async function place(): Promise<JobStoreCase & { readonly project: SmallProject }> {
    const project = smallProject({ 'worker.mjs': WORKER });
    rmSync(join(project.folder, 'tsconfig.json'));
    return { project, ...(await open(project.folder)) };
  }

  test('reports nothing for a store without jobs, or whose jobs were just added or started', async () => {
    const { project, named, ago } = await place();
    using _ = project;
    await ago(0, () => {});
    const { out } = await runCommand(['doctor', '--store', named], project.folder);
    expect(out).toContain('ok       --store can be reached, and its tables are up to date\n');
    expect(out).toContain('ok       no unfinished jobs\n');
    await ago(0, (jobs) => jobs.addJob(job('a', 'mail'), {}));
    await ago(3 * HOUR, (jobs) => jobs.addJob(job('later', 'mail'), { delay: 3 * HOUR }));
    expect(await problemsIn(project, '--store', named)).toEqual([]);
    const waiting = await runCommand(['doctor', '--store', named], project.folder);
    expect(waiting.out).toContain('ok       unfinished: 2 jobs (mail), the oldest added 3 hours ago\n');
  });

  test('reports jobs of a queue without a worker, until one of its jobs is started', async () => {
    const { project, named, ago } = await place();
    using _ = project;
    await ago(3 * HOUR, (jobs) => jobs.addJob(job('a', 'mail'), {}));
    await ago(2 * HOUR, (jobs) => jobs.addJob(job('b', 'report'), {}));
    const problem = expect.stringMatching(
      /^no worker takes jobs of the queue of the engine: 2 jobs \(mail, report\), the oldest added 3 hours ago: start toolwright worker/,
    );
    expect(await problemsIn(project, '--store', named)).toEqual([problem]);
    // A start by a worker that has died does not count.
    await ago(2 * HOUR, (jobs) => jobs.beginJob('a', 1));
    expect(await problemsIn(project, '--store', named)).toEqual([problem]);
    await ago(0, (jobs) => jobs.beginJob('a', 2));
    expect(await problemsIn(project, '--store', named)).toEqual([]);
    await ago(0, (jobs) => jobs.completeJob('a', RESULT));
    expect(await problemsIn(project, '--store', named)).toEqual([]);
  });

  test('reports jobs whose tool is missing in the module of the workers', async () => {
    const { project, named, ago } = await place();
    using _ = project;
    await ago(0, (jobs) => jobs.addJob(job('a', 'mail'), {}));
    const [store, module] = [
      ['--store', named],
      ['--module', 'worker.mjs'],
    ] as const;
    expect(await problemsIn(project, ...store, ...module)).toEqual([]);
    await ago(0, (jobs) => jobs.addJob(job('b', 'report'), {}));
    expect(await problemsIn(project, ...store, ...module)).toEqual([
      expect.stringMatching(
        /^worker\.mjs does not have the tools of 1 job \(report\), .*: add them, or start/,
      ),
    ]);
  });
}

describe('toolwright doctor over SQLite', () => {
  testJobs(async (folder) => ({
    named: 'runs.sqlite',
    async ago(ms, work) {
      using store = new SqliteRunStore({ path: join(folder, 'runs.sqlite'), now: () => Date.now() - ms });
      await work(store.jobs);
    },
  }));
});

describePostgres('toolwright doctor over PostgreSQL', (service) => {
  const schemas = new TestSchemas(service);

  testJobs(async () => {
    const schema = schemas.newSchema();
    const url = new URL(service.url);
    url.searchParams.set('schema', schema);
    return {
      named: url.href,
      async ago(ms, work) {
        await using store = new PostgresRunStore({ connectionString: service.url, schema });
        await store.migrate();
        const { rows } = await schemas.pool.query(
          'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now',
        );
        await work(store.jobs);
        // PostgreSQL uses the server's clock, so the rows are changed instead.
        for (const time of ['added_at', 'changed_at'])
          await schemas.pool.query(`UPDATE ${schema}.jobs SET ${time} = ${time} - $1 WHERE ${time} >= $2`, [
            ms,
            rows[0].now,
          ]);
      },
    };
  });

  test('reports a schema that does not exist', async () => {
    using project = smallProject({});
    rmSync(join(project.folder, 'tsconfig.json'));
    const url = new URL(service.url);
    url.searchParams.set('schema', service.newName());
    expect(await problemsIn(project, '--store', url.href)).toEqual([
      expect.stringMatching(/There is no schema .*first start a worker or the application/),
    ]);
  });
});
