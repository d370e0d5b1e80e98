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

/** The role of a process: both serve chats, but only workers run turns and jobs. */
export interface FleetProcess extends Settings {
  readonly role: 'web' | 'worker';
  /** 0: any free port. */
  readonly port: number;
}

/** The sample users by their token. */
const USERS = new Map([
  ['Bearer token-one', { user: 'one' }],
  ['Bearer token-two', { user: 'two' }],
]);

/** Starts a process of the fleet; resolves with its address and a function that closes it. */
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
    /** Starts no more turns, and waits for those that run here. */
    async close(): Promise<void> {
      server.close();
      await conversations.close();
      // Readers reconnect to another process.
      server.closeAllConnections();
      await engine.close();
      await store.close();
      await pool.end();
    },
  };
}
