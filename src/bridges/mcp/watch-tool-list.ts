import { setTimeout as wait } from 'node:timers/promises';
import type { Client } from '@modelcontextprotocol/client';

/** Who wants to know, and for how long. */
export interface ToolListWatcher {
  readonly signal: AbortSignal;
  readonly onChange: () => void;
  readonly onError: (error: unknown) => void;
}

const METHOD = 'notifications/tools/list_changed';
/** Before a broken subscription is opened again. */
const PAUSE_MS = 1_000;

/**
 * Hears of changes of a server's list. A 2025-11-25 server tells its clients by itself; to one of 2026-07-28 a
 * client has to subscribe. Takes the client's handler for that notification.
 */
export function watchToolList(client: Client, watcher: ToolListWatcher): void {
  client.setNotificationHandler(METHOD, () => {
    if (!watcher.signal.aborted) watcher.onChange();
  });
  watcher.signal.addEventListener('abort', () => client.removeNotificationHandler(METHOD), { once: true });
  const isOffered = client.getServerCapabilities()?.tools?.listChanged === true;
  if (isOffered && client.getProtocolEra() === 'modern') void subscribe(client, watcher);
}

async function subscribe(client: Client, { signal, onChange, onError }: ToolListWatcher): Promise<void> {
  try {
    while (!signal.aborted) {
      const subscription = await client.listen({ toolsListChanged: true }, { signal });
      // The server may have closed it on purpose; asking again would be asking too much.
      if ((await subscription.closed) !== 'remote' || client.transport === undefined) return;
      await wait(PAUSE_MS, undefined, { signal, ref: false });
      onChange();
    }
  } catch (error) {
    if (!signal.aborted) onError(error);
  }
}
