import { randomBytes } from 'node:crypto';
import type { McpApp, McpAppCsp } from '../../core/contract/declaration.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import { forgetOldest } from '../../core/kernel/forget-oldest.js';
import { resultText } from '../../run/call/result-text.js';
import type { ToolRegistry } from '../../run/call/tool-registry.js';
import { appFaults, htmlOf } from '../mcp/server/apps.js';
import { listedTool, structuredOutput, writeCallResult } from '../mcp/server/call-result.js';
import type { TrialCall, TrialCalls } from './trials.js';
import type { SeenCall } from './watched-calls.js';

/** Views that the page may still load. */
const MAX_DOCUMENTS = 50;

interface AppDocument {
  readonly html: string;
  readonly policy: string;
}

/** The documents of MCP Apps that the page shows, each at an address that cannot be guessed. */
export class AppDocuments {
  readonly #documents = new Map<string, AppDocument>();

  /**
   * Makes the view of a tool available to the page.
   *
   * @throws Error naming the mistakes in the view.
   */
  async open(tool: ToolDefinition & { readonly ui: McpApp }) {
    const faults = appFaults(tool);
    if (faults.length > 0)
      throw new Error(faults.map(({ problem, fix }) => `${problem}. Write instead: ${fix}`).join('\n'));
    const { permissions = {}, csp, prefersBorder } = tool.ui;
    const id = randomBytes(24).toString('base64url');
    this.#documents.set(id, { html: await htmlOf(tool.ui), policy: policyOf(csp) });
    forgetOldest(this.#documents, MAX_DOCUMENTS);
    const features = Object.keys(permissions).map((name) =>
      name === 'clipboardWrite' ? 'clipboard-write' : name,
    );
    return {
      address: `apps/${id}`,
      allow: features.join('; '),
      prefersBorder,
      tool: listedTool(tool, false),
    };
  }

  response(id: string): Response | undefined {
    const document = this.#documents.get(id);
    if (document === undefined) return undefined;
    const headers = {
      ...PRIVATE_HEADERS,
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': document.policy,
    };
    return new Response(document.html, { headers });
  }
}

/** Headers of every response of the inspector. */
export const PRIVATE_HEADERS = {
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
};

/**
 * The policy of a view. `sandbox` gives it an origin of its own, so it needs no second frame between it and the page,
 * and `'self'` would not be the view but the inspector.
 */
function policyOf({
  connectDomains = [],
  resourceDomains = [],
  frameDomains = [],
  baseUriDomains = [],
}: McpAppCsp = {}): string {
  const from = (directive: string, ...sources: readonly string[]) =>
    `${directive} ${sources.length === 0 ? "'none'" : sources.join(' ')}`;
  return [
    "default-src 'none'",
    from('script-src', "'unsafe-inline'", ...resourceDomains),
    from('style-src', "'unsafe-inline'", ...resourceDomains),
    from('img-src', 'data:', ...resourceDomains),
    from('font-src', 'data:', ...resourceDomains),
    from('media-src', 'data:', ...resourceDomains),
    from('connect-src', ...connectDomains),
    from('frame-src', ...frameDomains),
    from('base-uri', ...baseUriDomains),
    "form-action 'none'",
    "frame-ancestors 'self'",
    'sandbox allow-scripts',
  ].join('; ');
}

/** The arguments of a call that has ended, with its result or why it was aborted, as the tool's view receives them. */
export function appData(tool: ToolDefinition | undefined, { invocation }: SeenCall) {
  if (tool?.ui === undefined || invocation === undefined || invocation.status === 'suspended')
    return undefined;
  const { record } = invocation;
  if (record.status === 'aborted') return { input: record.arguments, cancelled: resultText(record.result) };
  return { input: record.arguments, result: writeCallResult(record, structuredOutput(tool)) };
}

/** Makes a call for a view, as a host does; only tools that views may call. */
export async function callForApp(registry: ToolRegistry, trials: TrialCalls, call: TrialCall) {
  const name = call.tool;
  const tool = registry.offered(name);
  const { visibility = ['app'] } = Object(tool?._meta?.ui) as { readonly visibility?: readonly string[] };
  if (tool === undefined || !visibility.includes('app'))
    throw new Error(`the view may not call '${name}': there is no such tool, or its visibility lacks 'app'`);
  const { invocation } = await trials.make(call);
  if (invocation === undefined) throw new Error(`the call of '${name}' has not ended`);
  if (invocation.status !== 'suspended') return writeCallResult(invocation.record, structuredOutput(tool));
  const text = `The call of '${name}' waits for an answer, which is given under Calls.`;
  return { content: [{ type: 'text', text }], isError: true };
}
