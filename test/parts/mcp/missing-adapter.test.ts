import { expect, jest, test } from '@jest/globals';
import { ToolRegistry } from 'toolwright';
import { createMcpServer } from 'toolwright/mcp';
import { serve } from '../../setup/loopback.js';

jest.unstable_mockModule('@modelcontextprotocol/node', () => {
  throw Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' });
});

test('without the adapter for `http`, each request is answered with what is missing', async () => {
  const errors: unknown[] = [];
  const mcp = createMcpServer(new ToolRegistry(), { onError: (error) => errors.push(error) });
  await using server = await serve(mcp.node);
  for (const _attempt of [1, 2]) {
    const response = await fetch(`${server.url}/mcp`, { method: 'POST', body: '{}' });
    expect(response.status).toBe(500);
    expect(await response.text()).toContain('@modelcontextprotocol/node');
  }
  expect(errors).toMatchObject([{ message: 'Cannot find package' }]);
  await mcp.close();
});
