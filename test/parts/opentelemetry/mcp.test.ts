import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { SpanKind, trace } from '@opentelemetry/api';
import { defineTool, runToolLoop, ToolRegistry } from 'toolwright';
import { mcpTools } from 'toolwright/mcp';
import { openTelemetry } from 'toolwright/opentelemetry';
import { ScriptedProvider } from 'toolwright/testing';
import { connectClient, ERAS, listen } from '../mcp/mcp-connections.js';
import { Recording } from './recording.js';

let recording: Recording;
beforeEach(() => {
  recording = new Recording();
});
afterEach(() => recording.end());

const greet = defineTool({
  name: 'greet',
  description: 'Greets',
  parameters: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
  execute: async ({ name }: { name: string }) => {
    if (name === '') throw new Error('nobody is there');
    await trace.getTracer('test').startActiveSpan('query', async (span) => span.end());
    return `Hello ${name}`;
  },
});

const served = () => new ToolRegistry({ telemetry: openTelemetry() }).register(greet);

test.each(Object.entries(ERAS))(
  'openTelemetry records a call over MCP %s once on each side, in one trace from the run to the tool',
  async (protocolVersion, options) => {
    const server = await listen(served());
    const client = await connectClient(server.url, { options });
    const telemetry = openTelemetry();
    const tools = new ToolRegistry({ telemetry }).register(...(await mcpTools(client, { telemetry })));
    const provider = new ScriptedProvider([
      { toolCalls: [{ id: 'c1', name: 'greet', arguments: { name: 'Ada' } }] },
      { content: 'done' },
    ]);
    await runToolLoop({ provider, model: 'm', tools }, [{ role: 'user', content: 'Greet Ada' }]);
    await client.close();
    await server.close();

    const listed = recording.spans.filter(({ name }) => name === 'tools/list');
    expect(listed.slice(0, 2).map(({ kind }) => kind)).toEqual([SpanKind.CLIENT, SpanKind.SERVER]);
    expect(listed[1]?.parentSpanContext?.spanId).toBe(listed[0]?.spanContext().spanId);
    expect(recording.family.filter((line) => !line.startsWith('tools/list'))).toEqual([
      'chat m < invoke_agent',
      'chat m < invoke_agent',
      'execute_tool greet < invoke_agent',
      'invoke_agent < -',
      'query < tools/call greet',
      'tools/call greet < execute_tool greet',
    ]);
    const outside = recording.span('execute_tool greet');
    const inside = recording.span('tools/call greet');
    expect(outside.kind).toBe(SpanKind.INTERNAL);
    expect(outside.attributes).toMatchObject({
      'gen_ai.tool.name': 'greet',
      'mcp.method.name': 'tools/call',
      'mcp.protocol.version': protocolVersion,
      'network.transport': 'tcp',
    });
    expect(inside.kind).toBe(SpanKind.SERVER);
    expect(inside.attributes).toMatchObject({
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'greet',
      'mcp.method.name': 'tools/call',
      'mcp.protocol.version': protocolVersion,
      'jsonrpc.request.id': expect.any(String),
    });
    const names = new Set((await recording.points()).map(({ name }) => name));
    expect([...names].filter((name) => name.startsWith('mcp.')).sort()).toEqual([
      'mcp.client.operation.duration',
      'mcp.server.operation.duration',
    ]);
  },
);

test('openTelemetry records failed and unknown tools of an MCP server with the names of the conventions', async () => {
  const server = await listen(served());
  const client = await connectClient(server.url);
  await client.callTool({ name: 'greet', arguments: { name: '' } });
  await client.callTool({ name: 'nobody_has_this', arguments: {} }).catch(() => {});
  await client.close();
  await server.close();
  const [failed, unknown] = recording.spans;
  expect(failed?.attributes['error.type']).toBe('tool_error');
  expect(failed?.status.message).toBeUndefined();
  // Otherwise each name that a client makes up would create a span name.
  expect(unknown?.name).toBe('tools/call');
  expect(unknown?.attributes).toMatchObject({ 'rpc.response.status_code': '-32602' });
  expect(unknown?.attributes['error.type']).toBeUndefined();
});

test('openTelemetry records calls of imported tools as client messages if no registry records them', async () => {
  const server = await listen(new ToolRegistry().register(greet));
  const client = await connectClient(server.url);
  const telemetry = openTelemetry();
  const tools = new ToolRegistry().register(...(await mcpTools(client, { telemetry })));
  await tools.execute('greet', { name: 'Ada' });
  await tools.execute('greet', { name: '' });
  await client.close();
  await server.close();
  const calls = recording.spans.filter(({ name }) => name === 'tools/call greet');
  expect(calls.map(({ kind, attributes }) => [kind, attributes['error.type']])).toEqual([
    [SpanKind.CLIENT, undefined],
    [SpanKind.CLIENT, 'tool_error'],
  ]);
});

test('openTelemetry uses the traceparent of an MCP message as the parent of its span', async () => {
  const server = await listen(served());
  const client = await connectClient(server.url);
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
  await client.callTool({ name: 'greet', arguments: { name: 'Ada' }, _meta: { traceparent } });
  await client.close();
  await server.close();
  const call = recording.span('tools/call greet');
  expect(call.spanContext().traceId).toBe('4bf92f3577b34da6a3ce929d0e0e4736');
  expect(call.parentSpanContext?.spanId).toBe('00f067aa0ba902b7');
});
