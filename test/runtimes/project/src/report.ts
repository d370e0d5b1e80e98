// Only bundles need these imports.
import 'toolwright/dto';
import 'toolwright/tsyringe';
import { discoverTools, runToolLoop, ToolRegistry } from 'toolwright';
import { calculateTool } from 'toolwright/builtin';
import { ScriptedProvider } from 'toolwright/testing';
import { chatReport } from './chat.js';
import { ShopTools } from './shop-tools.js';

/** Calls with valid and invalid arguments. */
const CALLS: readonly (readonly [string, unknown])[] = [
  [
    'shop_place',
    {
      email: 'a@b.org',
      lines: [
        { sku: 'x', quantity: 1 },
        { sku: 'y', quantity: 2 },
      ],
      discount: 50,
    },
  ],
  ['shop_place', { email: 'nobody', lines: [{ sku: '', quantity: 100 }] }],
  ['shop_find', { by: '2030-01-31' }],
  ['shop_find', { by: '2030-12', page: { size: '5' } }],
  ['shop_find', { by: { atLeast: 3 } }],
  ['shop_find', { by: '2030-13' }],
  ['shop_find', "{ by: '2030-01', }"],
  ['calculate', { expression: '2^10 + 6*3' }],
  ['shop_lose', {}],
];

/** The results that must be the same in every runtime. */
export async function report(): Promise<string> {
  const tools = new ToolRegistry().register(...discoverTools({ toolsets: [ShopTools] }), calculateTool);
  const results: string[] = [];
  for (const [name, args] of CALLS) results.push((await tools.execute(name, args)).forLLM);
  const provider = new ScriptedProvider([
    {
      content: '',
      toolCalls: [
        { id: 'c1', name: 'shop_find', arguments: { by: '2030-02-30' } },
        { id: 'c2', name: 'shop_find', arguments: { by: '2030-02-28' } },
      ],
    },
    { content: 'Two looked for, one found.' },
  ]);
  const run = await runToolLoop({ provider, model: 'none', tools }, [{ role: 'user', content: 'Find them' }]);
  return JSON.stringify({
    definitions: tools.getDefinitions(),
    results,
    status: run.status,
    messages: run.messages,
    chat: await chatReport(),
  });
}
