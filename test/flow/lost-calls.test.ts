import { describe, expect, test } from '@jest/globals';
import {
  type Answer,
  answerStoredRun,
  cancelRun,
  defineTool,
  type Effect,
  foldRun,
  type Hooks,
  type JsonSchema,
  type LLMProvider,
  MemoryJobEngine,
  type RecoverOptions,
  recoverRuns,
  resumeStoredRun,
  runToolLoop,
  type ToolDefinition,
  ToolRegistry,
} from 'toolwright';
import { MemoryRunStore } from 'toolwright/stores';

const LEASE = 60_000;
const NEVER = new Promise<never>(() => {});

/** The version of a tool in the recovering process. */
interface Version extends Partial<ToolDefinition> {
  readonly requires?: readonly string[];
  readonly urgent?: JsonSchema;
  readonly hooks?: readonly Hooks[];
  /** Whether the engine of a background tool belongs to the registry or, by default, to the run. */
  readonly engineOf?: 'registry';
}

/** A run whose process dies during a call of `pay`, and which is recovered with another version of the tool. */
class LostCall {
  now = 1_700_000_000_000;
  readonly store = new MemoryRunStore({ now: () => this.now });
  /** The keys of the payments, and of the parts inside `once`, in order. */
  readonly paid: string[] = [];
  readonly parts: string[] = [];
  readonly asked: Effect[] = [];
  /** An engine for background tools, without a worker. */
  readonly engine = new MemoryJobEngine();
  readonly #provider: LLMProvider;
  #isDead = true;
  #beginPaying = (): void => {};
  readonly #isPaying = new Promise<void>((resolve) => {
    this.#beginPaying = resolve;
  });

  constructor(args: unknown = { to: 'ann' }, names: readonly string[] = ['pay']) {
    const calls = names.map((name, index) => ({ id: `c${index + 1}`, name, arguments: args as object }));
    this.#provider = {
      chat: async ({ messages }) => {
        const toolCalls = messages.length === 1 ? calls : [];
        return { content: 'Done', toolCalls: toolCalls as never, finishReason: 'stop' };
      },
    };
  }

  tool({
    requires = [],
    urgent,
    name = 'pay',
    hooks: _,
    engineOf: __,
    ...more
  }: Version = {}): ToolDefinition {
    const text = { type: 'string' } as const;
    const properties = { to: text, reference: text, ...(urgent ? { urgent } : {}) };
    return defineTool({
      description: 'Pays',
      ...more,
      name,
      parameters: { type: 'object', properties, required: [...requires] },
      execute: async (_args, context) => {
        await context.once('part', ({ idempotencyKey }) => this.parts.push(idempotencyKey));
        this.paid.push(context.idempotencyKey);
        this.#beginPaying();
        return this.#isDead ? NEVER : 'paid now';
      },
    });
  }

  /** A `reconcile` that returns this value. */
  reconcile(known: unknown): Pick<ToolDefinition, 'reconcile'> {
    return {
      reconcile: (effect) => {
        this.asked.push(effect);
        return known as never;
      },
    };
  }

  /** Starts the run and dies during the call, after its approval if it needs one. */
  async die(version?: Version, approval?: object, isDying = this.#isPaying): Promise<void> {
    const { store } = this;
    const config = { ...this.#config(version), store, runId: 'r', leaseMs: LEASE };
    const run = runToolLoop(config, [{ role: 'user', content: 'Pay' }]);
    const last = approval ? run.then(() => this.answer(version, { approved: true, ...approval })) : run;
    const ended = await Promise.race([last, isDying]);
    expect(ended).toBeUndefined();
    this.now += LEASE;
    this.#isDead = false;
  }

  /** The result of the recovered run, and the answers of its calls. */
  async recover(version?: Version, options: Partial<RecoverOptions> = {}) {
    const config = this.#config(version);
    const [recovered] = await recoverRuns({ store: this.store, config, leaseMs: LEASE, ...options });
    return this.#told(recovered && 'result' in recovered ? recovered.result : recovered?.error);
  }

  async answer(version: Version | undefined, answer: object) {
    const [pending] = this.store.load('r')?.pending ?? [];
    const answers = [{ id: pending?.id, ...answer } as Answer];
    return this.#told(
      await resumeStoredRun(
        this.#config(version),
        { store: this.store, runId: 'r', leaseMs: LEASE },
        answers,
      ),
    );
  }

  /** Cancels the run, and returns the answers of its calls. */
  async cancel(): Promise<readonly unknown[]> {
    const { store } = this;
    await cancelRun({ store, runId: 'r' });
    const run = store.read('r');
    return (run ? foldRun(run).messages : []).flatMap(({ role, content }) =>
      role === 'tool' ? [content] : [],
    );
  }

  #config(version: Version | undefined) {
    const { engine, store } = this;
    const other = defineTool({ name: 'ask', description: 'Asks first', approval: true, execute: () => 1 });
    const hasEngine = version?.background && version.engineOf === undefined;
    return {
      provider: this.#provider,
      model: 'm',
      tools: new ToolRegistry(version?.engineOf ? { engine, store } : {}).register(this.tool(version), other),
      hooks: version?.hooks ?? [],
      checkpoint: 'step',
      ...(hasEngine ? { engine, store } : {}),
    } as const;
  }

  #told(result: unknown) {
    const { status, messages, pending } = result as Awaited<ReturnType<typeof runToolLoop>>;
    const answers = messages?.flatMap((message) => (message.role === 'tool' ? [message.content] : []));
    return {
      status,
      answers,
      pending: pending?.map(({ kind, tool, arguments: args }) => [kind, tool, args]),
    };
  }
}

const GONE: Version = { name: 'pay_invoice' };
const UNFIT: Version = { requires: ['reference'] };
const waits = { status: 'suspended', answers: [], pending: [['outcome', 'pay', { to: 'ann' }]] };
const told = (text: string) => ({ status: 'completed', answers: [expect.stringContaining(text)] });

describe.each([
  ['is gone', GONE, 'tool not found: pay'],
  ['takes other arguments', UNFIT, 'reference'],
])('recoverRuns of an interrupted call whose tool %s', (_what, version, failure) => {
  test('asks for the outcome, and does not repeat the call', async () => {
    const lost = new LostCall();
    await lost.die();
    expect(await lost.recover(version)).toEqual(waits);
    expect(await lost.answer(version, { outcome: 'done', result: 'paid at noon' })).toMatchObject(
      told('paid at noon'),
    );
    expect(lost.paid).toHaveLength(1);
  });

  test('answers with the error after the outcome not-done', async () => {
    const lost = new LostCall();
    await lost.die();
    await lost.recover(version);
    expect(await lost.answer(version, { outcome: 'not-done' })).toMatchObject(told(failure));
    expect(lost.paid).toHaveLength(1);
  });

  test('answers with the refusal if the question is refused', async () => {
    const lost = new LostCall();
    await lost.die();
    await lost.recover(version);
    const answer = { approved: false, reason: 'leave it' };
    expect(await lost.answer(version, answer)).toMatchObject(told('leave it'));
  });

  test('answers that the outcome is unknown with onUnknown error', async () => {
    const lost = new LostCall();
    await lost.die();
    const text = "The call of 'pay' was interrupted. It is not known whether it was executed.";
    expect(await lost.recover(version, { onUnknown: 'error' })).toMatchObject(told(text));
  });

  test('runs afterCall with the status, and with the tool if it exists', async () => {
    const lost = new LostCall();
    await lost.die();
    const heard: unknown[] = [];
    const afterCall: Hooks['afterCall'] = ({ name, status, tool }) => void heard.push([name, status, tool]);
    await lost.recover({ ...version, hooks: [{ afterCall }] }, { onUnknown: 'error' });
    const tool = version.name === undefined ? expect.objectContaining({ name: 'pay' }) : undefined;
    expect(heard).toEqual([['pay', 'error', tool]]);
  });

  test('asks for the outcome even with onUnknown rerun, because the call cannot run', async () => {
    const lost = new LostCall();
    await lost.die();
    expect(await lost.recover(version, { onUnknown: 'rerun' })).toEqual(waits);
  });
});

describe('recoverRuns of an interrupted call', () => {
  test('asks for the outcome if it is idempotent but invalid, and reports the error if it is read-only', async () => {
    const one = new LostCall();
    await one.die({ annotations: { idempotent: true } });
    expect(await one.recover({ ...UNFIT, annotations: { idempotent: true } })).toEqual(waits);
    const gone = new LostCall();
    await gone.die({ annotations: { readOnly: true } });
    expect(await gone.recover(GONE)).toMatchObject(told('tool not found: pay'));
    const other = new LostCall();
    await other.die({ annotations: { readOnly: true } });
    expect(await other.recover({ ...UNFIT, annotations: { readOnly: true } })).toMatchObject(
      told('reference'),
    );
  });

  test.each([
    ['done', { status: 'done', result: 'found' }, told('found')],
    ['not done', { status: 'not-done' }, told('reference')],
    ['unknown', { status: 'unknown' }, waits],
  ])('passes the original arguments to reconcile if they are now invalid: %s', async (_what, known, end) => {
    const lost = new LostCall();
    await lost.die();
    expect(await lost.recover({ ...UNFIT, ...lost.reconcile(known) })).toMatchObject(end);
    expect(lost.asked).toEqual([{ callId: 'c1', idempotencyKey: lost.paid[0], arguments: { to: 'ann' } }]);
    expect(lost.paid).toHaveLength(1);
  });
});

const DEFAULTED: Version = { urgent: { type: 'boolean', default: false } };
const COERCED: Version = { urgent: { type: 'boolean' } };
const rewriting = (to: string): Version => ({ hooks: [{ beforeCall: () => ({ arguments: { to } }) }] });

describe('an interrupted call keeps its key in a version that reads its arguments differently', () => {
  const approved: Version = { approval: true };
  const edited = { arguments: { to: 'bob' } };
  const sent = { to: 'ann', urgent: 'true' };
  interface Row {
    readonly before?: Version;
    readonly after?: Version;
    readonly approval?: object;
    readonly args?: object;
  }
  test.each<[string, Row]>([
    ['a parameter now has a default', { after: DEFAULTED }],
    ['a parameter now has another default', { before: { urgent: { default: true } }, after: DEFAULTED }],
    ['a parameter has lost its default', { before: DEFAULTED }],
    ['a type is now coerced', { before: { urgent: {} }, after: COERCED, args: sent }],
    ['a hook rewrote the arguments', { before: rewriting('bob') }],
    ['a hook now rewrites the arguments differently', { before: rewriting('bob'), after: rewriting('cid') }],
    ['it was approved', { before: approved, after: { ...approved, ...DEFAULTED }, approval: {} }],
    ['it was edited', { before: approved, after: { ...approved, ...DEFAULTED }, approval: edited }],
  ])('if %s', async (_what, { before, after, approval, args }) => {
    const lost = new LostCall(args);
    await lost.die(before, approval);
    const [key] = lost.paid;
    await lost.recover({ ...after, ...lost.reconcile({ status: 'unknown' }) });
    expect(lost.asked.map(({ idempotencyKey }) => idempotencyKey)).toEqual([key]);
    await lost.answer(after, { outcome: 'not-done' });
    // A call that was approved or edited with other arguments needs a new approval.
    const isAsked = approval !== undefined;
    expect(lost.paid).toEqual(isAsked ? [key] : [key, key]);
    expect(new Set(lost.parts).size).toBe(1);
  });

  test('but has another key if its arguments are edited, or the model sends others', async () => {
    const keys = new Set<string>();
    for (const [args, approval] of [
      [{ to: 'ann' }, {}],
      [{ to: 'ann' }, edited],
      [{ to: 'ann', urgent: true }, {}],
    ]) {
      const lost = new LostCall(args);
      await lost.die({ ...approved, ...DEFAULTED }, approval);
      keys.add(lost.paid[0] ?? '');
    }
    expect(keys.size).toBe(3);
  });
});

describe('recoverRuns of an interrupted call whose tool is now a background job', () => {
  const later: Version = { background: true };
  const recover = async (version: Version, options: Partial<RecoverOptions> = {}) => {
    const lost = new LostCall();
    await lost.die({ annotations: version.annotations });
    const end = await lost.recover({ ...later, ...version }, options);
    const { jobs } = await lost.store.jobs.listJobs();
    return { lost, end, keys: jobs.map(({ job }) => job.idempotencyKey) };
  };

  test('asks for the outcome, and starts the job after not-done', async () => {
    const { lost, end, keys } = await recover({});
    expect([end, keys]).toEqual([waits, []]);
    await lost.answer(later, { outcome: 'not-done' });
    const { jobs } = await lost.store.jobs.listJobs();
    expect(jobs.map(({ job }) => job.idempotencyKey)).toEqual(lost.paid);
  });

  test('uses the result of reconcile', async () => {
    const said = (known: unknown) => recover({ reconcile: () => known as never });
    const done = await said({ status: 'done', result: 'found' });
    expect([done.end, done.keys]).toMatchObject([told('found'), []]);
    const notDone = await said({ status: 'not-done' });
    expect([notDone.end, notDone.keys]).toMatchObject([told('Started'), notDone.lost.paid]);
  });

  test.each([
    [{ annotations: { readOnly: true } }, {}],
    [{ annotations: { idempotent: true } }, {}],
    [{}, { onUnknown: 'rerun' }],
  ] as const)(
    'starts the job with the key of the call if it may be repeated: %j, %j',
    async (version, options) => {
      const { lost, end, keys } = await recover(version, options);
      expect([end, keys]).toMatchObject([told('Started'), lost.paid]);
    },
  );

  test('answers that the outcome is unknown with onUnknown error', async () => {
    const { end, keys } = await recover({}, { onUnknown: 'error' });
    expect([end, keys]).toMatchObject([told('It is not known whether it was executed.'), []]);
  });
});

test.each<[string, Version]>([
  ['the run', { background: true }],
  ['the registry', { background: true, engineOf: 'registry' }],
])(
  'recoverRuns starts a job that was not stored before the crash, without a question: engine of %s',
  async (_whose, version) => {
    const lost = new LostCall();
    const { jobs } = lost.store;
    const addJob = jobs.addJob.bind(jobs);
    const isDying = new Promise<void>((resolve) => {
      jobs.addJob = () => {
        resolve();
        return NEVER;
      };
    });
    await lost.die(version, undefined, isDying);
    jobs.addJob = addJob;
    expect(await lost.recover(version)).toMatchObject(told('Started'));
    expect((await jobs.listJobs()).jobs).toHaveLength(1);
  },
);

const doubt =
  "The tool 'pay' had begun, and its effects are unknown: find out, or ask, before you call it again.";

describe('an interrupted call in a cancelled run', () => {
  test('is answered with a warning that it may have been done', async () => {
    const lost = new LostCall();
    await lost.die();
    expect(await lost.cancel()).toEqual([`The run was aborted. ${doubt}`]);
  });

  test('is answered without a warning if its tool is read-only', async () => {
    const lost = new LostCall();
    await lost.die({ annotations: { readOnly: true } });
    expect(await lost.cancel()).toEqual(["The run was aborted. The tool 'pay' had not finished."]);
  });

  test('is answered with the warning even if its outcome was asked for', async () => {
    const lost = new LostCall();
    await lost.die();
    expect(await lost.recover(GONE)).toEqual(waits);
    expect(await lost.cancel()).toEqual([`The run was aborted. ${doubt}`]);
  });

  test.each([
    [{ outcome: 'done', result: 'paid at noon' }, 'paid at noon'],
    [{ outcome: 'not-done' }, "The run was aborted. The tool 'pay' was not run."],
    [{ approved: false, reason: 'leave it' }, "The tool 'pay' was refused: leave it"],
  ])('is answered with the given outcome, even if another call still waits: %j', async (answer, told) => {
    const lost = new LostCall({ to: 'ann' }, ['pay', 'ask']);
    await lost.die();
    await lost.recover();
    const { store } = lost;
    const [pay] = store.load('r')?.pending ?? [];
    const left = await answerStoredRun({ store, runId: 'r' }, [{ id: pay?.id, ...answer } as Answer]);
    expect(left).toMatchObject([{ tool: 'ask' }]);
    expect(await lost.cancel()).toEqual([told, "The run was aborted. The tool 'ask' was not run."]);
  });
});
