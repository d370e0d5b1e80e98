import type { EventEmitter } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import type { BackendFactory, IQueueBackend } from 'bullmq';
import { withinLimits } from '../kernel/async.js';

/** A client of `pg`, and a pool of them, as far as their losses are heard. */
interface Client {
  on(event: 'error', listener: () => void): unknown;
}
interface Pool {
  on(event: 'acquire', listener: (client: Client) => void): unknown;
}

/** What BullMQ makes the connection from that hears what is told over channels. */
interface ClientModule {
  readonly Client: new (config: unknown) => EventEmitter;
}

/** What BullMQ's classes have in common. */
interface Openable {
  waitUntilReady(): Promise<unknown>;
  /** With force, a worker waits for no jobs. */
  close(force?: boolean): Promise<unknown>;
  getBackend(): Pick<IQueueBackend, 'close'>;
}

/** How long a broker may be away until its connections are cut at the end. */
const AWAY_MS = 2_000;
const LOOK_EVERY_MS = 100;

const heardPools = new WeakSet<Pool>();
const heardClients = new WeakSet<Client>();

/**
 * A backend whose connections may be cut. On PostgreSQL, BullMQ takes one out of its pool without listening to its
 * loss, and listens to that of the connection for channels a moment too late: either would end the process. What was
 * under way rejects all the same.
 */
export function outlivingCuts<Factory extends BackendFactory<IQueueBackend, unknown> | undefined>(
  factory: Factory,
): Factory {
  if (factory === undefined) return factory;
  const outliving: BackendFactory<IQueueBackend, unknown> = (...made) => {
    const backend = factory(...made);
    const { connection } = backend as {
      readonly connection?: { readonly pool?: Pool; pgModule?: ClientModule };
    };
    if (connection?.pool !== undefined) hear(connection.pool);
    if (connection?.pgModule !== undefined)
      connection.pgModule = { Client: outlivingClient(connection.pgModule) };
    return backend;
  };
  return outliving as Factory;
}

function outlivingClient({ Client }: ClientModule): ClientModule['Client'] {
  return class OutlivingClient extends Client {
    override emit(event: string, ...told: unknown[]): boolean {
      return (event !== 'error' || this.listenerCount('error') > 0) && super.emit(event, ...told);
    }
  };
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

/**
 * Closes in good order, however long the jobs of a worker take. Where the broker is away, that would last until it is
 * back: then the connections are cut, and what was not told is found by others when leases have ended.
 */
export async function closeOrCut(opened: Openable, looking: Looking = {}): Promise<void> {
  const { asked = 'before' } = looking;
  if (!(await isThere(opened, { asks: asked === 'before' }))) return cut(opened);
  const closed = new AbortController();
  const closing = opened.close().finally(() => closed.abort());
  await Promise.race([closing, cutWhenAway(opened, closed.signal, { asks: asked !== 'never' })]);
}

/** When a broker is asked whether it is there. */
interface Looking {
  /**
   * `while`: of a worker, which takes no more jobs from the moment at which it closes; `never`: where a connection
   * waits for news, and answers nothing until they come.
   */
  readonly asked?: 'before' | 'while' | 'never';
}

async function cutWhenAway(opened: Openable, closed: AbortSignal, asking: Asking): Promise<void> {
  while (!closed.aborted && (await isThere(opened, asking)))
    await pause(AWAY_MS, undefined, { signal: closed }).catch(() => {});
  if (!closed.aborted) await cut(opened);
}

/** Closes without a word to the broker. */
export async function cut(opened: Openable): Promise<void> {
  const cutting = opened.getBackend().close(true);
  // So that it asks for nothing more; by itself, it would first tell the broker that it goes.
  opened.close(true).catch(() => {});
  await withinLimits(cutting, LIMITS).catch(() => {});
}

/** A client of Redis as far as it is asked how it is; a pool of PostgreSQL has no state. */
interface Connected {
  readonly status?: string;
  /** What BullMQ asks of every kind of client. */
  get?(key: string): Promise<unknown>;
}

/** Whether it is more than looked at. */
interface Asking {
  readonly asks: boolean;
}

/** Whether the broker can be told something, perhaps after a moment. */
async function isThere(opened: Openable, { asks }: Asking): Promise<boolean> {
  const { client } = opened.getBackend() as { readonly client?: Promise<Connected> };
  let known: Connected | undefined;
  try {
    known = await withinLimits(
      opened.waitUntilReady().then(() => client),
      LIMITS,
    );
  } catch {
    return false;
  }
  for (let waited = 0; !isLive(known); waited += LOOK_EVERY_MS) {
    if (waited >= AWAY_MS) return false;
    await pause(LOOK_EVERY_MS);
  }
  return !asks || (await answers(known)) || answers(known);
}

/** A connection may stay while nobody answers any more. A failure is an answer: what is asked then fails, too. */
async function answers(known: Connected | undefined): Promise<boolean> {
  if (known?.status === 'wait') return true;
  const asked = known?.get?.('toolwright');
  if (asked === undefined) return true;
  return withinLimits(
    asked.then(
      () => true,
      () => true,
    ),
    LIMITS,
  ).catch(() => false);
}

const LIMITS = { signal: undefined, timeoutMs: AWAY_MS };

/** What clients of one Redis and of a cluster are when they are connected, and those that connect when they are used. */
function isLive(known: Connected | undefined): boolean {
  const { status } = known ?? {};
  // A pool of PostgreSQL has no state: it connects anew for what it is asked, or rejects.
  return status === undefined || status === 'ready' || status === 'connect' || status === 'wait';
}
