import { UriTemplate } from '@modelcontextprotocol/server';
import type { ServedAs } from '../../../core/contract/declaration.js';
import type { ToolDefinition } from '../../../core/contract/tool.js';
import { type Fields, isRecord, mapFields } from '../../../core/kernel/json.js';
import type { ToolRegistry } from '../../../run/call/tool-registry.js';

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
