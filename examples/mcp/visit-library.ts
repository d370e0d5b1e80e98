import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { runToolLoop, ToolRegistry } from 'toolwright';
import { followMcpTools } from 'toolwright/mcp';
import { OfflineProvider } from 'toolwright/offline';

/** The options of a visit. */
export interface Visit {
  readonly url: URL;
  readonly token: string;
  /** Answers the questions of the library. */
  readonly approve: (question: string) => boolean;
  readonly request: string;
}

/** Connects to a library, registers its tools, and lets a model use them. */
export async function visitLibrary({ url, token, approve, request }: Visit): Promise<string> {
  const tools = new ToolRegistry();
  const connect = async (): Promise<Client> => {
    const client = new Client(
      { name: 'visitor', version: '1.0.0' },
      { capabilities: { elicitation: {} }, versionNegotiation: { mode: 'auto' } },
    );
    client.setRequestHandler('elicitation/create', ({ params }) =>
      approve(params.message) ? { action: 'accept', content: {} } : { action: 'decline' },
    );
    await client.connect(
      new StreamableHTTPClientTransport(url, {
        requestInit: { headers: { authorization: `Bearer ${token}` } },
      }),
    );
    return client;
  };
  const following = await followMcpTools(tools, connect, { prefix: 'library' });
  try {
    const run = await runToolLoop({ provider: new OfflineProvider(), model: 'offline', tools }, [
      { role: 'user', content: request },
    ]);
    return run.content;
  } finally {
    await following.close();
  }
}
