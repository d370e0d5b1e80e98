import { afterAll, expect, test } from '@jest/globals';
import {
  type CallHandler,
  ClassSerializerInterceptor,
  type ExecutionContext,
  Injectable,
  type NestInterceptor,
  UseInterceptors,
} from '@nestjs/common';
import { APP_INTERCEPTOR } from '@nestjs/core';
import { Exclude } from 'class-transformer';
import { map, of } from 'rxjs';
import { Tool, ToolContext, ToolResult, toolResult } from 'toolwright';
import { describeClass } from 'toolwright/decorators';
import { closeCompilers } from '../typegen/compilers.js';
import { generateTool } from '../typegen/small-project.js';
import { boot } from './boot.js';

afterAll(closeCompilers);

/** The interceptor of Nest’s documentation that wraps every response in an envelope. */
@Injectable()
class TransformInterceptor implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler) {
    return next.handle().pipe(map((data) => ({ data })));
  }
}

function mapping(change: (value: unknown) => unknown) {
  return { intercept: (_context: ExecutionContext, next: CallHandler) => next.handle().pipe(map(change)) };
}

const WRAPPED = { provide: APP_INTERCEPTOR, useClass: TransformInterceptor };
const PIXEL = { type: 'image', data: 'AAAA', mimeType: 'image/png' } as const;

@Injectable()
class Worded {
  @Tool('Work on')
  work(context: ToolContext) {
    return context.background(async () => 'the report', 'started');
  }

  @Tool('Draw')
  draw() {
    return { content: [{ type: 'text', content: 'Here' }, PIXEL] };
  }

  @Tool('Fail politely')
  fail() {
    return new ToolResult({ forLLM: 'none left', forUser: 'Sorry!', isError: true });
  }

  @Tool('Observe')
  observe() {
    return of(toolResult('not yet'), toolResult('there'));
  }
}

test('an envelope around a ToolResult is removed, so that nothing of the result is lost', async () => {
  const { tools } = await boot({ providers: [Worded, WRAPPED] });
  const completion = Promise.withResolvers<string>();
  const started = await tools.executeWithContext('work', {}, {}, (_context, { forLLM }) =>
    completion.resolve(forLLM),
  );
  expect(started).toMatchObject({ async: true, forLLM: 'started' });
  expect(await completion.promise).toBe('the report');
  expect((await tools.execute('work')).forLLM).toBe('the report');
  expect(await tools.execute('draw')).toMatchObject({ forLLM: 'Here', content: [{ type: 'text' }, PIXEL] });
  expect(await tools.execute('fail')).toMatchObject({ isError: true, forUser: 'Sorry!' });
  expect((await tools.execute('observe')).forLLM).toBe('there');
});

test('a different result from an interceptor is used unchanged', async () => {
  @Injectable()
  class Tools {
    @Tool('Other result')
    @UseInterceptors(mapping(() => toolResult('another')))
    other() {
      return toolResult('mine');
    }

    @Tool('Another in an envelope')
    @UseInterceptors(mapping(() => ({ data: toolResult('another') })))
    enveloped() {
      return toolResult('mine');
    }

    @Tool('Data')
    data() {
      return { id: 1 };
    }

    @Tool('Told of')
    @UseInterceptors(mapping((result) => `${(result as ToolResult).forLLM}, he said`))
    toldOf() {
      return toolResult('mine');
    }
  }
  const { tools } = await boot({ providers: [Tools] });
  expect((await tools.execute('other')).forLLM).toBe('another');
  expect((await tools.execute('enveloped')).forLLM).toContain('"for_llm":"another"');
  expect((await tools.execute('told_of')).forLLM).toBe('mine, he said');
  const wrapped = await boot({ providers: [Tools, WRAPPED] });
  expect((await wrapped.tools.execute('data')).forLLM).toBe('{"data":{"id":1}}');
});

const N = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] } as const;

@Injectable()
class Numbers {
  @Tool({ description: 'Keeps its word', output: N })
  plain(n: number) {
    return { n };
  }

  @Tool({ description: 'Breaks its word', output: N })
  broken() {
    return { m: 1 };
  }

  @Tool({ description: 'Never asked', output: N })
  @UseInterceptors({ intercept: () => of({ cached: true }) })
  unasked() {
    return { n: 1 };
  }

  @Tool({ description: 'Copied', output: N })
  @UseInterceptors(mapping((value) => ({ ...(value as object) })))
  copied() {
    return { n: 2 };
  }
}

test('a result that an interceptor has made invalid is an error with the interceptor and the fix', async () => {
  const { tools } = await boot({ providers: [Numbers, WRAPPED] });
  const result = await tools.execute('plain', { n: 1 });
  expect(result.error).toMatchObject({ name: 'InvalidResult' });
  expect(result.forLLM).toBe(
    [
      "The tool 'plain' returned an invalid result:",
      '  - n: is required',
      "The method has run, and its result fits; one of its interceptors (TransformInterceptor) changed it. An interceptor for HTTP responses must skip tool calls: if (context.getType<string>() === 'tool') return next.handle();",
    ].join('\n'),
  );
  const broken = await tools.execute('broken', {});
  expect(broken.error).toMatchObject({ name: 'InvalidResult' });
  expect(broken.forLLM).not.toContain('interceptor');
});

test('a mapped result that is valid is used, and an invalid one made without calling the method is reported', async () => {
  const { tools } = await boot({ providers: [Numbers] });
  expect((await tools.execute('copied', {})).forLLM).toBe('{"n":2}');
  expect((await tools.execute('unasked', {})).forLLM).toContain('one of its interceptors (without a name)');
});

test('the generated output of a class with @Exclude() matches ClassSerializerInterceptor', async () => {
  const { text } = await generateTool(
    "  @Tool('The user') getUser() { return new User(); }",
    `import { Exclude } from 'class-transformer';
     class User { id = 'u1'; @Exclude() password = 'secret'; @Exclude({ toClassOnly: true }) age = 36 }`,
  );
  const [, printed] = /describeClass\(Tools, (\{.*?\})\);/s.exec(text) ?? [];
  class User {
    id = 'u1';
    @Exclude()
    password = 'secret';
    @Exclude({ toClassOnly: true })
    age = 36;
  }
  @Injectable()
  @UseInterceptors(ClassSerializerInterceptor)
  class Tools {
    @Tool('The user')
    getUser() {
      return new User();
    }
  }
  describeClass(Tools, new Function(`return ${printed};`)());
  const { tools } = await boot({ providers: [Tools], options: { strict: true } });
  expect(tools.get('get_user')?.output).toMatchObject({ required: ['id', 'age'] });
  expect(await tools.execute('get_user')).toMatchObject({ isError: false, forLLM: '{"id":"u1","age":36}' });
});

@Injectable()
class Rows {
  @Tool('A row')
  row() {
    return { id: 1, note: null, price: '12.50' };
  }
}
describeClass(Rows, {
  tools: {
    row: {
      parameters: [],
      output: {
        type: 'object',
        properties: { id: { type: 'number' }, note: { type: 'string' }, price: { type: 'number' } },
        required: ['id', 'note', 'price'],
      },
    },
  },
});

test('ToolwrightModule gives the model a result that violates an inferred output, and warns', async () => {
  for (const providers of [[Rows], [Rows, WRAPPED]]) {
    const warned: string[] = [];
    const ignore = (): void => {};
    const warn = (message: string, fields?: object) => warned.push(`${message} ${JSON.stringify(fields)}`);
    const logger = { debug: ignore, info: ignore, error: ignore, warn };
    const { tools } = await boot({ options: { logger }, providers });
    const result = await tools.execute('row');
    expect(result).toMatchObject({ isError: false, forLLM: expect.stringContaining('"price":"12.50"') });
    expect(warned.filter((warning) => warning.includes('"tool":"row"')).length).toBeGreaterThan(0);
  }
});
