// A shop as an application would trace it: the SDK and the instrumentations of HTTP and PostgreSQL first, then NestJS
// over real HTTP with a tool that queries a real PostgreSQL, and the same tool over MCP. Prints the spans.
import { createRequire } from 'node:module';
import { context, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http';
import { PgInstrumentation } from '@opentelemetry/instrumentation-pg';
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';

const exporter = new InMemorySpanExporter();
const tracerProvider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
propagation.setGlobalPropagator(new W3CTraceContextPropagator());
trace.setGlobalTracerProvider(tracerProvider);
const instrumentations = [new HttpInstrumentation(), new PgInstrumentation()];
for (const instrumentation of instrumentations) instrumentation.setTracerProvider(tracerProvider);

// Instrumentations patch what is required; modules that are imported get the same changes.
const require = createRequire(import.meta.url);
const http = require('node:http');
const pg = require('pg');

const { Body, Controller, Inject, Injectable, Module, Post } = await import('@nestjs/common');
const { NestFactory } = await import('@nestjs/core');
const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
const { Tool, ToolRegistry } = await import('toolwright');
const { createMcpServer } = await import('toolwright/mcp');
const { ToolwrightModule, ToolwrightService } = await import('toolwright/nestjs');
const { openTelemetry } = await import('toolwright/opentelemetry');
const { ScriptedProvider } = await import('toolwright/testing');

const pool = new pg.Pool({ connectionString: process.env.TOOLWRIGHT_TEST_POSTGRES });
const telemetry = openTelemetry();

class OrderTools {
  async countOrders() {
    const { rows } = await pool.query('SELECT 3 AS count');
    return `${rows[0].count} orders`;
  }
}
Tool({
  description: 'Counts the orders',
  name: 'count_orders',
  parameters: { type: 'object', properties: {} },
})(OrderTools.prototype, 'countOrders', Object.getOwnPropertyDescriptor(OrderTools.prototype, 'countOrders'));
Injectable()(OrderTools);

class ChatController {
  constructor(toolwright) {
    this.toolwright = toolwright;
  }

  async chat({ text }) {
    const { content } = await this.toolwright.run([{ role: 'user', content: text }]);
    return { content };
  }
}
Inject(ToolwrightService)(ChatController, undefined, 0);
Body()(ChatController.prototype, 'chat', 0);
Post()(ChatController.prototype, 'chat', Object.getOwnPropertyDescriptor(ChatController.prototype, 'chat'));
Controller('chat')(ChatController);

const provider = new ScriptedProvider([
  { toolCalls: [{ id: 'c1', name: 'count_orders' }] },
  { content: 'You have 3 orders.' },
]);
class Shop {}
Module({
  imports: [ToolwrightModule.forRoot({ provider, model: 'm', telemetry, agentName: 'shop' })],
  providers: [OrderTools],
  controllers: [ChatController],
})(Shop);

const app = await NestFactory.create(Shop, { logger: false });
await app.listen(0, '127.0.0.1');
const url = `${await app.getUrl()}/chat`;
const body = await trace.getTracer('client').startActiveSpan('customer', async (span) => {
  const answer = await post(url, { text: 'How many orders?' });
  span.end();
  return answer;
});
await app.close();

const tools = new ToolRegistry({ telemetry }).register({
  name: 'count_orders',
  description: 'Counts the orders',
  parameters: { type: 'object', properties: {} },
  execute: () => new OrderTools().countOrders(),
});
const mcp = createMcpServer(tools);
const server = http.createServer((request, response) => void mcp.node(request, response));
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const client = new Client({ name: 'a-client', version: '1.0.0' });
await client.connect(
  new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${server.address().port}/mcp`)),
);
const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
await client.callTool({ name: 'count_orders', arguments: {}, _meta: { traceparent } });
await client.close();
await mcp.close();
server.close();
await pool.end();

const spans = exporter.getFinishedSpans().map((span) => ({
  name: span.name,
  kind: span.kind,
  traceId: span.spanContext().traceId,
  spanId: span.spanContext().spanId,
  parentId: span.parentSpanContext?.spanId,
  links: span.links.map(({ context: { spanId }, attributes }) => ({ spanId, attributes })),
}));
console.log(JSON.stringify({ body, spans }));
process.exit(0);

function post(address, value) {
  const text = JSON.stringify(value);
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
  return new Promise((resolve, reject) => {
    const request = http.request(address, { method: 'POST', headers }, (response) => {
      let got = '';
      response.on('data', (chunk) => {
        got += chunk;
      });
      response.on('end', () => resolve(got));
    });
    request.on('error', reject);
    request.end(text);
  });
}
