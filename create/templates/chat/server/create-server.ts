import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { extname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { createChatHandler } from 'toolwright/chat';
import { SqliteRunStore } from 'toolwright/stores';
import { type ChosenModel, chooseModel } from './model.js';
import { tools } from './tools.js';

const SESSION = /(?:^|; )session=([0-9a-f-]{36})/;

/** The chat at `/api/chat`, stored in an SQLite file, and the built page at `/`. */
export async function createChatServer({
  path,
  model,
}: {
  readonly path: string;
  readonly model?: ChosenModel;
}) {
  const chat = createChatHandler({
    ...(model ?? (await chooseModel())),
    tools,
    store: new SqliteRunStore({ path }),
    leaseMs: 10_000, // continue a turn this long after its process died
    systemPrompt: 'You help customers of a tea shop. Answer briefly.',
    authenticate: (request) => {
      const [, session] = SESSION.exec(request.headers.get('cookie') ?? '') ?? [];
      return session === undefined ? undefined : { user: session };
    },
  });
  const server: Server = createServer((request, response) => {
    if (request.url?.startsWith('/api/chat')) chat.node(request, response);
    else if (request.url === '/api/session') openSession(request, response);
    else void servePage(request, response);
  });
  return {
    server,
    close: async () => {
      const served = new Promise((resolve) => server.close(resolve));
      await chat.close(); // waits for the turns that run here
      await Promise.race([served, wait(5_000, undefined, { ref: false })]); // readers receive the rest
      server.closeAllConnections();
    },
  };
}

/** Every browser has its own chats. Replace this by the sign-in of your application. */
function openSession({ headers }: IncomingMessage, response: ServerResponse): void {
  if (!SESSION.test(headers.cookie ?? ''))
    response.setHeader('set-cookie', `session=${randomUUID()}; Path=/; HttpOnly; SameSite=Lax`);
  response.writeHead(204).end();
}

const TYPES: Record<string, string> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' };

async function servePage({ url = '/' }: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    const { pathname } = new URL(url, 'http://localhost');
    const file = join('/', pathname === '/' ? 'index.html' : pathname); // never above the folder
    const content = await readFile(join(import.meta.dirname, '..', 'dist', file));
    response
      .writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream' })
      .end(content);
  } catch {
    response.writeHead(404).end('Not found');
  }
}
