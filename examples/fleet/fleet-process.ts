import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Pool } from 'pg';
import { Conversations, discoverTools, ToolRegistry } from 'toolwright';
import { bullmqEngine } from 'toolwright/bullmq';
import { createChatHandler } from 'toolwright/chat';
import { PostgresRunStore } from 'toolwright/postgres';
import { container } from 'tsyringe';
import { chooseModel } from './choose-model.js';
import { logger } from './logger.js';
import { OrderBook } from './order-book.js';
import { OrderTools, ReportPace } from './order-tools.js';
import type { Settings } from './settings.js';
import './toolwright.gen.js';

/** What a process of the fleet does: both serve chats, and only workers take turns and do jobs. */
export interface FleetProcess extends Settings {
  readonly role: 'web' | 'worker';
  /** 0: any that is free. */
  readonly port: number;
}

/** The users of the sample, by the token that they send. */
const USERS = new Map([
  ['Bearer token-one', { user: 'one' }],
  ['Bearer token-two', { user: 'two' }],
]);

/** Opens a process of the fleet; resolves with its address and how it is closed. */
export async function openFleetProcess({ role, port, databaseUrl, redisUrl, ...settings }: FleetProcess) {
  const { name, leaseMs, reportMs } = settings;
  const pool = new Pool({ connectionString: databaseUrl });
  pool.on('error', (error) => logger.warn('A connection to PostgreSQL was lost', { error }));
  const orders = new OrderBook(pool, name);
  await orders.prepare();
  container.register(OrderBook, { useValue: orders });
  container.register(ReportPace, { useValue: new ReportPace(reportMs) });
  const tools = new ToolRegistry();
  tools.register(...discoverTools({ toolsets: [OrderTools] }));

  const store = new PostgresRunStore({ pool, schema: name });
  const { hostname, port: redisPort } = new URL(redisUrl);
  const connection = { host: hostname, port: Number(redisPort || 6379) };
  const engine = bullmqEngine({ connection, queue: name, leaseMs, logger });
  const conversations = new Conversations({
    store,
    engine,
    config: { ...(await chooseModel(process.env)), tools },
    takesTurns: role === 'worker',
    leaseMs,
    logger,
  });

  const authenticate = ({ headers }: Request) => USERS.get(headers.get('authorization') ?? '');
  const chat = createChatHandler({ conversations, authenticate, protocol: 'events', logger });
  const server = createServer(chat.node).listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Takes no more turns, and lets those end that run here. */
    async close(): Promise<void> {
      server.close();
      await conversations.close();
      // Readers come back to another process.
      server.closeAllConnections();
      await engine.close();
      await store.close();
      await pool.end();
    },
  };
}
