import type { IncomingMessage, ServerResponse } from 'node:http';
import { All, Controller, type OnModuleDestroy, Req, Res } from '@nestjs/common';
import { ToolRegistry } from 'toolwright';
import { createMcpServer, type McpToolServer } from 'toolwright/mcp';
import { ToolwrightService } from 'toolwright/nestjs';
import type { AuthedRequest, User } from '../auth/user.js';

/** The same tools for MCP clients, behind the same guard. */
@Controller('mcp')
export class McpController implements OnModuleDestroy {
  readonly #server: McpToolServer;

  constructor(tools: ToolRegistry, toolwright: ToolwrightService) {
    this.#server = createMcpServer(tools, {
      name: 'shop',
      // A session outlives its requests: each call runs as the user of its own request.
      scope: ({ authInfo }) => toolwright.scopeOf({ headers: {}, user: authInfo?.extra?.user as User }),
    });
  }

  @All()
  async serve(
    @Req() request: IncomingMessage & AuthedRequest & { readonly body: unknown },
    @Res() response: ServerResponse,
  ): Promise<void> {
    const { user } = request;
    const auth = { token: '', clientId: user?.id ?? '', scopes: [], extra: { user } };
    await this.#server.node(Object.assign(request, { auth }), response, request.body);
  }

  async onModuleDestroy(): Promise<void> {
    await this.#server.close();
  }
}
