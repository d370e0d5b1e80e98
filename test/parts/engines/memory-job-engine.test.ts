import { MemoryJobEngine } from 'toolwright';
import { testAll } from './engine-tests.js';

const engines = new Map<string, MemoryJobEngine>();

testAll('MemoryJobEngine', {
  open(queue) {
    const engine = engines.get(queue) ?? new MemoryJobEngine();
    engines.set(queue, engine);
    return engine;
  },
});
