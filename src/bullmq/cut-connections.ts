import type { BackendFactory, IQueueBackend } from 'bullmq';

/** A client of `pg`, and a pool of them, as far as their losses are heard. */
interface Client {
  on(event: 'error', listener: () => void): unknown;
}
interface Pool {
  on(event: 'acquire', listener: (client: Client) => void): unknown;
}

/** What BullMQ's classes have in common. */
interface Openable {
  waitUntilReady(): Promise<unknown>;
  close(): Promise<unknown>;
}

const heardPools = new WeakSet<Pool>();
const heardClients = new WeakSet<Client>();

/**
 * A backend whose connections may be cut. On PostgreSQL, BullMQ takes one out of its pool without listening to its
 * loss, which would end the process; what was under way rejects all the same.
 */
export function outlivingCuts<Factory extends BackendFactory<IQueueBackend, unknown> | undefined>(
  factory: Factory,
): Factory {
  if (factory === undefined) return factory;
  const outliving: BackendFactory<IQueueBackend, unknown> = (...made) => {
    const backend = factory(...made);
    const { connection } = backend as { readonly connection?: { readonly pool?: Pool } };
    if (connection?.pool !== undefined) hear(connection.pool);
    return backend;
  };
  return outliving as Factory;
}

function hear(pool: Pool): void {
  if (heardPools.has(pool)) return;
  heardPools.add(pool);
  pool.on('acquire', (client) => {
    if (!heardClients.has(client)) client.on('error', () => {});
    heardClients.add(client);
  });
}

/** What was not ready once never is, for BullMQ: it is closed, and forgotten by those who would use it again. */
export function dropUnready(opened: Openable, forget: () => void): void {
  opened.waitUntilReady().catch(() => {
    forget();
    close(opened);
  });
}

/** Closes what is of no use; nobody waits for it, and nobody needs to know how it went. */
export function close(opened: Openable): void {
  opened.close().catch(() => {});
}
