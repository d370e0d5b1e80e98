import { getEventListeners } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  type AsyncCallback,
  asyncResult,
  TaskQueue,
  type ToolContext,
  type ToolDefinition,
  ToolRegistry,
  toolResult,
} from 'toolwright';
import { runs } from '../../setup/runs.js';
import { plainTool } from './plain-tool.js';

const CONVERSATIONS = ['a', 'b', 'c'];
type Kind = 'work' | 'method' | 'callback';

interface Plan {
  readonly kind: Kind;
  readonly conversation: string;
  readonly timeoutMs: number | undefined;
}

type Step =
  | { readonly do: 'call' | 'turn' }
  | { readonly do: 'settle' | 'throw' | 'cancel'; readonly at: number }
  | { readonly do: 'abort'; readonly conversation: string };

/** One call, what the schedule may do to it, and what came of it. */
class Call {
  readonly work = Promise.withResolvers<unknown>();
  readonly completions: number[] = [];
  answeredAt: number | undefined;
  isStarted = false;
  taskId: string | undefined;
  #callback: AsyncCallback = () => {};

  constructor(
    readonly plan: Plan,
    readonly world: World,
  ) {}

  tool(name: string): ToolDefinition {
    const { kind, timeoutMs } = this.plan;
    const limits = timeoutMs === undefined ? {} : { timeoutMs };
    const run = (context: ToolContext) => this.world.run(this, context);
    if (kind === 'method')
      return plainTool((_args, context) => run(context), { name, background: true, ...limits });
    if (kind === 'work')
      return plainTool((_args, context) => context.background(() => run(context)), { name, ...limits });
    const tool = {
      ...plainTool(() => asyncResult('started'), { name, ...limits }),
      setCallback: (callback: AsyncCallback) => {
        this.#callback = callback;
      },
    };
    return tool;
  }

  settle(): void {
    this.work.resolve('done');
    this.#callback(undefined, toolResult('done'));
  }

  fail(): void {
    this.work.reject(new Error('failed'));
    this.#callback(undefined, toolResult('failed'));
  }
}

/** Everything that one schedule runs in. */
class World {
  readonly tasks: TaskQueue;
  readonly calls: Call[] = [];
  readonly controllers = new Map(CONVERSATIONS.map((name) => [name, new AbortController()]));
  readonly tools = new ToolRegistry();
  readonly live = new Set<Call>();
  readonly problems: string[] = [];
  readonly answers: Promise<void>[] = [];
  clock = 0;

  constructor(readonly maxRunning: number) {
    this.tasks = new TaskQueue({ maxRunning });
  }

  tick(): number {
    this.clock += 1;
    return this.clock;
  }

  /** The work of a call; it counts as running until it has settled or was told to stop. */
  async run(call: Call, { signal }: ToolContext): Promise<unknown> {
    if (signal.aborted) this.problems.push('work began although it had been stopped');
    this.live.add(call);
    signal.addEventListener('abort', () => this.live.delete(call));
    if (this.live.size > this.maxRunning) this.problems.push(`${this.live.size} run`);
    try {
      return await call.work.promise;
    } finally {
      this.live.delete(call);
    }
  }

  call(plan: Plan): void {
    const call = new Call(plan, this);
    call.work.promise.catch(() => {});
    const id = `t${this.calls.push(call)}`;
    this.tools.register(call.tool(id));
    const signal = this.controllers.get(plan.conversation)?.signal;
    const options = { tasks: this.tasks, onAsyncResult: () => void call.completions.push(this.tick()) };
    const scope = { conversationId: plan.conversation, signal };
    const answered = this.tools.invoke({ id, name: id, arguments: {} }, scope, options);
    this.answers.push(
      answered.then(({ status, record }) => {
        call.answeredAt = this.tick();
        call.isStarted = status === 'started';
        call.taskId = record.taskId;
      }),
    );
  }

  async step(step: Step, plans: Plan[]): Promise<void> {
    if ('conversation' in step) return this.controllers.get(step.conversation)?.abort();
    if (!('at' in step)) {
      const plan = step.do === 'call' ? plans.shift() : undefined;
      return plan ? this.call(plan) : void (await turn());
    }
    const call = this.calls[step.at % Math.max(1, this.calls.length)];
    if (step.do === 'settle') call?.settle();
    else if (step.do === 'throw') call?.fail();
    else if (call?.taskId !== undefined) this.tasks.cancel(call.taskId);
  }

  /** Lets everything end that has not. */
  async end(): Promise<void> {
    await Promise.all(this.answers);
    for (const call of this.calls) call.settle();
    await this.tasks.idle();
    await turn();
  }
}

const plan: fc.Arbitrary<Plan> = fc.record({
  kind: fc.constantFrom<Kind>('work', 'method', 'callback'),
  conversation: fc.constantFrom(...CONVERSATIONS),
  timeoutMs: fc.constantFrom(undefined, 1, 3, 600_000),
});

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constantFrom('call' as const, 'turn' as const) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constantFrom('settle' as const, 'throw' as const, 'cancel' as const),
      at: fc.nat(20),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('abort' as const),
      conversation: fc.constantFrom(...CONVERSATIONS),
    }),
  },
);

const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

test('whatever happens in whatever order, every started call completes once, after its acknowledgement', async () => {
  const before = timers();
  await fc.assert(
    fc.asyncProperty(
      fc.array(plan, { minLength: 1, maxLength: 12 }),
      fc.array(step, { maxLength: 60 }),
      fc.integer({ min: 1, max: 3 }),
      async (plans, steps, maxRunning) => {
        const world = new World(maxRunning);
        const left = [...plans];
        for (const one of steps) await world.step(one, left);
        for (const one of left) world.call(one);
        await world.end();
        expect(world.problems).toEqual([]);
        for (const { isStarted, completions, answeredAt = 0 } of world.calls) {
          expect(completions).toHaveLength(isStarted ? 1 : 0);
          if (isStarted) expect(completions[0]).toBeGreaterThan(answeredAt);
        }
        expect([world.tasks.tasks, world.live.size]).toEqual([[], 0]);
        for (const { signal } of world.controllers.values())
          expect(getEventListeners(signal, 'abort')).toEqual([]);
      },
    ),
    { numRuns: runs(150) },
  );
  // Jest has timers of its own, and some of them end meanwhile.
  expect(timers()).toBeLessThanOrEqual(before);
});
