import { expect, test } from '@jest/globals';
import { builtFile } from '../../processes/built-file.js';
import { outputOfNode } from '../../processes/run-node.js';
import { describePostgres } from '../../services/services.js';
import { ROOT } from '../../structure/repository.js';

interface PrintedSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId?: string;
  readonly links: readonly { readonly spanId: string; readonly attributes: object }[];
}

describePostgres('openTelemetry in an application with NestJS, HTTP and PostgreSQL', ({ url }) => {
  builtFile('dist/src/observe/opentelemetry/index.js');
  const environment = { ...process.env, NODE_OPTIONS: '', TOOLWRIGHT_TEST_POSTGRES: url };
  const printed = (): { readonly body: string; readonly spans: readonly PrintedSpan[] } =>
    JSON.parse(
      outputOfNode(['test/parts/opentelemetry/traced-shop.mjs'], { folder: ROOT, environment })
        .split('\n')
        .find((line) => line.startsWith('{"body"')) ?? '',
    );

  test('openTelemetry records one unbroken trace from a customer’s request to the SQL of a tool', () => {
    const { body, spans } = printed();
    expect(JSON.parse(body)).toEqual({ content: 'You have 3 orders.' });
    const line = (span: PrintedSpan | undefined): readonly string[] =>
      span === undefined ? [] : [span.name, ...line(spans.find(({ spanId }) => spanId === span.parentId))];
    const queries = spans.filter(({ name }) => name.startsWith('pg.query'));
    expect(queries).toHaveLength(2);
    expect(line(queries[0])).toEqual([
      expect.stringMatching(/^pg\.query:SELECT/),
      'execute_tool count_orders',
      'invoke_agent shop',
      'POST',
      'POST',
      'customer',
    ]);
    const [customer] = spans.filter(({ name }) => name === 'customer');
    const trace = spans.filter(({ traceId }) => traceId === customer?.traceId);
    const names = ['invoke_agent shop', 'execute_tool count_orders', 'chat m'];
    const counts = names.map((name) => trace.filter((span) => span.name === name).length);
    expect(counts).toEqual([1, 1, 2]);

    // A call over MCP is a child of the context in its message, and links to the HTTP request.
    const call = spans.find(({ name }) => name === 'tools/call count_orders');
    expect(call?.traceId).toBe('4bf92f3577b34da6a3ce929d0e0e4736');
    expect(line(queries[1])).toEqual([expect.any(String), 'tools/call count_orders']);
    const [transport] = call?.links ?? [];
    expect(spans.find(({ spanId }) => spanId === transport?.spanId)?.name).toBe('POST');
    expect(transport?.attributes).toEqual({ 'toolwright.link': 'transport' });
  });
});
