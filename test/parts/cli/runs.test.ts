import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  type Approval,
  answerStoredRun,
  Conversations,
  compensateRun,
  defineTool,
  recoverRuns,
  runToolLoop,
  type ScheduleTiming,
  type ToolLoopConfig,
} from 'toolwright';
import { PostgresRunStore } from 'toolwright/postgres';
import { SqliteRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { describePostgres, type TestService } from '../../services/services.js';
import { TestSchemas } from '../postgres/test-schema.js';
import { runCommand } from './run-command.js';

type Store = SqliteRunStore | PostgresRunStore;

let folder: string;
let store: Store;
/** The value of `--store`. */
let named: string;
let placed: number;

const runs = (...args: readonly string[]) => runCommand(['runs', ...args, '--store', named], folder);

/** A module with one tool. */
const PING = `
  export const ping = {
    name: 'ping', description: 'Ping', parameters: { type: 'object', properties: {} }, execute: () => 'pong',
  };`;

/** A module whose tool has other parameters than that of the runs. */
const OTHER_PLACE = `
  const place = {
    name: 'place', description: 'Place', approval: true, execute: () => 'placed',
    parameters: { type: 'object', properties: { sku: { type: 'number' } } },
  };
  export const config = { provider: { chat() {} }, model: 'm', tools: [place] };`;

/** The value of `--store` for a schema. */
function schemaAt(service: TestService, schema: string): string {
  const url = new URL(service.url);
  url.searchParams.set('schema', schema);
  return url.href;
}

/** A store, and its name for the command. */
interface NamedStore {
  readonly store: Store;
  readonly named: string;
  readonly ready?: Promise<void>;
}

/** The commands over one kind of store. */
function describeRuns(title: string, open: () => NamedStore): void {
  describe(title, () => {
    beforeEach(async () => {
      folder = mkdtempSync(join(tmpdir(), 'toolwright-runs-'));
      const opened = open();
      ({ store, named } = opened);
      placed = 0;
      await opened.ready;
    });

    afterEach(async () => {
      await store.close();
      rmSync(folder, { recursive: true, force: true });
    });

    testRuns();
  });
}

function config(approval: Approval = true): ToolLoopConfig {
  const place = defineTool({
    name: 'place',
    description: 'Place an order',
    parameters: { type: 'object', properties: { sku: { type: 'string' } } },
    approval,
    execute: () => {
      placed += 1;
      return 'placed';
    },
  });
  const calls = ['A1', 'B2'].map((sku) => ({ name: 'place', arguments: { sku } }));
  const provider = new ScriptedProvider([{ content: '', toolCalls: calls }, { content: 'Done' }]);
  return { provider, model: 'm', tools: [place], store, checkpoint: 'step', runId: 'r1' };
}

/** A run with two pending approvals. */
async function suspend(approval?: Approval): Promise<readonly string[]> {
  const { pending = [] } = await runToolLoop(config(approval), [{ role: 'user', content: 'Order' }], {
    owner: 'u1',
  });
  return pending.map(({ id }) => id);
}

function testRuns(): void {
  test('list and show print runs as a table and as JSON', async () => {
    const [first] = await suspend();
    const listed = await runs('list');
    expect(listed).toMatchObject({ code: 0, error: '' });
    expect(listed.out).toMatch(/^run +status +changed\nr1 +suspended +\d{4}-/);
    expect((await runs('list', '--status', 'ended')).out).not.toContain('r1');
    const [row] = (await runs('list', '--json')).out.trim().split('\n');
    expect(JSON.parse(row ?? '')).toMatchObject({ runId: 'r1', status: 'suspended' });
    const shown = await runs('show', 'r1');
    expect(shown.out).toContain('owner: "u1"');
    expect(shown.out).toContain(`waits: ${first} approval place {"sku":"A1"}`);
    expect(JSON.parse((await runs('show', 'r1', '--json')).out)).toMatchObject({
      pending: [{ kind: 'approval' }, { kind: 'approval' }],
      messages: [{ content: 'Order' }],
    });
  });

  test('show counts the final request of a run and its tokens', async () => {
    const usage = { inputTokens: 3, outputTokens: 4, totalTokens: 7 };
    const reply = { content: 'Done', usage };
    const [call] = [{ name: 'place', arguments: { sku: 'A1' } }];
    const provider = new ScriptedProvider([{ content: '', toolCalls: [call], usage }, reply]);
    await runToolLoop({ ...config(false), provider }, [{ role: 'user', content: 'Order' }]);
    expect((await runs('show', 'r1')).out).toContain('r1: ended, 2 requests to m, 4 messages, 1 call\n');
    expect(JSON.parse((await runs('show', 'r1', '--json')).out)).toMatchObject({
      iterations: 2,
      usage: { totalTokens: 14 },
      end: { iterations: 2, usage: { totalTokens: 14 } },
    });
  });

  test('list continues with the next page', async () => {
    for (const runId of ['r1', 'r2', 'r3']) {
      const given = { ...config(), runId };
      await runToolLoop(given, [{ role: 'user', content: 'Order' }]);
    }
    const first = await runs('list', '--limit', '2', '--json');
    const [, after = ''] = /--after '([^']+)'/.exec(first.error) ?? [];
    const rest = await runs('list', '--limit', '2', '--json', '--after', after);
    const ids = `${first.out}${rest.out}`
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).runId);
    expect(ids.toSorted()).toEqual(['r1', 'r2', 'r3']);
    expect(rest.error).toBe('');
  });

  test('answers are stored one by one, and a worker continues after the last', async () => {
    const [first = '', second = ''] = await suspend();
    expect(await runs('answer', 'r1', '--approve')).toMatchObject({
      code: 2,
      error: expect.stringContaining(`choose one of ${first}, ${second} with --to`),
    });
    const one = await runs(
      'answer',
      'r1',
      '--to',
      second,
      '--refuse',
      '--reason',
      'too dear',
      '--by',
      'clerk 7',
    );
    expect(one.out).toBe(`r1: it still waits for ${first}\n`);
    const other = await runs('answer', 'r1', '--to', first, '--approve');
    expect(other.out).toBe('r1: a worker continues it\n');
    expect((await runs('list')).out).toMatch(/r1 +running .* lost/);
    expect(await runs('answer', 'r1', '--approve')).toMatchObject({ code: 1 });
    const { provider: _, ...given } = config();
    const provider = new ScriptedProvider([{ content: 'Done' }]);
    const [recovered] = await recoverRuns({ store, config: { ...given, provider } });
    expect(recovered).toMatchObject({
      runId: 'r1',
      result: {
        status: 'completed',
        toolCalls: [{ status: 'success' }, { status: 'refused', answeredBy: 'clerk 7' }],
      },
    });
    expect(placed).toBe(1);
    expect((await runs('show', 'r1')).out).toContain('ended: completed');
  });

  test('an approval with edited arguments is validated by the tools of the module', async () => {
    const [first = '', second = ''] = await suspend();
    const edit = (args: string, ...more: readonly string[]) =>
      runs('answer', 'r1', '--to', first, '--approve', '--arguments', args, ...more);
    expect(await edit('{"sku":"B2"}')).toMatchObject({
      code: 2,
      error: expect.stringContaining('--module dist/worker.js'),
    });
    expect(await runs('answer', 'r1', '--to', first, '--refuse', '--arguments', '{}')).toMatchObject({
      code: 2,
      error: expect.stringContaining('--arguments requires --approve'),
    });
    writeFileSync(
      join(folder, 'worker.mjs'),
      `const place = {
        name: 'place', description: 'Place', approval: true, execute: () => 'placed',
        parameters: { type: 'object', properties: { sku: { type: 'string' } }, required: ['sku'] },
      };
      export const config = { provider: { chat() {} }, model: 'm', tools: [place] };`,
    );
    const module = ['--module', 'worker.mjs', '--by', 'clerk 7'];
    expect(await edit('[]', ...module)).toMatchObject({ code: 2 });
    expect(await edit('{"sku":2}', ...module)).toMatchObject({
      code: 1,
      error: expect.stringContaining('sku: must be string'),
    });
    expect(await edit('{"sku":"B2"}', ...module)).toMatchObject({ code: 0, error: '' });
    await runs('answer', 'r1', '--to', second, '--refuse');
    const { provider: _, ...given } = config();
    const provider = new ScriptedProvider([{ content: 'Done' }]);
    const [recovered] = await recoverRuns({ store, config: { ...given, provider } });
    expect(recovered).toMatchObject({
      result: {
        toolCalls: [
          {
            status: 'success',
            arguments: { sku: 'B2' },
            edited: { original: { sku: 'A1' }, editedBy: 'clerk 7' },
          },
          { status: 'refused' },
        ],
      },
    });
  });

  test('options without an effect on an answer are refused, and nothing is answered', async () => {
    const [first = ''] = await suspend();
    for (const [more, problem] of [
      [['--approve', '--reason', 'it is cheap'], '--reason requires --refuse'],
      [['--refuse', '--module', 'worker.mjs'], '--module requires --approve, --done or --not-done'],
    ] as const)
      expect(await runs('answer', 'r1', '--to', first, ...more)).toEqual({
        code: 2,
        out: '',
        error: `toolwright: ${problem}\n`,
      });
    expect(JSON.parse((await runs('show', 'r1', '--json')).out).pending).toHaveLength(2);
  });

  test('an approval can be remembered within the limits of the module’s tool', async () => {
    const [first = '', second = ''] = await suspend({ remember: { scopes: ['user'], by: [] } });
    const stand = (scope: string, ...more: readonly string[]) =>
      runs('answer', 'r1', '--to', first, '--approve', '--remember', scope, ...more);
    expect(await stand('user')).toMatchObject({
      code: 2,
      error: expect.stringContaining(
        '--remember requires a module whose tool checks it: give --module dist/worker.js',
      ),
    });
    expect(await stand('ever')).toMatchObject({
      code: 2,
      error: expect.stringContaining('run, conversation'),
    });
    expect(await stand('user', '--until', 'soon')).toMatchObject({ code: 2 });
    expect(await runs('answer', 'r1', '--to', first, '--approve', '--until', '2040-01-01')).toMatchObject({
      code: 2,
      error: expect.stringContaining('--until requires --remember'),
    });
    writeFileSync(
      join(folder, 'worker.mjs'),
      `const place = {
        name: 'place', description: 'Place an order', execute: () => 'placed',
        approval: { remember: { scopes: ['user'], by: [] } },
        parameters: { type: 'object', properties: { sku: { type: 'string' } } },
      };
      export const config = { provider: { chat() {} }, model: 'm', tools: [place] };`,
    );
    const module = ['--module', 'worker.mjs', '--by', 'clerk 7'];
    expect(await stand('run', ...module)).toMatchObject({ code: 1 });
    const answered = await stand('user', '--until', '2040-01-01', ...module);
    expect(answered).toMatchObject({ code: 0, error: '' });
    expect(answered.out).not.toContain(second);
    expect(JSON.parse((await runs('approvals', '--json')).out)).toMatchObject({
      tool: 'place',
      scope: 'user',
      answeredBy: 'clerk 7',
      expiresAt: Date.parse('2040-01-01'),
    });
  });

  test('approvals lists remembered approvals, and revoke removes one', async () => {
    const standing = { tool: 'place', pattern: [['sku', 'A1']], scope: 'user' as const, createdAt: 1 };
    await store.approvals.addApproval({ ...standing, id: 'x1', owner: 'u1', answeredBy: 'clerk 7' });
    const listed = await runs('approvals');
    expect(listed).toMatchObject({ code: 0, error: '' });
    expect(listed.out).toMatch(/x1 +place +user +"u1" +\[\["sku","A1"\]\] +"clerk 7"/);
    expect(JSON.parse((await runs('approvals', '--json')).out)).toMatchObject({ id: 'x1' });
    expect(await runs('revoke')).toMatchObject({ code: 2 });
    expect(await runs('revoke', 'x1')).toMatchObject({ code: 0, out: 'x1: revoked\n' });
    expect(await runs('revoke', 'x1')).toMatchObject({ code: 1, out: 'x1: there is no such approval\n' });
    expect(await store.approvals.listApprovals()).toEqual([]);
  });

  test('schedules lists scheduled prompts, and unschedule cancels one', async () => {
    const schedule = {
      conversationId: 'c1',
      text: 'Look\u001b[2J',
      dueAt: Date.UTC(2030, 0, 1),
      createdAt: 1,
    };
    const add = (id: string, timing: ScheduleTiming, owner?: unknown) =>
      store.schedules.addSchedule({ ...schedule, id, timing, ...(owner === undefined ? {} : { owner }) });
    await add('s1', { kind: 'once' }, { user: 'u1' });
    await add('s2', { kind: 'every', everyMs: 60_000 });
    await add('s3', { kind: 'cron', cron: '0 9 * * *', timeZone: 'Europe/Vienna' });
    const listed = await runs('schedules');
    expect(listed).toMatchObject({ code: 0, error: '' });
    expect(listed.out).toMatch(/s1 +c1 +\{"user":"u1"\} +2030-01-01T00:00:00.000Z +"Look\\u001b\[2J"/);
    expect(listed.out).toMatch(/s2 .* every 60000 ms /);
    expect(listed.out).toMatch(/s3 .* 0 9 \* \* \* Europe\/Vienna /);
    const [first = ''] = (await runs('schedules', '--json')).out.split('\n');
    expect(JSON.parse(first)).toMatchObject({ id: 's1', owner: { user: 'u1' } });
    expect(await runs('unschedule')).toMatchObject({ code: 2 });
    expect(await runs('unschedule', 's1')).toMatchObject({ code: 0, out: 's1: cancelled\n' });
    expect(await runs('unschedule', 's1')).toMatchObject({ code: 1, out: 's1: there is no such schedule\n' });
  });

  test('toolwright runs escapes control characters and line breaks in texts of a model', async () => {
    await suspend({ title: 'Order\nwaits: nothing\u001b[2J' });
    const { out } = await runs('show', 'r1');
    expect(out.match(/^waits: /gm)).toHaveLength(2);
    expect(out).toContain('Order\\nwaits: nothing\\u001b[2J');
    const schedule = { text: 'Look\u009b2J', timing: { kind: 'once' as const }, dueAt: 1, createdAt: 1 };
    await store.schedules.addSchedule({ ...schedule, id: 's1', conversationId: 'c\n\u001b[2J' });
    const listed = await runs('schedules');
    expect(listed.out.trimEnd().split('\n')).toHaveLength(2);
    expect(listed.out + out).not.toMatch(/(?!\n)\p{Cc}/u);
  });

  test('show prints the calls of an ended run, with results and compensations', async () => {
    const calls = ['A1', 'B2'].map((sku) => ({ name: 'place', arguments: { sku } }));
    const usage = { inputTokens: 3, outputTokens: 4, totalTokens: 7 };
    const provider = new ScriptedProvider([
      { content: '', toolCalls: calls, usage },
      { content: 'Both are\nplaced\u001b[2J' },
    ]);
    const place = defineTool({
      name: 'place',
      description: 'Place an order',
      parameters: { type: 'object', properties: { sku: { type: 'string' } } },
      execute: ({ sku }) => (sku === 'A1' ? 'x'.repeat(500) : Promise.reject(new Error('sold out'))),
      compensate: () => 'taken back',
    });
    const given = { ...config(), provider, tools: [place] };
    await runToolLoop(given, [{ role: 'user', content: 'Order' }]);
    await compensateRun(store, 'r1', { tools: [place] });
    const { out } = await runs('show', 'r1');
    expect(out.trimEnd().split('\n')).toEqual([
      'r1: ended, 2 requests to m, 5 messages, 2 calls',
      'tokens: 7',
      'ended: completed',
      `call: place success {"sku":"A1"}: ${'x'.repeat(120)}…`,
      'undone: place: taken back',
      'call: place error {"sku":"B2"}: sold out',
      'reply: Both are\\nplaced\\u001b[2J',
    ]);
    expect(JSON.parse((await runs('show', 'r1', '--json')).out)).toMatchObject({
      toolCalls: [{ status: 'success' }, { status: 'error' }],
      compensated: [{ isError: false, text: 'taken back' }],
    });
  });

  test('a long id shifts only its own row, and line feeds in an id add no rows', async () => {
    const long = 'x'.repeat(300);
    for (const runId of [long, 'r\nr9  ended', 'r2'])
      await runToolLoop({ ...config(), runId }, [{ role: 'user', content: 'Order' }]);
    const lines = (await runs('list')).out.trimEnd().split('\n');
    expect(lines).toHaveLength(4);
    expect(lines.find((line) => line.startsWith('r2'))).toMatch(/^r2 {11,}suspended {2}\d{4}-\S+$/);
    expect(lines.find((line) => line.startsWith(long))).toMatch(/^x{300} {2}suspended {2}/);
    for (const args of [
      ['show', 'r\nr9  ended'],
      ['cancel', 'r\nr9  ended'],
      ['list', '--json'],
    ])
      expect((await runs(...args)).out).not.toMatch(/^r9/m);
    const { error } = await runs('show', 'r\n\u009br9');
    expect(error).toBe("toolwright: the store has no run 'r\\n\\u009br9'\n");
  });

  test('all validation errors of edited arguments are reported in one line', async () => {
    const [first = ''] = await suspend();
    writeFileSync(
      join(folder, 'worker.mjs'),
      `process.emitWarning('for its author', { type: 'ToolwrightWarning', code: 'TOOLWRIGHT_OPTIONALITY' });
      process.emitWarning('for everybody');
      const place = {
        name: 'place', description: 'Place', approval: true, execute: () => 'placed',
        parameters: {
          type: 'object',
          properties: { sku: { type: 'string' }, count: { type: 'integer' } },
          required: ['sku', 'count'],
        },
      };
      export const config = { provider: { chat() {} }, model: 'm', tools: [place] };`,
    );
    const warned: string[] = [];
    const { emitWarning } = process;
    process.emitWarning = ((message: string) => warned.push(message)) as typeof emitWarning;
    try {
      const edited = ['--approve', '--arguments', '{"sku":2,"count":"many"}', '--module', 'worker.mjs'];
      const { code, error } = await runs('answer', 'r1', '--to', first, ...edited);
      expect({ code, error }).toEqual({
        code: 1,
        error: expect.stringMatching(/^[^\n]*sku: must be string[^\n]*; count: must be integer[^\n]*\n$/),
      });
    } finally {
      process.emitWarning = emitWarning;
    }
    expect(warned).toEqual(['for everybody']);
  });

  test('an empty list of answers is refused, and the run stays suspended', async () => {
    const [first = ''] = await suspend();
    const refused = { code: 514, message: expect.stringMatching(/^No answer to run 'r1' was given\. /) };
    await expect(answerStoredRun({ store, runId: 'r1' }, [], { owner: 'u1' })).rejects.toMatchObject(refused);
    expect((await store.read('r1'))?.state).toMatchObject({ pending: [{ id: first }, {}] });
  });

  const answer = (run: string, to: string, ...more: readonly string[]) =>
    runs('answer', run, '--to', to, ...more);

  /** For answers at the same time: how many were accepted, and the errors of the others. */
  async function both(...asked: readonly ReturnType<typeof runs>[]) {
    const said = await Promise.all(asked);
    const taken = said.filter(({ code }) => code === 0);
    const refused = said.filter(({ code }) => code !== 0);
    return { taken: taken.length, refused: refused.map(({ code, error }) => `${code} ${error}`) };
  }

  test('a second answer is refused with the name of the user who answered first', async () => {
    const [first = '', second = ''] = await suspend();
    await answer('r1', first, '--refuse', '--by', 'clerk 7');
    const late = await answer('r1', first, '--approve', '--by', 'clerk 8');
    expect(late).toMatchObject({ code: 1, out: '' });
    expect(late.error).toMatch(
      /^toolwright: r1 does not wait for '\S+', but for '\S+': it was already answered, last by "clerk 7"\n$/,
    );
    await answer('r1', second, '--refuse', '--by', 'clerk 9');
    for (const more of [['--approve'], ['--to', second, '--approve']])
      expect(await runs('answer', 'r1', ...more)).toMatchObject({
        code: 1,
        error: 'toolwright: r1 does not wait for an answer: it was already answered, last by "clerk 9"\n',
      });
    const given = [{ id: first, approved: true }];
    await expect(answerStoredRun({ store, runId: 'r1' }, given, { owner: 'u1' })).rejects.toMatchObject({
      code: 527,
      message: expect.stringContaining("Run 'r1' is not suspended: it was already answered, or "),
    });
    const provider = new ScriptedProvider([{ content: 'Done' }]);
    await recoverRuns({ store, config: { ...config(), provider } });
    expect(await answer('r1', first, '--approve')).toMatchObject({
      code: 1,
      error:
        'toolwright: r1 does not wait for an answer: it has ended (completed); it was already answered, last by "clerk 9"\n',
    });
    expect(placed).toBe(0);
  });

  test('of two answers to a question at once, one is refused; answers to two questions are both accepted', async () => {
    const [first = '', second = ''] = await suspend();
    const same = await both(
      answer('r1', first, '--approve', '--by', 'clerk 7'),
      answer('r1', first, '--refuse', '--by', 'clerk 8'),
    );
    expect(same).toEqual({ taken: 1, refused: [expect.stringMatching(/^1 [^\n]+"clerk [78]"\n$/)] });
    const { provider: _, ...given } = config();
    await runToolLoop({ ...config(), runId: 'r2' }, [{ role: 'user', content: 'Order' }]);
    const { pending } = JSON.parse((await runs('show', 'r2', '--json')).out);
    const [one = '', other = ''] = pending.map(({ id }: { readonly id: string }) => id);
    expect(await both(answer('r2', one, '--refuse'), answer('r2', other, '--refuse'))).toMatchObject({
      taken: 2,
    });
    await answer('r1', second, '--refuse');
    const provider = new ScriptedProvider([{ content: 'Done' }, { content: 'Done' }]);
    expect(await recoverRuns({ store, config: { ...given, provider } })).toHaveLength(2);
    expect(placed).toBeLessThan(2);
  });

  test('of two answers to a conversation at once, one is refused with the reason', async () => {
    const { runId: _, store: __, checkpoint: ___, ...given } = config();
    const asking = new Conversations({ store, config: given, pollMs: 20 });
    await asking.prompt('c1', 'Order');
    const { pending = [] } = (await asking.idle('c1')) ?? {};
    await asking.close();
    const [first = '', second = ''] = pending.map(({ id }) => id);
    const said = await both(
      answer('c1.1', first, '--approve', '--by', 'clerk 7'),
      answer('c1.1', first, '--refuse', '--by', 'clerk 8'),
    );
    const told =
      /^1 toolwright: c1\.1 is not waiting for an answer to '\S+': it was already answered, by "clerk [78]"\n$/;
    expect(said).toEqual({ taken: 1, refused: [expect.stringMatching(told)] });
    expect((await asking.snapshot('c1'))?.inbox).toHaveLength(1);
    const third = await answer('c1.1', first, '--refuse', '--by', 'clerk 9');
    expect(`${third.code} ${third.error}`).toMatch(told);
    await asking.answer('c1', [{ id: second, approved: false }], { answeredBy: 'the shop' });
    const fourth = await answer('c1.1', second, '--approve');
    expect(fourth.error).toContain('it was already answered, by "the shop"');
    const answering = new Conversations({ store, config: given, pollMs: 20 });
    for await (const { event } of answering.events('c1')) if (event.type === 'turn-end') break;
    await answering.close();
    expect((await answer('c1.1', first, '--approve')).error).toContain(
      'c1.1 does not wait for an answer: it has ended (completed); it was already answered',
    );
    expect(placed).toBeLessThan(2);
  });

  test('an answer that a conversation refused can be given again', async () => {
    const { runId: _, store: __, checkpoint: ___, ...given } = config();
    const conversations = new Conversations({ store, config: given, pollMs: 20 });
    await conversations.prompt('c1', 'Order');
    const { pending = [] } = (await conversations.idle('c1')) ?? {};
    await conversations.close();
    const [first = '', second = ''] = pending.map(({ id }) => id);
    writeFileSync(join(folder, 'worker.mjs'), OTHER_PLACE);
    const edited = ['--approve', '--arguments', '{"sku":7}', '--module', 'worker.mjs'];
    expect(await answer('c1.1', first, ...edited)).toMatchObject({ code: 0, error: '' });
    const taking = new Conversations({ store, config: given, pollMs: 20 });
    for await (const { event } of taking.events('c1')) if (event.type === 'answers-refused') break;
    expect(await answer('c1.1', first, '--approve')).toMatchObject({ code: 0, error: '' });
    expect(await answer('c1.1', second, '--refuse')).toMatchObject({ code: 0, error: '' });
    for await (const { event } of taking.events('c1')) if (event.type === 'turn-end') break;
    await taking.close();
    expect(placed).toBe(1);
  });

  test('an answer to a conversation enters its inbox', async () => {
    const { runId: _, store: __, checkpoint: ___, ...given } = config();
    const conversations = new Conversations({ store, config: given, pollMs: 20 });
    await conversations.prompt('c1', 'Order', { owner: { user: 'u1' } });
    const view = await conversations.idle('c1');
    const wrong = ['--to', view?.pending[0]?.id ?? '', '--value', '99'];
    expect(await runs('answer', 'c1.1', ...wrong)).toMatchObject({
      code: 1,
      error: expect.stringMatching(/^[^\n]*the answer to an approval must be[^\n]*\n$/),
    });
    const edited = ['--to', view?.pending[0]?.id ?? '', '--approve', '--arguments', '{"sku":"C3"}'];
    expect((await runs('answer', 'c1.1', ...edited)).error).toContain('--module');
    expect(await conversations.snapshot('c1')).toMatchObject({ inbox: [], pending: { length: 2 } });
    for (const { id } of view?.pending ?? []) {
      const answered = await runs('answer', 'c1.1', '--to', id, '--approve');
      expect(answered).toMatchObject({ code: 0, error: '' });
    }
    const events = conversations.events('c1');
    for await (const { event } of events) if (event.type === 'turn-end') break;
    expect(placed).toBe(2);
    expect(await conversations.idle('c1')).toMatchObject({ status: 'idle', messages: { length: 5 } });
    await conversations.close();
  });

  test('cancel ends a run once, with a valid history', async () => {
    await suspend();
    expect(await runs('cancel', 'r1', '--reason', 'the shop is closed')).toMatchObject({ code: 0 });
    expect(await runs('cancel', 'r1')).toMatchObject({ code: 1, out: 'r1: it had already ended\n' });
    expect((await runs('show', 'r1')).out).toContain(
      'ended: aborted (The run was aborted: the shop is closed)',
    );
    const shown = JSON.parse((await runs('show', 'r1', '--json')).out);
    expect(shown).toMatchObject({ status: 'ended', end: { status: 'aborted' } });
    expect(shown.messages.map(({ role }: { readonly role: string }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'tool',
    ]);
    expect(placed).toBe(0);
  });

  test.each([
    ['at its next write', 60_000, 'placed'],
    ['at the renewal of its lease', 3_000, undefined],
  ])('cancelling a run in another process ends it there %s', async (_, leaseMs, last) => {
    const begun = Promise.withResolvers<void>();
    const answered = Promise.withResolvers<string>();
    const hold = defineTool({
      name: 'hold',
      description: 'Hold',
      execute: (_args, { signal }) => {
        begun.resolve();
        signal?.addEventListener('abort', () => answered.resolve('aborted'));
        return answered.promise;
      },
    });
    const provider = new ScriptedProvider([{ content: '', toolCalls: [{ name: 'hold', arguments: {} }] }]);
    const given = { ...config(), provider, tools: [hold], leaseMs };
    const running = runToolLoop(given, [{ role: 'user', content: 'Hold' }]).catch((error: unknown) => error);
    await begun.promise;
    await runs('cancel', 'r1', '--reason', 'the shop is closed');
    if (last !== undefined) answered.resolve(last);
    const told = await running;
    expect(told).toMatchObject({ code: 517 });
    expect(String(told)).toContain(
      "Run 'r1' has ended (aborted) in another process. The run was aborted: the shop is closed",
    );
  });

  test('a NestJS application validates edited arguments, and recovers its runs for their owners', async () => {
    const [first = '', second = ''] = await suspend();
    const module = join(import.meta.dirname, 'fixtures', 'nest-operated.ts');
    const edit = (sku: string) =>
      runs(
        'answer',
        'r1',
        '--to',
        first,
        '--approve',
        '--arguments',
        JSON.stringify({ sku }),
        '--module',
        module,
      );
    const refused = await edit('D4');
    expect(refused).toMatchObject({ code: 1, error: expect.stringContaining('sku: must be one of') });
    expect(await edit('C3')).toMatchObject({ code: 0, error: '' });
    await runs('answer', 'r1', '--to', second, '--approve');
    const events = Reflect.get(globalThis, 'nestOperatedEvents') as string[];
    expect(events.splice(0)).toEqual(['ended', 'ended']);
    expect(await runs('recover', module)).toEqual({ code: 0, out: 'r1: completed\n', error: '' });
    expect(events.splice(0)).toEqual(['placed C3', 'placed B2', 'ended']);
  });

  test('recover continues lost runs with the config of a module', async () => {
    const ids = await suspend();
    for (const id of ids) await runs('answer', 'r1', '--to', id, '--refuse');
    const module = `
      export const config = {
        provider: { chat: async () => ({ content: 'Well then', toolCalls: [], finishReason: 'stop' }) },
        tools: [],
      };`;
    writeFileSync(join(folder, 'worker.mjs'), module);
    expect(await runs('recover', 'worker.mjs')).toEqual({ code: 0, out: 'r1: completed\n', error: '' });
    expect(await runs('recover', 'worker.mjs')).toEqual({ code: 0, out: '', error: '' });
  });

  test.each([
    [['list', '--status', 'odd'], '--status must be one of running, suspended, ended'],
    [['list', '--limit', '0'], '--limit must be a whole number'],
    [['list', '--limit', '1001'], "--limit must be a whole number from 1 to 1000, not '1001'"],
    [['show'], 'the id of the run is missing'],
    [['show', 'r9'], "the store has no run 'r9'"],
    [['cancel', 'r9'], "The store has no run 'r9'"],
    [['answer', 'r9', '--approve'], "the store has no run 'r9'"],
    [['odd'], 'runs needs one of list, show, answer, cancel, recover'],
    [['recover'], 'the module is missing: toolwright runs recover <module>'],
    [['show', ''], 'the id of the run is missing: toolwright runs show <run>'],
    [['list', 'r1'], "runs list does not take the argument 'r1'"],
    [['show', 'r1', 'r2'], "runs show does not take the argument 'r2'"],
    [['list', '--approve'], '--approve can be used with runs answer, not with runs list'],
    [
      ['answer', 'r1', '--approve', '--json'],
      '--json can be used with runs list, show, approvals, schedules, not with',
    ],
    [['show', 'r1', '--reason', 'why'], '--reason can be used with runs answer, cancel, not with runs show'],
    [['schedules', '--limit', '5'], '--limit can be used with runs list, not with runs schedules'],
    [['cancel', 'r1', '--by', 'me'], '--by can be used with runs answer, not with runs cancel'],
    [['cancel', 'r1', '--on-unknown', 'ask'], '--on-unknown can be used with runs recover'],
    [['answer', 'r1', '--approve', '--by', ''], '--by is empty'],
    [['cancel', 'r1', '--reason', ''], '--reason is empty'],
    [['list', '--after', ''], '--after is empty'],
    [['recover', 'nowhere.mjs'], 'there is no module nowhere.mjs'],
  ])('%j is reported in one line', async (args, message) => {
    const { code, out, error } = await runs(...args);
    expect(error).toContain(message);
    expect(error).toMatch(/^toolwright: [^\n]+\n$/);
    expect({ isWrong: code > 0, out }).toEqual({ isWrong: true, out: '' });
  });
}

describeRuns('toolwright runs over SQLite', () => ({
  store: new SqliteRunStore({ path: join(folder, 'runs.sqlite') }),
  named: 'runs.sqlite',
}));

describePostgres('toolwright runs', (service) => {
  const schemas = new TestSchemas(service);
  test('toolwright runs over PostgreSQL reports tables of a newer version in one line', async () => {
    const schema = schemas.newSchema();
    await using made = new PostgresRunStore({ connectionString: service.url, schema });
    await made.migrate();
    await schemas.pool.query(`INSERT INTO ${schema}.migrations (version) VALUES (999)`);
    expect(await runCommand(['runs', 'list', '--store', schemaAt(service, schema)], tmpdir())).toEqual({
      code: 1,
      out: '',
      error: expect.stringMatching(/^toolwright: --store: The schema '\w+' has version 999, [^\n]+\n$/),
    });
  });

  test.each([
    ['runs', 'list'],
    ['runs', 'show', 'r1'],
    ['runs', 'recover', 'worker.mjs'],
    ['inspect', 'tools.mjs'],
  ])('toolwright %s %s creates no missing schema in PostgreSQL, and reports what to do', async (...args) => {
    folder = mkdtempSync(join(tmpdir(), 'toolwright-runs-'));
    writeFileSync(join(folder, 'tools.mjs'), PING);
    const schema = schemas.newSchema();
    const ask = (name: string) => runCommand([...args, '--store', schemaAt(service, name)], folder);
    expect(await ask(schema)).toEqual({
      code: 1,
      out: '',
      error: expect.stringMatching(
        /^toolwright: --store: There is no schema '\w+' in the database: [^\n]*\?schema=[^\n]+\n$/,
      ),
    });
    const find = () => schemas.pool.query('SELECT to_regnamespace($1) AS found', [schema]);
    expect((await find()).rows).toEqual([{ found: null }]);
    await schemas.pool.query(`CREATE SCHEMA ${schema}`);
    expect(await ask(schema)).toMatchObject({
      code: 1,
      error: expect.stringContaining(`The schema '${schema}' has no tables of toolwright`),
    });
    const { rows } = await schemas.pool.query('SELECT 1 FROM pg_tables WHERE schemaname = $1', [schema]);
    expect(rows).toEqual([]);
    rmSync(folder, { recursive: true });
  });

  test('toolwright runs does not migrate tables of an older version, and reports what to do', async () => {
    const schema = schemas.newSchema();
    await using made = new PostgresRunStore({ connectionString: service.url, schema });
    await made.migrate();
    const version = async () => {
      const { rows } = await schemas.pool.query(`SELECT max(version) AS version FROM ${schema}.migrations`);
      return Number(rows[0].version);
    };
    const latest = await version();
    await schemas.pool.query(`DELETE FROM ${schema}.migrations WHERE version = ${latest}`);
    expect(await runCommand(['runs', 'list', '--store', schemaAt(service, schema)], tmpdir())).toEqual({
      code: 1,
      out: '',
      error: expect.stringMatching(
        new RegExp(
          `^toolwright: --store: The schema '${schema}' has version ${latest - 1}, [^\\n]+ needs ${latest}: start a worker [^\\n]+\\n$`,
        ),
      ),
    });
    expect(await version()).toBe(latest - 1);
  });

  describeRuns('toolwright runs over PostgreSQL', () => {
    const schema = schemas.newSchema();
    const store = new PostgresRunStore({ connectionString: service.url, schema });
    return { store, named: schemaAt(service, schema), ready: store.migrate() };
  });
});

test('toolwright runs over SQLite reports tables of a newer version in one line', async () => {
  folder = mkdtempSync(join(tmpdir(), 'toolwright-runs-'));
  const path = join(folder, 'runs.sqlite');
  new SqliteRunStore({ path }).close();
  using database = new DatabaseSync(path);
  database.exec('UPDATE toolwright_schemas SET version = 999');
  expect(await runCommand(['runs', 'list', '--store', 'runs.sqlite'], folder)).toEqual({
    code: 1,
    out: '',
    error: expect.stringMatching(/^toolwright: --store: [^\n]+ has version 999, [^\n]+\n$/),
  });
  rmSync(folder, { recursive: true });
});

test('toolwright runs creates no tables in another program’s SQLite file, and does not migrate old ones', async () => {
  folder = mkdtempSync(join(tmpdir(), 'toolwright-runs-'));
  const path = join(folder, 'shop.sqlite');
  const ask = () => runCommand(['runs', 'list', '--store', 'shop.sqlite'], folder);
  const refused = (why: string) => ({ code: 1, out: '', error: `toolwright: --store: ${why}\n` });
  const first = new DatabaseSync(path);
  first.exec('CREATE TABLE orders (id INTEGER PRIMARY KEY)');
  first.close();
  const before = readFileSync(path);
  expect(await ask()).toEqual(
    refused(
      `'${path}' has no tables of toolwright: name the file of the application, or first start a worker or the application, which creates them.`,
    ),
  );
  expect(readFileSync(path).equals(before)).toBe(true);
  writeFileSync(join(folder, 'text.sqlite'), 'no database, but some text of an operator'.repeat(50));
  const text = await runCommand(['runs', 'list', '--store', 'text.sqlite'], folder);
  expect(text.error).toMatch(/^toolwright: --store: Cannot read the SQLite file '[^\n]+': [^\n]+\n$/);
  new SqliteRunStore({ path }).close();
  using database = new DatabaseSync(path);
  database.exec('UPDATE toolwright_schemas SET version = 2');
  expect(await ask()).toEqual(
    refused(
      `The schema of '${path}' has version 2, and this version of toolwright needs 4: start a worker or the application with this version, which migrates the tables, or use the version of toolwright that created them.`,
    ),
  );
  expect(database.prepare('SELECT version FROM toolwright_schemas').all()).toEqual([{ version: 2 }]);
  rmSync(folder, { recursive: true });
});

test('toolwright runs --help lists every option, and toolwright --help stays short', async () => {
  const { code, out } = await runCommand(['runs', '--help'], tmpdir());
  expect(code).toBe(0);
  const told = new Set(out.match(/--[a-z-]+/g));
  const options =
    'store status limit after json to approve refuse arguments remember until module value result done not-done reason by on-unknown';
  expect([...told].toSorted()).toEqual(
    options
      .split(' ')
      .map((option) => `--${option}`)
      .toSorted(),
  );
  expect(out).toMatch(/^ {2}--by name +answer: who answers, [^\n]+$/m);
  expect((await runCommand(['--help'], tmpdir())).out).not.toContain('--on-unknown');
});

test('a missing --store and a store that does not exist are reported in one line', async () => {
  folder = mkdtempSync(join(tmpdir(), 'toolwright-runs-'));
  expect(await runCommand(['runs', 'list'], folder)).toMatchObject({
    code: 2,
    error: expect.stringContaining('--store is missing'),
  });
  expect(await runCommand(['runs', 'list', '--store', 'none.sqlite'], folder)).toMatchObject({
    code: 1,
    error: expect.stringContaining('none.sqlite does not exist'),
  });
  expect(await runCommand(['runs', 'list', '--store', 'postgrs://127.0.0.1/shop'], folder)).toMatchObject({
    code: 2,
    error: expect.stringMatching(/postgrs:\/\/… is not supported: give postgres:\/\/…, or the path[^\n]+\n$/),
  });
  for (const [where, problem] of [
    ['//nobody@127.0.0.1:1/none?schema=My', "schema is 'My'"],
    ['//nobody@127.0.0.1:1/none', 'connect ECONNREFUSED 127.0.0.1:1 (PostgreSQL at 127.0.0.1:1/none)'],
    ['//u:hidden@localhost:1/none?sslmode=disable', ' (PostgreSQL at localhost:1/none)'],
    ['//u:hidden@no-such-host.invalid/d', ' (PostgreSQL at no-such-host.invalid/d)'],
    [
      '//nobody@127.0.0.1:port/none',
      '--store has a port that is not a number: postgres://user:password@host:5432/database',
    ],
    ['//u:hidden@127.0.0.1:99999/none', '--store has the port 99999; the highest port is 65535'],
    ['//u:hid#den@127.0.0.1/none', "--store has a '#' before its host: in a password, '#' is written %23"],
    [
      '//nobody@127.0.0.1:1/none?sslmode=disable&schma=shop',
      '--store has the unknown parameter ?schma=: did you mean ?schema=',
    ],
    ['/127.0.0.1/none', 'postgres:/… is not supported: give postgres://…, or the path'],
    ['//nobody@127.0.0.1:1/none?schema=%zz', "schema is '%zz'"],
    ['//hello there', '--store is not a valid URL'],
  ]) {
    const { code, error } = await runCommand(['runs', 'list', '--store', `postgres:${where}`], folder);
    expect(code).toBeGreaterThan(0);
    expect(error).toContain(problem);
    expect(error).toMatch(/^toolwright: [^\n]+\n$/);
    expect(error).not.toMatch(/hid#?den/);
  }
  expect(await runCommand(['runs', 'list', '--store', ''], folder)).toMatchObject({
    code: 2,
    error: expect.stringContaining('--store is empty: give postgres://user@host'),
  });
  expect(await runCommand(['runs', 'list', '--store', '.'], folder)).toEqual({
    code: 2,
    out: '',
    error: `toolwright: --store: ${folder} is a folder: give the path of the store’s file in it\n`,
  });
  rmSync(folder, { recursive: true });
});
