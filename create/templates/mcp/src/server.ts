import './toolwright.gen.js';
import { discoverTools, ToolRegistry } from 'toolwright';
import { createMcpServer } from 'toolwright/mcp';
import { LibraryTools } from './library-tools.js';

/** The MCP server, without a transport. */
export function createServer() {
  const tools = new ToolRegistry().register(...discoverTools({ toolsets: [LibraryTools] }));
  return createMcpServer(tools, {
    name: 'library',
    version: '1.0.0',
    instructions: 'Search for a book before you borrow it.',
  });
}
