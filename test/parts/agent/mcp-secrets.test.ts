import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { type Answer, defineTool, type Logger, ToolRegistry } from 'toolwright';
import { createAgent } from 'toolwright/agent';
import { createInspector, type Inspector } from 'toolwright/inspector';
import { OpenAIProvider } from 'toolwright/openai';
import { openTelemetry } from 'toolwright/opentelemetry';
import { PostgresRunStore } from 'toolwright/postgres';
import { SqliteRunStore } from 'toolwright/stores';
import { recordedFetch } from 'toolwright/testing';
import { describePostgres } from '../../services/services.js';
import { serve } from '../../setup/loopback.js';
import { agree, type OddServers, serveOddly } from '../mcp/odd-authorization-server.js';
import { Recording } from '../opentelemetry/recording.js';
import { TestSchemas } from '../postgres/test-schema.js';

/** By default, `inspect` cuts long texts and lists. */
const WHOLE = { depth: 50, maxStringLength: null, maxArrayLength: null };
const redirectUrl = 'https://app.example.com/signed-in';

let folder: string;
let servers: OddServers;
let recording: Recording;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'toolwright-secrets-'));
  recording = new Recording();
  const said = ({ data }: { readonly data: { readonly mcp?: { readonly headers?: Headers } } }) =>
    `you sent ${data.mcp?.headers?.get('authorization')}`;
  const options = { description: 'Repeats what it was sent', scopes: ['read'] };
  servers = await serveOddly(
    new ToolRegistry().register(
      defineTool({ ...options, name: 'repeat', execute: (_args, context) => said(context) }),
      defineTool({
        ...options,
        name: 'fail',
        execute: (_args, context) => {
          throw new Error(said(context));
        },
      }),
    ),
  );
});
afterEach(async () => {
  await servers[Symbol.asyncDispose]();
  await recording.end();
  rmSync(folder, { recursive: true });
});

/** A model that signs in and then calls both tools repeatedly. */
function serveModel() {
  const turns = [['shop_sign_in'], ['shop_repeat', 'shop_fail'], [], ['shop_repeat', 'shop_fail'], []];
  return serve((request, response) => {
    request.resume();
    const names = turns.shift() ?? [];
    const tool_calls = names.map((name, index) => ({
      id: `call_${turns.length}_${index}`,
      type: 'function',
      function: { name, arguments: '{}' },
    }));
    const message = { role: 'assistant', content: names.length > 0 ? null : 'Done.', tool_calls };
    const body = {
      id: 'r',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [{ index: 0, message }],
    };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
}

/** Everything that the page of an inspector shows, with the details of each call and each run. */
async function shownBy(inspector: Inspector): Promise<readonly string[]> {
  const read = async (path: string): Promise<string> => {
    const headers = { authorization: `Bearer ${inspector.token}` };
    const response = await inspector.fetch(new Request(`http://localhost/api/${path}`, { headers }));
    expect([path, response.status]).toEqual([path, 200]);
    return response.text();
  };
  const lists = await Promise.all(['tools', 'calls', 'runs', 'pending'].map(read));
  const [, calls = '', runs = ''] = lists;
  const idsIn = (list: string, field: string) =>
    [...list.matchAll(new RegExp(`"${field}":"([^"]+)"`, 'g'))].map(([, id = '']) => id);
  const details = await Promise.all([
    ...idsIn(calls, 'id').map((id) => read(`calls/${id}`)),
    ...idsIn(runs, 'runId').map((id) => read(`runs/${id}`)),
  ]);
  return [...lists, ...details];
}

/** Runs a conversation with a sign-in, a token renewal and a revoked sign-in; returns all that was written anywhere. */
async function everythingWritten(
  store: SqliteRunStore | PostgresRunStore,
  dump: () => Promise<readonly string[]>,
): Promise<readonly string[]> {
  await using model = await serveModel();
  const file = join(folder, 'recorded.jsonl');
  const provider = new OpenAIProvider({
    baseURL: `${model.url}/v1`,
    apiKey: 'none',
    maxRetries: 0,
    fetch: recordedFetch({ file, mode: 'record' }),
  });
  const logged: string[] = [];
  const log = (...entry: unknown[]) => void logged.push(inspect(entry, WHOLE));
  // The SDK warns on the console.
  const warn = jest.spyOn(console, 'warn').mockImplementation(log);
  const logger: Logger = { debug: log, info: log, warn: log, error: log };
  const written: unknown[] = [];
  {
    await using agent = await createAgent({
      ...{ provider, model: 'm', folder, logger, store, checkpoint: 'step' },
      stateSecret: 'a secret of the application that has at least thirty-two characters',
      telemetry: openTelemetry({ content: true }),
      permissions: { mode: 'ask', rules: [{ decision: 'allow', tool: 'shop_*' }] },
      mcp: { shop: { url: servers.url, auth: { redirectUrl } } },
    });
    const inspector = createInspector(agent.registry, { store });
    const run = await agent.run('Sign in, and repeat');
    const page = /http\S+authorize\S+/.exec(JSON.parse(JSON.stringify(run.pending))[0]?.message)?.[0];
    expect(await agent.finishSignIn(await agree(new URL(page ?? '')))).toBe(true);
    const signedIn = await agent.resume(run.state, [
      { id: run.pending?.[0]?.id ?? '', value: true } as Answer,
    ]);
    expect(signedIn.status).toBe('completed');
    expect(JSON.stringify(signedIn.messages)).toContain('you sent Bearer [secret]');
    servers.expireAll();
    servers.behaviour.echoes = true;
    const renewed = await agent.run('Repeat it');
    expect(renewed.status).toBe('completed');
    expect(servers.grants).toContain('refresh_token');
    servers.revokeAll();
    const revoked = await agent.registry.execute('shop_repeat');
    expect(revoked.isError).toBe(true);
    const shown = await shownBy(inspector);
    await inspector.close();
    expect(shown.filter((text) => text.includes('you sent Bearer [secret]')).length).toBeGreaterThan(1);
    written.push(run, signedIn, renewed, revoked, shown);
  }
  expect(warn).toHaveBeenCalled();
  warn.mockRestore();
  const spans = recording.spans.map(({ name, attributes, events, status }) => ({
    name,
    attributes,
    events,
    status,
  }));
  expect(JSON.stringify(spans)).toContain('shop_repeat');
  expect(logged.join()).toContain('shop_fail');
  const recorded = readFileSync(file, 'utf8');
  expect(recorded).toContain('shop_repeat');
  return [...written, spans].map((value) => inspect(value, WHOLE)).concat(logged, recorded, await dump());
}

/** The secrets of a conversation: those that the server issued and those that the client generated. */
function secrets(): readonly string[] {
  const verifiers = servers.received.flatMap((request) =>
    [...request.matchAll(/code_verifier=([^&\s]+)/g)].map(([, verifier = '']) =>
      decodeURIComponent(verifier),
    ),
  );
  expect(verifiers.length).toBeGreaterThan(0);
  expect(servers.issued.length).toBeGreaterThan(4);
  return [...servers.issued, ...verifiers];
}

/** A secret in plain text, in hexadecimal, and in Base64 at any offset of a longer text. */
function formsOf(secret: string): readonly string[] {
  const inBase64 = [0, 1, 2].flatMap((before) => {
    const text = Buffer.from(`${'x'.repeat(before)}${secret}`).toString('base64');
    // The first and last characters depend on the bytes around the secret.
    const sure = text.slice(Math.ceil((before * 4) / 3), Math.floor(((before + secret.length) * 4) / 3) - 1);
    return [sure, sure.replaceAll('+', '-').replaceAll('/', '_')];
  });
  return [secret, encodeURIComponent(secret), Buffer.from(secret).toString('hex'), ...inBase64];
}

function leaks(written: readonly string[]): readonly string[] {
  const forms = secrets().flatMap(formsOf);
  return written
    .filter((text) => forms.some((form) => text.includes(form)))
    .map((text) => text.slice(0, 200));
}

describe('secrets of a sign-in', () => {
  test('do not appear in logs, traces, requests, results or state, nor unencrypted in SQLite files', async () => {
    const store = new SqliteRunStore({ path: join(folder, 'runs.sqlite') });
    const files = async () => {
      store.close();
      return readdirSync(folder).map((name) => readFileSync(join(folder, name), 'latin1'));
    };
    const written = await everythingWritten(store, files);
    expect(leaks(written)).toEqual([]);
    // Proves that the search finds each form.
    const [token = ''] = servers.issued;
    const planted = [
      token,
      `{"a":"${Buffer.from(`Basic ${token}:`).toString('base64')}"}`,
      Buffer.from(token).toString('hex'),
    ];
    for (const text of planted) expect(leaks([...written, text])).toHaveLength(1);
  });

  describePostgres('in PostgreSQL', (service) => {
    const schemas = new TestSchemas(service);

    test('are not stored unencrypted in any table', async () => {
      const schema = schemas.newSchema();
      await using store = new PostgresRunStore({ connectionString: service.url, schema });
      await store.migrate();
      const tables = async () => {
        const { rows } = await schemas.pool.query<{ name: string }>(
          `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname = $1`,
          [schema],
        );
        const dumped = await Promise.all(
          rows.map(({ name }) => schemas.pool.query<{ row: string }>(`SELECT t::text AS row FROM ${name} t`)),
        );
        return dumped.flatMap(({ rows: lines }) => lines.map(({ row }) => row));
      };
      const written = await everythingWritten(store, tables);
      expect(written.join()).toContain('shop_repeat');
      expect(leaks(written)).toEqual([]);
    });
  });
});
