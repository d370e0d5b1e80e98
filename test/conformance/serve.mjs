// Serves the tools of the suite over streamable HTTP on a free port, and prints the URL.
import { createServer } from 'node:http';
import { MemoryRunStore } from '../../dist/src/durable/stores/index.js';
import { defineTool, discoverTools, ToolRegistry } from '../../dist/src/index.js';
import { createMcpServer } from '../../dist/src/surfaces/mcp/index.js';
import { PromptsAndResources } from './prompts-and-resources.mjs';
import { suiteTools } from './suite-tools.mjs';
import { TASK_TOOLS } from './task-tools.mjs';

const registry = new ToolRegistry();
let added = 0;
registry.register(
  ...discoverTools({ toolsets: [PromptsAndResources] }),
  ...suiteTools({
    changeTools: () => {
      added += 1;
      registry.register(
        defineTool({ name: `added_${added}`, description: 'Added later', execute: () => 'ok' }),
      );
      return 'changed';
    },
    changePrompts: () => {
      registry.unregister('test_passing_prompt');
      return 'changed';
    },
  }),
  ...TASK_TOOLS,
);
const mcp = createMcpServer(registry, {
  name: 'toolwright-conformance',
  version: '0.0.0',
  tasks: { store: new MemoryRunStore(), required: ['failing_job', 'test_tool_with_task'] },
  onError: (error) => process.env.DEBUG && console.error(error),
});
const http = createServer(mcp.node).listen(0, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${http.address().port}/mcp`);
});
process.on('SIGTERM', () => {
  mcp.close().finally(() => process.exit());
});
