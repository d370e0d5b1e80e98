/** A minimal MCP client in memory: sends requests and waits for the reply with the same id. */
export class MemoryTransport {
  #waiting = new Map();
  #requests = 0;

  /** Connects a server and performs the handshake. */
  static async open(connect) {
    const transport = new MemoryTransport();
    await connect(transport);
    await transport.request('initialize', {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'bench', version: '1.0.0' },
    });
    transport.onmessage({ jsonrpc: '2.0', method: 'notifications/initialized' });
    return transport;
  }

  async start() {}

  async close() {}

  async send(message) {
    this.#waiting.get(message.id)?.(message);
    this.#waiting.delete(message.id);
  }

  request(method, params) {
    this.#requests += 1;
    const id = this.#requests;
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      this.onmessage({ jsonrpc: '2.0', id, method, params });
    });
  }
}

/** A candidate that sends `tools/call` to a server. */
export function serverCandidate(name, transport, tool) {
  return {
    name,
    encode: (input) => input,
    call: (input) => transport.request('tools/call', { name: tool, arguments: input }),
    read: ({ result }) => (result === undefined || result.isError ? undefined : result.content[0].text),
  };
}
