// Only bundles need these imports.
import 'toolwright/dto';
import 'toolwright/tsyringe';
import { discoverTools, ToolRegistry } from 'toolwright';
import { toolsets } from './toolwright.gen.js';

/** The results that must be the same with every toolchain. */
export async function report(): Promise<string> {
  const tools = new ToolRegistry().register(...discoverTools({ toolsets, strict: true }));
  const calls: readonly (readonly [string, object])[] = [
    ['shop_find_orders', { customerId: 'cus_1', state: 'open', limit: 3 }],
    ['shop_find_orders', { customerId: 'cus_1', limit: 1.5, state: 'lost' }],
    [
      'shop_place',
      { email: 'a@b.org', lines: [{ sku: 'x' }, { sku: 'y', quantity: 2 }], due: '2030-01-01T00:00:00Z' },
    ],
    ['shop_place', { email: 'nobody', lines: [{ sku: '', quantity: 100 }] }],
    [
      'shop_mixed',
      {
        period: { from: '1970-01-01T00:00:01Z', to: null },
        shapes: [
          { kind: 'square', side: '12' },
          { kind: 'circle', radius: 1 },
        ],
        words: ['a'],
        tree: { name: 'root', branches: [{ name: 'leaf' }] },
        rest: [1, 'two'],
      },
    ],
  ];
  const results: string[] = [];
  for (const [name, args] of calls) results.push((await tools.execute(name, args)).forLLM);
  const outputs = tools.tools().map((tool) => ('output' in tool ? tool.output : undefined));
  return JSON.stringify({ definitions: tools.getDefinitions(), outputs, results });
}
