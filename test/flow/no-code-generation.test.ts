import { expect, test } from '@jest/globals';
import { runNode } from '../processes/run-node.js';
import { ROOT } from '../structure/repository.js';

/** Valid and invalid calls of all kinds of tools, often enough that validators would be compiled. */
const PROGRAM = `
const { Args, defineTool, describeClass, discoverTools, runToolLoop, Tool, Toolset, ToolRegistry } = await import('toolwright');
const { ScriptedProvider } = await import('toolwright/testing');
const { createMcpServer, mcpTools } = await import('toolwright/mcp');
const { Client, InMemoryTransport } = await import('@modelcontextprotocol/client');
const { IsInt, Min } = await import('class-validator');
const told = [];
const tell = async (what) => { const { forLLM, isError } = await what; told.push([isError, forLLM]); };
const add = (decorate, target, name, types) => {
  Reflect.defineMetadata('design:paramtypes', types, target, name);
  decorate(target, name, Object.getOwnPropertyDescriptor(target, name));
};

class OrderDto {}
Reflect.defineMetadata('design:type', Number, OrderDto.prototype, 'count');
for (const rule of [IsInt(), Min(1)]) rule(OrderDto.prototype, 'count');
class Shop {
  order(order) { return [order instanceof OrderDto, order.count]; }
  total(price, times) { return price * times; }
}
add(Tool('Orders'), Shop.prototype, 'order', [OrderDto]);
add(Tool('Totals'), Shop.prototype, 'total', [Object, Object]);
Toolset()(Shop);
const number = { type: 'number' };
describeClass(Shop, { tools: { total: { parameters: [{ name: 'price', schema: number }, { name: 'times', schema: number }] } } });

const parameters = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  type: 'object',
  properties: { day: { type: 'string', format: 'date' }, item: { oneOf: [{ $ref: '#/definitions/item' }, { type: 'null' }] } },
  definitions: { item: { type: 'object', properties: { sku: { pattern: '^[a-z]+$' }, parts: { type: 'array', items: { $ref: '#/definitions/item' } } }, required: ['sku'] } },
  required: ['day'],
};
const echo = defineTool({ name: 'echo', description: 'Echoes', parameters, execute: (args) => args });
const tools = new ToolRegistry().register(echo, ...discoverTools({ toolsets: [Shop] }));
const calls = async (from) => {
  for (const args of [{ day: '2026-01-31' }, { day: 'x' }, { item: { sku: 'A', parts: [{}] } }, '{"day": "2026-01-31", item: null,}'])
    await tell(from.execute('echo', args));
};
for (let round = 0; round < Number(process.env.ROUNDS); round += 1) {
  told.length = 0;
  await calls(tools);
  for (const order of [{ count: 2 }, { count: 0 }, { count: '3' }]) await tell(tools.execute('order', order));
  for (const args of [{ price: 2, times: 3 }, { price: 'two' }]) await tell(tools.execute('total', args));
}

const server = createMcpServer(tools);
const [near, far] = InMemoryTransport.createLinkedPair();
await server.connect(far);
const client = new Client({ name: 'a', version: '1' });
await client.connect(near);
await calls(new ToolRegistry().register(...(await mcpTools(client))));
await client.close();

const provider = new ScriptedProvider([{ toolCalls: [{ name: 'echo', arguments: { day: 'x' } }, { name: 'total', arguments: { price: 2, times: 2 } }] }, { content: 'done' }]);
const run = await runToolLoop({ provider, model: 'm', tools }, [{ role: 'user', content: 'go' }]);
told.push([run.status, run.toolCalls.map(({ result }) => result.forLLM)]);
console.log(JSON.stringify(told));
`;

interface Told {
  readonly told: unknown;
  readonly warnings: number;
}

function run(flags: readonly string[], rounds: number): Told {
  const environment = { ...process.env, ROUNDS: String(rounds), NODE_OPTIONS: '' };
  const args = [...flags, '--input-type=module', '--eval', PROGRAM];
  const { stdout, stderr } = runNode(args, { folder: ROOT, environment });
  return {
    told: stdout === '' ? stderr : JSON.parse(stdout),
    warnings: stderr.match(/TOOLWRIGHT_INTERPRETED/g)?.length ?? 0,
  };
}

const FORBIDDEN = ['--disallow-code-generation-from-strings'];

test('without code generation, tools give the same results, with one warning', () => {
  const plain = run([], 1_000);
  expect(plain.told).toContainEqual([false, '[true,2]']);
  expect(plain.told).toContainEqual(['completed', [expect.stringMatching('day: must match'), '4']]);
  expect(plain.warnings).toBe(0);
  expect(run(FORBIDDEN, 1_000)).toEqual({ told: plain.told, warnings: 1 });
});

test('without code generation, no warning is logged until a validator would be compiled', () => {
  expect(run(FORBIDDEN, 1).warnings).toBe(0);
});
