// A process that only reads a conversation in a file. `stored-run-process.ts` starts it.

import { SqliteRunStore } from '../../src/durable/stores/index.js';
import { Conversations } from '../../src/index.js';

const [file = ''] = process.argv.slice(2);

const store = new SqliteRunStore({ path: file });
const provider = { chat: () => Promise.reject(new Error('It takes no turns')) };
const front = new Conversations({ store, config: { provider, model: 'm' }, takesTurns: false });
process.send?.({ told: 'ready' });
for await (const { event } of front.events('c1')) if (event.type === 'turn-end') break;
process.send?.({ told: 'read' });
await front.idle('c2');
process.send?.({ told: 'idle' });
