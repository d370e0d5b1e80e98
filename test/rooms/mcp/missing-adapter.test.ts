import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, jest, test } from '@jest/globals';
import { ToolRegistry } from 'toolwright';
import { createMcpServer } from 'toolwright/mcp';

jest.unstable_mockModule('@modelcontextprotocol/node', () => {
  throw Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' });
});

test('without the adapter for `http`, each request is answered with what is missing', async () => {
  const errors: unknown[] = [];
  const mcp = createMcpServer(new ToolRegistry(), { onError: (error) => errors.push(error) });
  const http = createServer(mcp.node);
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const { port } = http.address() as AddressInfo;
  for (const _attempt of [1, 2]) {
    const response = await fetch(`http://127.0.0.1:${port}/mcp`, { method: 'POST', body: '{}' });
    expect(response.status).toBe(500);
    expect(await response.text()).toContain('@modelcontextprotocol/node');
  }
  expect(errors).toMatchObject([{ message: 'Cannot find package' }]);
  await mcp.close();
  http.closeAllConnections();
  await new Promise((resolve) => http.close(resolve));
});
