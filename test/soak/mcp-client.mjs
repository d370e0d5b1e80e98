// Simulates a client of an MCP server over raw HTTP, from its first request to its last.
const LEGACY = '2025-11-25';
const MODERN = '2026-07-28';
const CLIENT = { name: 'soak', version: '1.0.0' };
const META = {
  'io.modelcontextprotocol/protocolVersion': MODERN,
  'io.modelcontextprotocol/clientInfo': CLIENT,
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** Runs a client of a random protocol revision and returns its kind. Throws if an answer is wrong. */
export function runClient({ random, url }) {
  return random.chance(0.5) ? runModernClient({ random, url }) : runLegacyClient({ random, url });
}

async function runModernClient({ random, url }) {
  const send = (method, params, signal) =>
    post({
      url,
      signal,
      body: { id: 1, method, params: { ...params, _meta: META } },
      headers: {
        'mcp-protocol-version': MODERN,
        'mcp-method': method,
        ...(params.name === undefined ? {} : { 'mcp-name': params.name }),
      },
    });
  if (random.chance(0.2))
    return abortDuringCall('modern, disconnected', (signal) => send('tools/call', waitCall(random), signal));
  const text = `text ${random.below(1_000)}`;
  expectText(await send('tools/call', { name: 'echo', arguments: { text } }), text);
  return 'modern';
}

async function runLegacyClient({ random, url }) {
  const params = { protocolVersion: LEGACY, capabilities: {}, clientInfo: CLIENT };
  const opened = await fetch(url, request({ body: { id: 0, method: 'initialize', params } }));
  const session = opened.headers.get('mcp-session-id');
  await opened.text();
  if (session === null) throw new Error(`no session: ${opened.status}`);
  const headers = { 'mcp-session-id': session, 'mcp-protocol-version': LEGACY };
  const send = (body, signal) => post({ url, body, headers, signal });
  await send({ method: 'notifications/initialized' });
  for (let id = 1; id <= 3; id += 1) {
    const text = `text ${random.below(1_000)}`;
    expectText(await send(call(id, { name: 'echo', arguments: { text } })), text);
  }
  if (random.chance(0.2)) await abortDuringCall('', (signal) => send(call(4, waitCall(random)), signal));
  if (random.chance(0.2)) {
    const cancelled = send(call(5, waitCall(random)), AbortSignal.timeout(200)).catch(() => {});
    await send({ method: 'notifications/cancelled', params: { requestId: 5 } });
    await cancelled;
  }
  if (random.chance(0.7)) return 'legacy, session left open';
  const ended = await fetch(url, { method: 'DELETE', headers });
  if (!ended.ok) throw new Error(`DELETE of a session failed: ${ended.status} ${await ended.text()}`);
  return 'legacy, session closed';
}

const call = (id, params) => ({ id, method: 'tools/call', params });
const waitCall = (random) => ({ name: 'wait', arguments: { ms: 20 + random.below(60) } });

/** Aborts the request while its call is running. */
async function abortDuringCall(kind, start) {
  const controller = new AbortController();
  const answer = start(controller.signal).catch(() => {});
  await new Promise((resolve) => setTimeout(resolve, 10));
  controller.abort();
  await answer;
  return kind;
}

async function post({ url, ...options }) {
  const response = await fetch(url, request(options));
  return { status: response.status, text: await response.text() };
}

function request({ body, headers = {}, signal }) {
  return {
    method: 'POST',
    signal,
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', ...body }),
  };
}

function expectText({ status, text }, expected) {
  if (!text.includes(`"text":${JSON.stringify(expected)}`))
    throw new Error(`expected '${expected}' but received ${status}: ${text}`);
}
