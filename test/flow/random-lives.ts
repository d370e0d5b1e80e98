import fc from 'fast-check';
import {
  type Answer,
  type CheckpointStore,
  defineTool,
  type KeptRun,
  type LLMProvider,
  type PendingCall,
  type RunEntry,
  recoverRuns,
  resumeStoredRun,
  runToolLoop,
  type ToolContext,
  type ToolDefinition,
  type ToolLoopConfig,
} from 'toolwright';
import { MemoryRunStore, type SqliteRunStore } from 'toolwright/stores';

const KINDS = ['read', 'same', 'effect', 'later', 'alone', 'approved', 'parts', 'asks'] as const;
type Kind = (typeof KINDS)[number];

/** A run, and the writes at which its processes die. */
export interface Story {
  /** The tools that each reply of the model calls. */
  readonly replies: readonly (readonly Kind[])[];
  readonly checkpoint: 'step' | 'call';
  readonly maxConcurrency: number;
  /** Each process dies before or after its nth write. */
  readonly deaths: readonly { readonly write: number; readonly when: 'before' | 'after' }[];
}

export const stories: fc.Arbitrary<Story> = fc.record({
  replies: fc.array(fc.array(fc.constantFrom(...KINDS), { minLength: 1, maxLength: 4 }), {
    minLength: 1,
    maxLength: 4,
  }),
  checkpoint: fc.constantFrom('step' as const, 'call' as const),
  maxConcurrency: fc.integer({ min: 1, max: 4 }),
  deaths: fc.array(
    fc.record({
      write: fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 12 })),
      when: fc.constantFrom('before' as const, 'after' as const),
    }),
    { maxLength: 6 },
  ),
});

/** Few stories, each with at least one death: starting real processes takes a while. */
export const killedStories = stories.map(
  (story): Story => ({
    ...story,
    deaths: [{ write: 2, when: 'after' } as const, ...story.deaths].slice(0, 4),
  }),
);

const LEASE = 60_000;
const NEVER = new Promise<never>(() => {});
const messages = [{ role: 'user', content: 'Go.' }] as const;

/** One process. After its death, nothing that it does has an effect. */
export class Life {
  readonly death: Promise<'died'>;
  isDead = false;
  #writes = 0;
  #die: (how: 'died') => void = () => {};
  readonly #kill: () => void;
  readonly #end: Story['deaths'][number] | undefined;

  /** `kill` ends the process if it is a real one. */
  constructor(end: Story['deaths'][number] | undefined, kill: () => void = () => {}) {
    this.#end = end;
    this.#kill = kill;
    this.death = new Promise((resolve) => {
      this.#die = resolve;
    });
  }

  /** A write of this process, unless it dies first. */
  async write<Told>(write: () => Told): Promise<Awaited<Told>> {
    // Code that does not await the write runs before it.
    await new Promise((resolve) => setImmediate(resolve));
    if (this.isDead) return NEVER;
    this.#writes += 1;
    const isLast = this.#writes === this.#end?.write;
    if (isLast && this.#end?.when === 'before') return this.#stop();
    const told = await write();
    return isLast ? this.#stop() : told;
  }

  #stop(): Promise<never> {
    this.#kill();
    this.isDead = true;
    this.#die('died');
    return NEVER;
  }
}

/** The store as seen by one process. */
function storeOf(life: Life, store: CheckpointStore): CheckpointStore {
  return new Proxy(store, {
    get: (target, name) => {
      const method = Reflect.get(target, name) as (...args: unknown[]) => unknown;
      return (...args: unknown[]) => life.write(() => method.apply(target, args));
    },
  });
}

/** External effects by the number of their call, each with the idempotency keys of its executions. */
export class World {
  readonly effects = new Map<string, string[]>();
  readonly faults: string[] = [];
  readonly store: MemoryRunStore | SqliteRunStore;
  now = 1_700_000_000_000;

  constructor(open: (now: () => number) => World['store'] = (now) => new MemoryRunStore({ now })) {
    this.store = open(() => this.now);
  }

  happen(effect: string, key: string): void {
    this.effects.set(effect, [...(this.effects.get(effect) ?? []), key]);
  }
}

/** Runs the story to its end and returns the stored run. */
export async function live(story: Story, world: World): Promise<KeptRun> {
  const deaths = [...story.deaths];
  for (let lives = 0; lives < 200; lives += 1) {
    const run = await world.store.read('r');
    if (run?.status === 'ended') return run;
    const life = new Life(deaths.shift());
    await Promise.race([proceed(run, { story, world, life }), life.death]);
    world.now += LEASE;
  }
  throw new Error('The run never ended.');
}

interface Surroundings {
  readonly story: Story;
  readonly world: World;
  readonly life: Life;
}

/** One process continues the run from its stored state. */
export async function proceed(run: KeptRun | undefined, surroundings: Surroundings): Promise<unknown> {
  const { story, world, life } = surroundings;
  const store = storeOf(life, world.store);
  const { checkpoint, maxConcurrency } = story;
  const config: ToolLoopConfig = {
    provider: providerOf(surroundings),
    model: 'm',
    tools: toolsOf(surroundings),
    maxIterations: 50,
    loopGuard: false,
    toolTimeoutMs: Number.POSITIVE_INFINITY,
    ...{ store, checkpoint, maxConcurrency, runId: 'r', leaseMs: LEASE },
  };
  if (run === undefined) return runToolLoop(config, messages);
  if (run.status === 'running') return recoverRuns({ store, config, leaseMs: LEASE });
  const { pending } = (await world.store.load('r'))!;
  const answers = pending.map((call) => answerOf(world, call));
  return resumeStoredRun(config, { store, runId: 'r', leaseMs: LEASE }, answers);
}

/** A person who checks which effects happened before answering. */
function answerOf({ effects }: World, { id, kind, tool, arguments: { n } }: PendingCall): Answer {
  if (kind === 'approval') return { id, approved: true };
  if (kind === 'question') return { id, value: 'yes' };
  const isDone = tool === 'parts' ? effects.has(`${n}b`) : effects.has(`${n}`);
  return isDone ? { id, outcome: 'done', result: `did ${n}` } : { id, outcome: 'not-done' };
}

/** The model is deterministic: the same history gives the same reply. */
function providerOf({ story, world, life }: Surroundings): LLMProvider {
  return {
    chat: async ({ messages: history, metadata }) => {
      if (life.isDead) return NEVER;
      const step = history.filter(({ role }) => role === 'assistant').length;
      const kept = keptSteps(await world.store.read('r'));
      if (kept >= Number(metadata?.step)) world.faults.push(`asked again for message ${metadata?.step}`);
      const kinds = story.replies[step];
      if (kinds === undefined) return { content: 'Done.', toolCalls: [], finishReason: 'stop' };
      const before = story.replies.slice(0, step).flat().length;
      const toolCalls = kinds.map((name, index) => ({
        id: `c${index}`,
        name,
        arguments: { n: before + index },
      }));
      return { content: `Step ${step}`, toolCalls, finishReason: 'tool_calls' };
    },
  };
}

function toolsOf({ world, life }: Surroundings): readonly ToolDefinition[] {
  const effect = async (n: number | string, key: string): Promise<void> => {
    const number = Number.parseInt(String(n), 10);
    world.happen(String(n), key);
    if (isSettled(await world.store.read('r'), number))
      world.faults.push(`call ${number} was settled before`);
  };
  const alive = async (): Promise<void> => {
    await new Promise((resolve) => setImmediate(resolve));
    if (life.isDead) await NEVER;
  };
  const bodies: Readonly<Record<Kind, (n: number, context: ToolContext) => unknown>> = {
    read: (n, { idempotencyKey }) => effect(n, idempotencyKey),
    same: (n, { idempotencyKey }) => effect(n, idempotencyKey),
    effect: (n, { idempotencyKey }) => effect(n, idempotencyKey),
    later: async (n, { idempotencyKey }) => {
      await alive();
      await effect(n, idempotencyKey);
      await alive();
    },
    alone: async (n, { idempotencyKey }) => {
      await effect(n, idempotencyKey);
      await alive();
    },
    approved: (n, { idempotencyKey }) => effect(n, idempotencyKey),
    parts: async (n, context) => {
      for (const part of ['a', 'b']) {
        await context.once(part, ({ idempotencyKey }) => effect(`${n}${part}`, idempotencyKey));
        await alive();
      }
    },
    asks: async (n, context) => {
      const { idempotencyKey } = context;
      await context.ask({ message: 'Sure?' });
      await effect(n, idempotencyKey);
    },
  };
  return KINDS.map((kind) =>
    defineTool({
      name: kind,
      description: kind,
      parameters: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] },
      sequential: kind === 'alone',
      approval: kind === 'approved',
      annotations: {
        ...(kind === 'read' ? { readOnly: true } : {}),
        ...(kind === 'same' ? { idempotent: true } : {}),
      },
      execute: async ({ n }: { n: number }, context) => {
        if (life.isDead) return NEVER;
        await bodies[kind](n, context);
        return `did ${n}`;
      },
    }),
  );
}

function keptSteps(run: KeptRun | undefined): number {
  const steps = run?.entries.flatMap((entry) => (entry.type === 'step' ? [entry.iterations] : [])) ?? [];
  return Math.max(run?.state.iterations ?? 0, ...steps);
}

function isSettled(run: KeptRun | undefined, n: number): boolean {
  const { toolCalls = [], open } = run?.state ?? {};
  const calls = [...(open?.calls ?? []), ...(run?.entries ?? []).flatMap(callsOf)];
  const records = calls.flatMap((call) => (call.status === 'settled' ? [call.record] : []));
  return [...toolCalls, ...records].some((record) => record.arguments?.n === n);
}

function callsOf(entry: RunEntry) {
  return entry.type === 'calls' ? entry.calls.map(({ call }) => call) : [];
}
