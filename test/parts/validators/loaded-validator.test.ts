import 'reflect-metadata';
import { createRequire } from 'node:module';
import { expect, test } from '@jest/globals';
import { Contains, ValidateIf } from 'class-validator';
import { discoverTools, Tool, ToolRegistry, Toolset } from 'toolwright';

class Note {
  @ValidateIf(({ text }: Note) => text !== '')
  @Contains('!')
  text!: string;
}

@Toolset()
class Notes {
  @Tool('Keep a note')
  keep(note: Note) {
    return note.text;
  }
}

test('ToolRegistry.execute does not search the loaded modules for class-validator in each call', async () => {
  const tools = new ToolRegistry().register(...discoverTools({ toolsets: [Notes] }));
  const kept = await tools.execute('keep', { text: 'a!' });
  expect(kept.forLLM).toBe('a!');
  const { cache } = createRequire(import.meta.url);
  const keysOf = Object.keys;
  let looks = 0;
  Object.keys = (of: object) => {
    if (of === cache) looks += 1;
    return keysOf(of);
  };
  try {
    for (let call = 0; call < 5; call += 1) await tools.execute('keep', { text: 'b!' });
  } finally {
    Object.keys = keysOf;
  }
  expect(looks).toBe(0);
});
