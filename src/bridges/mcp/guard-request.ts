import {
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  originValidationResponse,
  validateHostHeader,
} from '@modelcontextprotocol/server';
import type { McpServerOptions } from './mcp-server-options.js';
import { refuseRequest } from './refuse-request.js';

/**
 * Refuses requests under a foreign name: a page whose host name was pointed at this machine (DNS rebinding)
 * sends its own. Nothing for a request that may pass.
 */
export function guardRequest(
  request: Request,
  { allowedHosts = localhostAllowedHostnames(), allowedOrigins }: McpServerOptions,
): Response | undefined {
  if (allowedHosts !== 'any') {
    // A request that no server made has no such header; its address says the same.
    const host = request.headers.get('host') ?? new URL(request.url).host;
    const checked = validateHostHeader(host, [...allowedHosts]);
    if (!checked.ok) return refuseRequest(403, checked.message);
  }
  const origins = allowedOrigins ?? (allowedHosts === 'any' ? localhostAllowedOrigins() : allowedHosts);
  return origins === 'any' ? undefined : originValidationResponse(request, [...origins]);
}
