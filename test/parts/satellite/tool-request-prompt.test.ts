import { expect, test } from '@jest/globals';
import { parseToolRequest, ToolRegistry } from 'toolwright';
import { calculateTool, getCurrentTimeTool } from 'toolwright/builtin';
import { toolRequestPrompt } from 'toolwright/satellite';

test('the prompt describes each tool on one line, with a valid request as the example', () => {
  const definitions = new ToolRegistry().register(calculateTool, getCurrentTimeTool).toProviderDefs();
  const lines = toolRequestPrompt(definitions).split('\n');
  for (const { function: tool } of definitions) expect(lines).toContain(JSON.stringify(tool));
  const requests = lines.flatMap((line) => parseToolRequest(line) ?? []);
  expect(requests).toEqual([{ name: 'the_tool', arguments: { key: 'value' } }]);
  expect(toolRequestPrompt(definitions)).toBe(lines.join('\n'));
});
