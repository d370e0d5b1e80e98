import 'reflect-metadata';
import { expect, test } from '@jest/globals';
import { discoverTools, MemoryJobEngine, runJobs, Tool, ToolRegistry, Toolset } from 'toolwright';
import { MemoryRunStore } from 'toolwright/stores';

const did: string[] = [];
const times: number[] = [];

@Toolset()
class Work {
  @Tool({ description: 'Waits', background: { delay: 300 } })
  late(): void {
    did.push('late');
  }

  @Tool({ description: 'May wait', background: { priority: 5 } })
  low(): void {
    did.push('low');
  }

  @Tool({ description: 'Fails once', background: { attempts: 2, backoff: { type: 'fixed', delay: 100 } } })
  twice(): void {
    times.push(performance.now());
    if (times.length === 1) throw new Error('not yet');
    did.push('twice');
  }

  @Tool({ description: 'Goes first', background: true })
  first(): void {
    did.push('first');
  }
}

test('a job runs with the priority, delay and backoff of the tool’s `background`', async () => {
  const engine = new MemoryJobEngine();
  const store = new MemoryRunStore();
  const tools = new ToolRegistry({ engine, store }).register(...discoverTools({ toolsets: [Work] }));
  for (const name of ['late', 'low', 'twice', 'first']) await tools.execute(name, {});
  expect(did).toEqual([]);
  const ended = Promise.withResolvers<void>();
  let completions = 0;
  const onAsyncResult = () => {
    completions += 1;
    if (completions === 4) ended.resolve();
  };
  const worker = await runJobs({ engine, store, tools, concurrency: 1, onAsyncResult });
  await ended.promise;
  await worker.close();
  await engine.close();
  expect(did.toSorted()).toEqual(['first', 'late', 'low', 'twice']);
  expect(did.indexOf('first')).toBeLessThan(did.indexOf('low'));
  expect(did.indexOf('first')).toBeLessThan(did.indexOf('late'));
  // Timers may fire a millisecond early.
  expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThan(98);
});
