import { beforeEach, describe, expect, test } from '@jest/globals';
import { Inject, Injectable, Scope, type Type } from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import {
  compensateRun,
  type Effect,
  type Reconciliation,
  type ResourceAccess,
  recoverRuns,
  runToolLoop,
  Tool,
  type ToolContext,
  type ToolResult,
} from 'toolwright';
import type { ToolwrightModuleOptions } from 'toolwright/nestjs';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { Permissions } from 'toolwright/toolbox/permissions';
import { boot } from './boot.js';

interface Asking {
  readonly user: string;
}

@Injectable({ scope: Scope.REQUEST })
class CurrentUser {
  constructor(@Inject(REQUEST) readonly request: Asking | undefined) {}
}

/** What was called, each with the number of its instance. */
const log: (readonly [method: string, instance: number, ...facts: unknown[]])[] = [];
const seen = { made: 0, isDying: false };

/** Tools with companions; the subclasses give them their scope. */
class Till {
  readonly number: number;

  constructor() {
    seen.made += 1;
    this.number = seen.made;
  }

  get user(): string | undefined {
    return undefined;
  }

  note(method: string, ...facts: unknown[]): void {
    log.push([method, this.number, ...facts]);
  }

  @Tool({ description: 'Pay', approval: true, preview: 'shown' })
  pay(amount: number = 5) {
    return `paid ${amount}`;
  }

  shown({ amount }: { readonly amount: number }) {
    return `takes ${amount} EUR`;
  }

  @Tool({ description: 'Read the secret', touches: 'secretPath' })
  readSecret() {
    this.note('read');
    return 'the secret';
  }

  secretPath(_args: unknown, context: ToolContext): readonly ResourceAccess[] {
    this.note('touches', context.callId, this.user);
    return [{ action: 'read', path: '/etc/secret' }];
  }

  @Tool({ description: 'Book', compensate: 'cancel' })
  book(seats: number = 2) {
    this.note('book');
    return `booked ${seats}`;
  }

  cancel({ arguments: { seats }, result }: Effect & { readonly result: ToolResult }) {
    this.note('cancel', seats, result.forLLM);
    return 'cancelled';
  }

  @Tool({ description: 'Ship', reconcile: 'findParcel', compensate: 'takeBack' })
  async ship() {
    this.note('ship');
    if (seen.isDying) await new Promise<never>(() => {});
    throw new Error('the connection was lost');
  }

  findParcel(): Reconciliation {
    this.note('findParcel');
    return { status: 'done', result: 'parcel 7' };
  }

  takeBack({ result }: Effect & { readonly result: ToolResult }) {
    this.note('takeBack', result.forLLM);
  }
}

@Injectable()
class DefaultTill extends Till {}

@Injectable({ scope: Scope.REQUEST })
class RequestTill extends Till {}

@Injectable({ scope: Scope.TRANSIENT })
class TransientTill extends Till {}

/** Request-scoped, because its dependency is. */
@Injectable()
class InjectingTill extends Till {
  @Inject(CurrentUser) readonly current!: CurrentUser;

  override get user(): string | undefined {
    return this.current.request?.user;
  }
}

const TILLS: readonly (readonly [name: string, till: Type<Till>])[] = [
  ['a default', DefaultTill],
  ['a request-scoped', RequestTill],
  ['a transient', TransientTill],
  ['an injecting', InjectingTill],
];

const messages = [{ role: 'user', content: 'Go' }] as const;

/** An application whose model calls these tools, one after the other. */
function open(till: Type<Till>, calls: readonly string[], options: ToolwrightModuleOptions = {}) {
  const replies = calls.map((name) => ({ toolCalls: [{ name, arguments: {} }] }));
  const provider = new ScriptedProvider([...replies, { content: 'Done' }]);
  return boot({ options: { provider, model: 'm', ...options }, providers: [till, CurrentUser] });
}

const denying = () =>
  new Permissions({ mode: 'auto', rules: [{ decision: 'deny', path: '/etc/**', reason: 'it is closed' }] });

beforeEach(() => {
  log.length = 0;
  Object.assign(seen, { made: 0, isDying: false });
});

describe.each(TILLS)('the companions of %s class', (_name, till) => {
  test.each([{}, { request: { user: 'ada' } }])('preview a call for its approver (%j)', async (scope) => {
    const { toolwright } = await open(till, ['pay']);
    const { pending } = await toolwright.run(messages, scope);
    expect(pending?.[0]?.description).toMatch(/takes 5 EUR$/);
  });

  test('state what a call touches, so that a rule denies it', async () => {
    const { toolwright } = await open(till, ['read_secret'], { policy: denying().policy });
    const run = await toolwright.run(messages);
    expect(run).toMatchObject({ status: 'completed', toolCalls: [{ result: { error: { code: 512 } } }] });
    expect(run.toolCalls[0]?.result.forLLM).toContain("reads '/etc/secret': it is closed");
    expect(log).toEqual([['touches', 1, run.toolCalls[0]?.id, undefined]]);
  });

  test('undo the calls of a run, also one whose outcome only reconcile knows', async () => {
    const store = new MemoryRunStore();
    const { toolwright, tools } = await open(till, ['book', 'ship'], { store, checkpoint: 'step' });
    const { runId = '' } = await toolwright.run(messages);
    expect(await compensateRun(store, runId, { tools })).toMatchObject([
      { tool: 'ship', status: 'compensated' },
      { tool: 'book', status: 'compensated', text: 'cancelled' },
    ]);
    expect(log.map(([method, _instance, ...facts]) => [method, ...facts])).toEqual([
      ['book'],
      ['ship'],
      ['findParcel'],
      ['takeBack', 'parcel 7'],
      ['cancel', 2, 'booked 2'],
    ]);
  });

  test('report the outcome of a call whose process died', async () => {
    let now = 1_700_000_000_000;
    const store = new MemoryRunStore({ now: () => now });
    const { tools } = await open(till, []);
    const provider = new ScriptedProvider([
      { toolCalls: [{ name: 'ship', arguments: {} }] },
      { content: 'Shipped' },
    ]);
    const config = { provider, model: 'm', tools, toolTimeoutMs: Number.POSITIVE_INFINITY };
    seen.isDying = true;
    runToolLoop({ ...config, store, checkpoint: 'step', leaseMs: 60_000 }, messages).catch(() => {});
    while (log.length === 0) await new Promise((resolve) => setImmediate(resolve));
    now += 60_000;
    const [recovered] = await recoverRuns({ store, config, leaseMs: 60_000 });
    expect(recovered).toMatchObject({
      result: { status: 'completed', toolCalls: [{ status: 'success', result: { forLLM: 'parcel 7' } }] },
    });
    expect(log.map(([method]) => method)).toEqual(['ship', 'findParcel']);
  });
});

test.each([
  ['a default', DefaultTill, [1, 1, 1, 1], [1, 1, 1, 1]],
  ['a request-scoped', RequestTill, [1, 1, 2, 2], [3, 3, 3, 3]],
  ['a transient', TransientTill, [1, 1, 2, 2], [3, 3, 4, 4]],
] as const)(
  'the companions of %s class have the instance of their call',
  async (_name, till, without, within) => {
    const { policy } = new Permissions({ rules: [{ decision: 'allow', path: '/etc/**' }] });
    const { tools, toolwright } = await open(till, [], { policy });
    const instances = async (scope: object) => {
      log.length = 0;
      for (let call = 0; call < 2; call += 1)
        expect(await tools.executeWithContext('read_secret', {}, scope)).toMatchObject({
          forLLM: 'the secret',
        });
      return log.map(([, instance]) => instance);
    };
    // The first instance of a transient provider is a prototype of Nest.
    seen.made = till === DefaultTill ? 1 : 0;
    expect(await instances({})).toEqual(without);
    expect(await instances(toolwright.scopeOf({ user: 'ada' }))).toEqual(within);
  },
);

test('a companion has the request of the owner, also if another user answers', async () => {
  const { policy } = new Permissions();
  const { toolwright } = await open(InjectingTill, ['read_secret'], {
    policy,
    store: new MemoryRunStore(),
    stateSecret: 'a secret of more than thirty-two characters',
    owner: ({ user }: Asking) => user,
    mayAnswer: () => true,
    scopeOf: (user: string) => ({ request: { user } }),
  });
  const { runId = '', pending = [] } = await toolwright.run(messages, { request: { user: 'ada' } });
  const answers = pending.map(({ id }) => ({ id, approved: true }));
  const end = await toolwright.resumeStored(runId, answers, { request: { user: 'bob' } });
  expect(end.toolCalls).toMatchObject([{ result: { forLLM: 'the secret' } }]);
  const users = log.filter(([method]) => method === 'touches').map(([, , , user]) => user);
  expect(users.length).toBeGreaterThan(1);
  expect(new Set(users)).toEqual(new Set(['ada']));
});

test('the companions of a provider with another token are called, whatever container a call has', async () => {
  const { tools } = await boot({
    options: { policy: denying().policy },
    providers: [{ provide: 'till', useFactory: () => new Till() }],
  });
  const container = { resolve: () => new Till() as never };
  for (const scope of [{}, { container }])
    expect((await tools.executeWithContext('read_secret', {}, scope)).forLLM).toContain('it is closed');
  expect(log.map(([method, instance]) => [method, instance])).toEqual([
    ['touches', 1],
    ['touches', 1],
  ]);
});
