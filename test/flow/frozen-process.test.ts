import { expect, test } from '@jest/globals';
import { runNode } from '../processes/run-node.js';
import { ROOT } from '../structure/repository.js';

/** Calls that succeed and fail, a suspended run, a conversation: with names of `Object.prototype`. */
const PROGRAM = `
if (process.env.FREEZE) for (const name of process.env.FREEZE.split(' ')) Object.freeze(globalThis[name].prototype);
const { Conversation, defineTool, describeClass, discoverTools, resumeToolLoop, runToolLoop, Tool, Toolset, ToolRegistry, agentTool } =
  await import('toolwright');
const { ScriptedProvider } = await import('toolwright/testing');
const told = [];
const tell = async (what) => told.push(await what);
const names = process.env.NAMES ? { toString: { type: 'string', default: 'x' }, constructor: { type: 'object' }, valueOf: { type: 'number' } } : { b: { default: 'x' } };
const object = { type: 'object', properties: { a: { type: 'integer' }, ...names, list: { type: 'array', items: { type: 'object', properties: names } } }, additionalProperties: true, required: ['a'] };
const tools = new ToolRegistry({ logger: console.quiet ?? { debug() {}, info() {}, warn() {}, error() {} } }).register(
  defineTool({ name: 'echo', description: 'Echoes', parameters: object, execute: (args) => args }),
  defineTool({ name: 'fail', description: 'Fails', execute() { throw new TypeError('no'); } }),
  defineTool({ name: 'odd', description: 'Odd', execute: () => ({ a: new Map([['toString', new Set([1])]]), b: Promise.resolve(NaN) }) }),
  defineTool({ name: 'pay', description: 'Pays', approval: true, parameters: object, execute: async (args, context) => ({ args, once: await context.once('toString', () => ({ valueOf: 1 })) }) }),
  agentTool({ name: 'agent', label: 'Agent', description: 'An agent', parameters: { type: 'object' }, execute: async () => ({ content: [{ type: 'text', content: 'hi' }], details: {} }) }),
);
for (const args of [{ a: 1, constructor: { b: 1 }, list: [{}] }, '{"a":"5","hasOwnProperty":1}', '{a: 1,}', { a: 'x' }, {}])
  await tell(tools.execute('echo', args).then(({ forLLM }) => forLLM));
for (const name of ['fail', 'odd', 'agent', 'none', 'toString']) await tell(tools.execute(name, {}).then(({ forLLM, error }) => [forLLM, error?.name, error?.code]));
const calls = [{ name: 'pay', arguments: { a: 1, toString: 'y' } }, { name: 'echo', arguments: { a: 2, valueOf: 3 } }];
const config = { provider: new ScriptedProvider([{ toolCalls: calls }, { content: 'done' }]), model: 'm', tools };
const run = await runToolLoop(config, [{ role: 'user', content: 'go' }]);
const resumed = await resumeToolLoop(config, JSON.parse(JSON.stringify(run.state)), run.pending.map(({ id }) => ({ id, approved: true })));
await tell([run.status, resumed.status, resumed.toolCalls.map(({ result }) => result.forLLM)]);
const conversation = new Conversation({ provider: new ScriptedProvider([{ content: 'hello' }]), model: 'm', tools });
await tell(conversation.prompt('x').then(({ content }) => content));
try { new ToolRegistry({ polcy: 1 }); } catch (error) { await tell(error.name); }
class Shop { add(a, b = 2) { return a + b; } }
Tool('Adds')(Shop.prototype, 'add', Object.getOwnPropertyDescriptor(Shop.prototype, 'add'));
Toolset()(Shop);
describeClass(Shop, { tools: { add: { parameters: [{ name: 'a', schema: { type: 'number' } }, { name: 'b', schema: { type: 'number' }, optional: true }] } } });
const discovered = new ToolRegistry().register(...discoverTools({ toolsets: [Shop] }));
await tell(discovered.execute('add', { a: 1 }).then(({ forLLM }) => forLLM));
console.log(JSON.stringify(told));
`;

interface Freezing {
  readonly flags?: readonly string[];
  /** Names of classes whose prototypes are frozen. */
  readonly freeze?: string;
  /** Whether the properties of schemas have names of `Object.prototype`. */
  readonly names?: string;
}

function told({ flags = [], freeze: FREEZE = '', names: NAMES = '' }: Freezing): unknown {
  const environment = { ...process.env, FREEZE, NAMES, NODE_OPTIONS: '' };
  const args = [...flags, '--no-warnings', '--input-type=module', '--eval', PROGRAM];
  const { stdout, stderr } = runNode(args, { folder: ROOT, environment });
  return stdout === '' ? stderr : JSON.parse(stdout);
}

test('toolwright works with frozen prototypes and without code generation, with any argument keys', () => {
  const plain = told({});
  expect(plain).toContainEqual(['suspended', 'completed', expect.any(Array)]);
  expect(plain).toContainEqual('3');
  expect(told({ freeze: 'Object' })).toEqual(plain);
  expect(told({ freeze: 'Object Array Error TypeError Map Set String' })).toEqual(plain);
  expect(told({ flags: ['--disallow-code-generation-from-strings'] })).toEqual(plain);
});

test('toolwright works with --frozen-intrinsics, with any property names in schemas', () => {
  const plain = told({ names: 'yes' });
  expect(plain).toContainEqual(['suspended', 'completed', expect.any(Array)]);
  expect(told({ names: 'yes', flags: ['--frozen-intrinsics'] })).toEqual(plain);
});
