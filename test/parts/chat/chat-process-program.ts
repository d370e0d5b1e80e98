// A process that serves a chat from a file, or from `<PostgreSQL’s address>#<schema>`, and runs its turns. Its model
// pauses in the middle of a text until the process receives `go`.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PostgresRunStore } from '../../../src/durable/postgres/index.js';
import { SqliteRunStore } from '../../../src/durable/stores/index.js';
import { Conversations, type LLMProvider } from '../../../src/index.js';
import { createChatHandler } from '../../../src/surfaces/chat/index.js';

const [place = ''] = process.argv.slice(2);
const gate = Promise.withResolvers<void>();
process.stdin.setEncoding('utf8').on('data', (text) => {
  if (String(text).includes('go')) gate.resolve();
});

const provider: LLMProvider = {
  chat: () => Promise.reject(new Error('only streams')),
  async *stream() {
    for (const text of ['one ', 'two ']) yield { type: 'text-delta', text };
    await gate.promise;
    for (const text of ['three ', 'four']) yield { type: 'text-delta', text };
    const response = { content: 'one two three four', toolCalls: [], finishReason: 'stop' as const };
    yield { type: 'response', response };
  },
};

const [connectionString = '', schema = ''] = place.split('#');
const store =
  schema === '' ? new SqliteRunStore({ path: place }) : new PostgresRunStore({ connectionString, schema });
const config = { provider, model: 'm' };
const conversations = new Conversations({ store, config, leaseMs: 500, pollMs: 20 });
const authenticate = ({ headers }: Request): unknown => headers.get('x-user');
const handlers = {
  events: createChatHandler({ conversations, authenticate, protocol: 'events' }),
  'ui-messages': createChatHandler({ conversations, authenticate }),
};
const server = createServer((request, response) =>
  handlers[request.url?.startsWith('/events') ? 'events' : 'ui-messages'].node(request, response),
);
server.listen(0, '127.0.0.1', () =>
  console.log(`listening: http://127.0.0.1:${(server.address() as AddressInfo).port}`),
);
