// A process that suspends and resumes runs on request. `stored-run-process.ts` builds and starts it.
import { appendFileSync } from 'node:fs';
import {
  type Answer,
  defineTool,
  type LLMProvider,
  type LLMResponse,
  resumeStoredRun,
  runToolLoop,
  ToolwrightError,
} from 'toolwright';
import { SqliteRunStore } from 'toolwright/stores';

/** A request to the process. */
export type Order =
  | { readonly do: 'open'; readonly path: string; readonly at: number }
  /** `at`: the tool that has to wait, by default `place`. */
  | { readonly do: 'suspend'; readonly at?: 'place' | 'book' }
  | {
      readonly do: 'resume';
      readonly runId: string;
      readonly answers: readonly Answer[];
      /** When to begin, so that several processes begin together. */
      readonly at: number;
      /** Where to stop and report it, until the process is told to finish or killed. */
      readonly stopIn: 'tool' | 'once' | 'model' | 'nowhere';
      /** How far the clock of the store is ahead. */
      readonly aheadMs?: number;
    }
  | { readonly do: 'finish' };

const [path = '', effects = ''] = process.argv.slice(2);
let finish = (): void => {};

/** Reports that the process has stopped, and waits. */
async function stop(): Promise<void> {
  const finished = new Promise<void>((done) => {
    finish = done;
  });
  tell({ told: 'stopped' });
  await finished;
}

function tell(message: object): void {
  process.send?.(message);
}

function toolsStopping(stopIn: Extract<Order, { readonly do: 'resume' }>['stopIn']) {
  const parameters = { type: 'object', properties: { run: { type: 'string' } } } as const;
  return [
    defineTool({
      name: 'count',
      description: 'Count',
      parameters,
      execute: ({ run }) => appendFileSync(effects, `counted ${run}\n`),
    }),
    defineTool({
      name: 'place',
      description: 'Place',
      parameters,
      approval: true,
      execute: async ({ run }) => {
        appendFileSync(effects, `placed ${run}\n`);
        if (stopIn === 'tool') await stop();
      },
    }),
    defineTool({
      name: 'book',
      description: 'Book',
      parameters,
      execute: async ({ run }, context) => {
        await context.once('price', () => appendFileSync(effects, `priced ${run}\n`));
        await context.ask({ message: 'Sure?' });
        await context.once('charge', async () => {
          appendFileSync(effects, `charged ${run}\n`);
          if (stopIn === 'once') await stop();
        });
        if (stopIn === 'tool') await stop();
      },
    }),
  ];
}

function providerOf(...replies: readonly (() => Promise<Partial<LLMResponse>>)[]): LLMProvider {
  let asked = 0;
  return {
    async chat() {
      asked += 1;
      return { content: '', toolCalls: [], finishReason: 'stop', ...(await replies[asked - 1]?.()) };
    },
  };
}

/** Busy-waits, because two processes that wait for a timer would not begin together. */
function waitUntil(at: number): void {
  while (Date.now() < at);
}

let runs = 0;

async function suspend({ at = 'place' }: Extract<Order, { readonly do: 'suspend' }>): Promise<void> {
  runs += 1;
  const args = { run: `${process.pid}-${runs}` };
  const toolCalls = ['count', at].map((name) => ({ id: `${name}_1`, name, arguments: args }));
  using store = new SqliteRunStore({ path });
  const config = { provider: providerOf(async () => ({ toolCalls })), model: 'm', store };
  const run = await runToolLoop({ ...config, tools: toolsStopping('nowhere') }, [
    { role: 'user', content: 'Go' },
  ]);
  tell({ told: run.status, runId: run.state?.runId, pending: run.pending, run: args.run });
}

async function resume(order: Extract<Order, { readonly do: 'resume' }>): Promise<void> {
  const { runId, answers, at, stopIn, aheadMs = 0 } = order;
  using store = new SqliteRunStore({ path, now: () => Date.now() + aheadMs });
  const provider = providerOf(async () => {
    if (stopIn === 'model') await stop();
    return { content: 'Done.' };
  });
  const config = { provider, model: 'm', tools: toolsStopping(stopIn) };
  waitUntil(at);
  try {
    const { status, messages } = await resumeStoredRun(config, { store, runId, leaseMs: 60_000 }, answers);
    tell({ told: status, messages });
  } catch (error) {
    tell({ told: ToolwrightError.is(error) ? error.name : String(error) });
  }
}

function open({ path: file, at }: Extract<Order, { readonly do: 'open' }>): void {
  waitUntil(at);
  try {
    new SqliteRunStore({ path: file }).close();
    tell({ told: 'opened' });
  } catch (error) {
    tell({ told: String(error) });
  }
}

process.on('message', (order: Order) => {
  if (order.do === 'finish') finish();
  else if (order.do === 'open') open(order);
  else void (order.do === 'suspend' ? suspend(order) : resume(order));
});
// Without the parent, only work that the framework left behind could keep this process alive.
process.on('disconnect', () => process.removeAllListeners('message'));
tell({
  told: 'ready',
  hasLoadedSqlite: (process as { moduleLoadList?: string[] }).moduleLoadList?.includes('NativeModule sqlite'),
});
