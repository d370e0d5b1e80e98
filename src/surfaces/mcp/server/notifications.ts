import { AsyncLocalStorage } from 'node:async_hooks';
import type { ServerEvent, ServerEventBus } from '@modelcontextprotocol/server';
import { type Fields, isRecord } from '../../../core/kernel/json.js';
import { STATELESS } from './ask-client.js';
import type { McpCaller } from './options.js';
import { callerOf, type ServedTools } from './request.js';
import { namedByUri, subscribedUris } from './resource-uris.js';
import type { RegistryMcpServer } from './sdk-server.js';
import type { LISTS } from './tool-lists.js';

/** A client that is notified of changes. */
interface Receiver {
  /** As its last request described it. */
  caller(): McpCaller;
  wants(change: ServerEvent): boolean;
  send(change: ServerEvent): Promise<void> | void;
  /** Ends its stream: the client opens another one with a new token. A session stores what is sent meanwhile. */
  endStream(): void;
}

/** A client that opens a stream with `subscriptions/listen`. */
interface Subscriber {
  readonly caller: McpCaller;
  readonly uris: readonly string[];
  endStream(): void;
}

/**
 * Notifies clients of changes, in the order in which they happened. Rights are checked before each notification,
 * because a token may have expired, or a right may be lost, since the client subscribed.
 */
export class Notifications implements ServerEventBus {
  readonly #served: ServedTools;
  readonly #onError: (error: unknown) => void;
  /** The last notification of each client. */
  readonly #last = new Map<Receiver, Promise<void>>();
  readonly #opening = new AsyncLocalStorage<Subscriber>();

  constructor(served: ServedTools, onError: (error: unknown) => void) {
    this.#served = served;
    this.#onError = onError;
  }

  publish(change: ServerEvent): void {
    for (const [receiver, last] of this.#last) {
      if (!receiver.wants(change)) continue;
      const next = last.then(() => this.#notify(receiver, change)).catch(this.#onError);
      this.#last.set(receiver, next);
    }
  }

  /** Adds a session or a lasting connection. The returned function removes it. */
  add(mcp: RegistryMcpServer): () => void {
    const { server, subscribed } = mcp;
    return this.#add({
      caller: () => callerOf(mcp.session ?? {}, server),
      // The SDK itself drops what a 2026-07-28 client has not subscribed to.
      wants: (change) =>
        change.kind === 'resource_updated'
          ? subscribed.has(change.uri) || server.getNegotiatedProtocolVersion() === STATELESS
          : server.getCapabilities()[listOf(change)] !== undefined,
      send: (change) =>
        change.kind === 'resource_updated'
          ? server.sendResourceUpdated({ uri: change.uri })
          : server.notification({ method: `notifications/${listOf(change)}/list_changed` }),
      endStream: () => mcp.session?.endStream(),
    });
  }

  /** Opens a stream of `subscriptions/listen`, for which the SDK calls {@link subscribe}. */
  open(subscriber: Subscriber, listen: () => Promise<Response>): Promise<Response> {
    return this.#opening.run(subscriber, listen);
  }

  subscribe(send: (change: ServerEvent) => void): () => void {
    const { caller, uris, endStream } = this.#opening.getStore() as Subscriber;
    const wants = (change: ServerEvent) => change.kind !== 'resource_updated' || uris.includes(change.uri);
    return this.#add({ caller: () => caller, wants, send, endStream });
  }

  /** The first of the resources that `visible` hides from a caller. */
  async hidden(caller: McpCaller, uris: readonly string[]): Promise<string | undefined> {
    const { registry, lists, options } = this.#served;
    if (options.visible === undefined || uris.length === 0) return undefined;
    const view = lists.view(await options.visible(caller));
    return uris.find((uri) => namedByUri(view, uri).length === 0 && namedByUri(registry, uri).length > 0);
  }

  #add(receiver: Receiver): () => void {
    this.#last.set(receiver, Promise.resolve());
    return () => this.#last.delete(receiver);
  }

  async #notify(receiver: Receiver, change: ServerEvent): Promise<void> {
    const caller = receiver.caller();
    const { headers, authInfo } = caller;
    const { resource } = this.#served;
    const { expiresAt = Number.POSITIVE_INFINITY } = authInfo ?? {};
    const isExpired = expiresAt * 1_000 <= Date.now();
    if (isExpired || (headers && (await resource?.authenticate({ headers }, authInfo)) instanceof Response))
      receiver.endStream();
    if (change.kind === 'resource_updated') {
      const { uri } = change;
      const request = { method: 'resources/subscribe', params: { uri } };
      if (headers && resource?.authorize([request], authInfo) !== undefined) return;
      if ((await this.hidden(caller, [uri])) !== undefined) return;
    }
    // It may have left meanwhile.
    if (this.#last.has(receiver)) await receiver.send(change);
  }
}

function listOf({ kind }: ServerEvent): (typeof LISTS)[number] {
  return kind.split('_', 1)[0] as (typeof LISTS)[number];
}

/** The client of a `subscriptions/listen` request, and the resources that it subscribes to. */
export function subscriptionOf(
  { params }: Fields,
  { headers }: Request,
  authInfo: McpCaller['authInfo'],
): Omit<Subscriber, 'endStream'> {
  const meta = isRecord(params) && isRecord(params._meta) ? params._meta : {};
  return { caller: callerOf({ authInfo, headers }, undefined, meta), uris: subscribedUris(params) };
}
