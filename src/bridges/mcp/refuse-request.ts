import { INTERNAL_ERROR } from '@modelcontextprotocol/server';

/** JSON-RPC leaves these numbers to servers. */
const SERVER_ERROR = -32_000;

/** The answer to an HTTP request that never becomes a message. */
export function refuseRequest(
  status: number,
  message: string,
  headers: Record<string, string> = {},
): Response {
  const code = status === 500 ? INTERNAL_ERROR : SERVER_ERROR;
  return Response.json({ jsonrpc: '2.0', error: { code, message }, id: null }, { status, headers });
}
