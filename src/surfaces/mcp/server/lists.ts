import { ProtocolError, ProtocolErrorCode, UriTemplate } from '@modelcontextprotocol/server';
import type { McpApp, ServedAs } from '../../../core/contract/declaration.js';
import type { ToolDefinition } from '../../../core/contract/tool.js';
import { forgetOldest } from '../../../core/kernel/forget-oldest.js';
import { type Fields, isRecord, mapFields } from '../../../core/kernel/json.js';
import type { NameFilter, ToolRegistry } from '../../../run/call/tool-registry.js';
import { titleText, toolsetsOf } from '../../../run/call/tool-to-schema.js';

const MARK = 'after:';
/** Most servers have few groups of callers with the same view. */
const MAX_VIEWS = 100;

/** The lists of whose changes clients are notified. */
export const LISTS = ['tools', 'prompts', 'resources'] as const;
type ListName = (typeof LISTS)[number];

/** The lists of a registry or view; valid until something is registered. */
interface Listing {
  /** The same array until something is registered. */
  readonly definitions: readonly unknown[];
  readonly tools: readonly ToolDefinition[];
  readonly positions: ReadonlyMap<string, number>;
  /** The descriptions of its toolsets. */
  readonly titles: string | undefined;
  /** The MCP Apps of its tools, by URI. */
  readonly apps: ReadonlyMap<string, McpApp>;
}

/** Caches the lists of callers, so that the cost of reading all pages is linear in the number of tools. */
export class ToolLists {
  readonly #registry: ToolRegistry;
  readonly #views = new WeakMap<ToolRegistry, Map<string, ToolRegistry>>();
  readonly #listings = new WeakMap<ToolRegistry, Listing>();
  /** What each list contained when {@link changed} was last called. */
  #known: Readonly<Record<ListName, readonly unknown[]>>;

  constructor(registry: ToolRegistry) {
    this.#registry = registry;
    this.#known = this.#contents();
  }

  /** The lists that have changed since the last call. */
  changed(): readonly ListName[] {
    const before = this.#known;
    const now = this.#contents();
    this.#known = now;
    return LISTS.filter(
      (list) =>
        now[list].length !== before[list].length ||
        now[list].some((entry, position) => entry !== before[list][position]),
    );
  }

  #contents(): Readonly<Record<ListName, readonly unknown[]>> {
    const registry = this.#registry;
    return {
      tools: registry.tools(),
      prompts: registry.part('prompt').tools(),
      resources: [...registry.part('resource').tools(), ...this.apps().values()],
    };
  }

  view(filter: NameFilter | undefined, of = this.#registry): ToolRegistry {
    if (filter === undefined) return of;
    // The key is JSON, which drops invalid values such as an unset `deny`; the view refuses these.
    if (!Object.values(filter ?? {}).every(Array.isArray)) return of.view(filter);
    const views = this.#views.get(of) ?? new Map<string, ToolRegistry>();
    this.#views.set(of, views);
    const key = JSON.stringify(filter);
    const view = views.get(key) ?? of.view(filter);
    // The least recently used view comes first.
    views.delete(key);
    views.set(key, view);
    forgetOldest(views, MAX_VIEWS);
    return view;
  }

  /**
   * A page of tools, prompts or resources in the order of registration. The cursor is the name of the last entry of the
   * page before, so that registrations in between shift no entries.
   */
  page(
    registry: ToolRegistry,
    size: number,
    cursor: string | undefined,
  ): { readonly listed: readonly ToolDefinition[]; readonly nextCursor?: string } {
    const { tools, positions } = this.#listingOf(registry);
    const start = cursor === undefined ? 0 : positionAfter(cursor, positions);
    const page = tools.slice(start, start + size);
    const last = page.at(-1);
    const isComplete = last === undefined || start + size >= tools.length;
    return {
      listed: page,
      ...(isComplete ? {} : { nextCursor: Buffer.from(MARK + last.name).toString('base64url') }),
    };
  }

  /** The descriptions of all toolsets. */
  titles(): string | undefined {
    return this.#listingOf(this.#registry).titles;
  }

  /** The MCP Apps of the tools, by URI. */
  apps(registry = this.#registry): Listing['apps'] {
    return this.#listingOf(registry).apps;
  }

  #listingOf(registry: ToolRegistry): Listing {
    const definitions = registry.toProviderDefs();
    const known = this.#listings.get(registry);
    if (known?.definitions === definitions) return known;
    // Tools that the client executes are not served: MCP cannot return their calls to the client.
    const tools = registry.tools().filter(({ execution }) => execution !== 'client');
    const positions = new Map(tools.map(({ name }, index) => [name, index]));
    const described = toolsetsOf(tools).filter(({ title }) => title.description !== undefined);
    const titles = described.map(({ title }) => titleText(title)).join('\n') || undefined;
    const apps = new Map(
      tools.flatMap(({ ui: app }) => (app === undefined ? [] : [[app.uri, app] as const])),
    );
    const listing = { definitions, tools, positions, titles, apps };
    this.#listings.set(registry, listing);
    return listing;
  }
}

function positionAfter(cursor: string, positions: Listing['positions']): number {
  const text = Buffer.from(cursor, 'base64url').toString();
  const last = text.startsWith(MARK) ? text.slice(MARK.length) : undefined;
  const position = last === undefined ? undefined : positions.get(last);
  if (position !== undefined) return position + 1;
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'Unknown cursor: request the first page again');
}

type ServedResource = Extract<ServedAs, { readonly kind: 'resource' }>;
type ServedCompletion = Extract<ServedAs, { readonly kind: 'completion' }>;

/** How a resource is served; set for every definition in this part of a registry. */
export function servedAs({ served }: ToolDefinition): ServedResource {
  return served as ServedResource;
}

/** What a completion completes; set for every definition in this part of a registry. */
export function servedCompletion({ served }: ToolDefinition): ServedCompletion {
  return served as ServedCompletion;
}

/** Whether a resource is listed as a template. */
export function isTemplate(resource: ToolDefinition): boolean {
  return UriTemplate.isTemplate(servedAs(resource).uri);
}

/** The resource of a URI, with the values of template variables; an exact URI takes precedence over templates. */
export function findResource(
  resources: ToolRegistry,
  uri: string,
): { readonly resource: ToolDefinition; readonly variables: Fields } | undefined {
  const all = resources.tools();
  const same = all.find((resource) => servedAs(resource).uri === uri);
  if (same !== undefined) return { resource: same, variables: {} };
  for (const resource of all) {
    const found = isTemplate(resource) ? new UriTemplate(servedAs(resource).uri).match(uri) : null;
    if (found === null) continue;
    return { resource, variables: mapFields(found, (value) => decode(value)) };
  }
  return undefined;
}

/** The resource of a URI, or the tools of an MCP App; empty if the registry has neither. */
export function namedByUri(registry: ToolRegistry, uri: string): readonly ToolDefinition[] {
  const ofApp = registry.tools().filter(({ ui }) => ui?.uri === uri);
  if (ofApp.length > 0) return ofApp;
  const found = findResource(registry.part('resource'), uri);
  return found === undefined ? [] : [found.resource];
}

/** The resources in the parameters of `subscriptions/listen`. */
export function subscribedUris(params: unknown): readonly string[] {
  const notifications = isRecord(params) && isRecord(params.notifications) ? params.notifications : {};
  const { resourceSubscriptions: uris } = notifications;
  return Array.isArray(uris) ? uris.map(String) : [];
}

function decode(value: string | string[]): unknown {
  if (Array.isArray(value)) return value.map(decode);
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
