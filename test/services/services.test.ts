import { connect } from 'node:net';
import { expect, test } from '@jest/globals';
import pg from 'pg';
import { describePostgres, describeRedis, postgres } from './services.js';

const { skippedLine } = (await import('./skipped-services.mjs' as string)) as {
  skippedLine(results: unknown): string | undefined;
};

describePostgres('the PostgreSQL of the tests', (service) => {
  test('answers, and lets a suite have a schema of its own', async () => {
    const client = new pg.Client({ connectionString: service.url });
    await client.connect();
    const schema = service.newName();
    await client.query(
      `CREATE SCHEMA ${schema}; CREATE TABLE ${schema}.t (id int); DROP SCHEMA ${schema} CASCADE`,
    );
    await client.end();
    expect(service.newName()).not.toBe(schema);
  });
});

describeRedis('the Redis of the tests', (service) => {
  test('answers', async () => {
    const { hostname, port } = new URL(service.url);
    const socket = connect({ host: hostname, port: Number(port) });
    socket.write('PING\r\n');
    const [reply] = await new Promise<Buffer[]>((resolve) => socket.once('data', (...data) => resolve(data)));
    socket.destroy();
    // One with a password answers that it wants it.
    expect(String(reply)).toMatch(/^[+-]/);
  });
});

test('a service that the environment says is not there is none', () => {
  const before = process.env.TOOLWRIGHT_TEST_POSTGRES;
  process.env.TOOLWRIGHT_TEST_POSTGRES = '';
  try {
    expect(postgres()).toBeUndefined();
  } finally {
    process.env.TOOLWRIGHT_TEST_POSTGRES = before;
  }
});

test('without a service that is demanded nothing is tested, and its name is told', async () => {
  const { default: findServices } = (await import('./find-services.mjs' as string)) as {
    default(): Promise<void>;
  };
  const before = { ...process.env };
  try {
    Object.assign(process.env, {
      TOOLWRIGHT_REQUIRE_SERVICES: '1',
      TOOLWRIGHT_TEST_POSTGRES: 'postgres://somewhere/else',
      TOOLWRIGHT_TEST_REDIS: '',
      CHROMIUM_PATH: process.execPath,
    });
    await expect(findServices()).rejects.toThrow(/there is no Redis\. .*TOOLWRIGHT_TEST_REDIS/);
    delete process.env.TOOLWRIGHT_REQUIRE_SERVICES;
    await expect(findServices()).resolves.toBeUndefined();
  } finally {
    for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
    Object.assign(process.env, before);
  }
});

test('what was skipped for want of a service is told in one line, and nothing else is', () => {
  const skipped = (...ancestorTitles: readonly string[]) => ({ status: 'pending', ancestorTitles });
  const passed = { status: 'passed', ancestorTitles: ['of mine [needs Redis]'] };
  const files = (...testResults: readonly unknown[]) => ({ testResults: [{ testResults }] });
  expect(skippedLine(files(passed, skipped('slow ones')))).toBeUndefined();
  const line = skippedLine(files(skipped('a [needs Redis]'), skipped('x', 'b [needs Redis]'), passed));
  expect(line).toBe('Tests skipped: 2 that need Redis (TOOLWRIGHT_TEST_REDIS and 127.0.0.1:6379 have none)');
});
