import { expect, jest, test } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { discoverTools, Tool } from 'toolwright';
import { boot } from './boot.js';

jest.mock('tsyringe', () => {
  throw new Error('tsyringe was loaded');
});

@Injectable()
class Greeter {
  greeting(): string {
    return 'hello';
  }
}

@Injectable()
class Tools {
  constructor(private readonly greeter: Greeter) {}

  @Tool('Greet')
  greet() {
    return this.greeter.greeting();
  }
}

test('a Nest application gets its tools without tsyringe', async () => {
  const { tools } = await boot({ providers: [Greeter, Tools] });
  expect((await tools.execute('greet')).forLLM).toBe('hello');
  expect(() => discoverTools({ toolsets: [Tools] })).toThrow(
    'tsyringe, which injects the arguments of constructors, cannot be loaded',
  );
});
