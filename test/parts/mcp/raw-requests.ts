/** The headers of every request of an HTTP client. */
export const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

/** The first request of a 2025-11-25 client. */
export const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
};
