import { describe, expect, test } from '@jest/globals';
import { Client, InMemoryTransport } from '@modelcontextprotocol/client';
import {
  Args,
  type ClassType,
  Completion,
  Context,
  discoverTools,
  Param,
  Prompt,
  Resource,
  Tool,
  ToolContext,
  ToolDeclarationError,
  ToolRegistry,
  Toolset,
} from 'toolwright';
import { createMcpServer } from 'toolwright/mcp';

function serve(...toolsets: ClassType[]) {
  return createMcpServer(new ToolRegistry().register(...discoverTools({ toolsets })));
}

/** The faults of toolsets, each as one string. */
function faultsOf(...toolsets: ClassType[]): readonly string[] {
  try {
    serve(...toolsets);
  } catch (error) {
    if (!(error instanceof ToolDeclarationError)) throw error;
    return error.faults.map(
      ({ where, parameter, problem, fix }) =>
        `${where}${parameter ? `(${parameter})` : ''}: ${problem} [${fix}]`,
    );
  }
  return [];
}

describe('wrong declarations are reported at start-up:', () => {
  test('two decorators on one method', () => {
    @Toolset()
    class Shop {
      @Prompt('A prompt')
      @Tool('A tool')
      both(id: string) {
        return id;
      }

      @Prompt('A prompt')
      ask(id: string, name: string) {
        return id + name;
      }

      @Completion('ask', 'id')
      @Completion('ask', 'name')
      texts(value: string) {
        return [value];
      }
    }
    expect(faultsOf(Shop)).toEqual([
      expect.stringContaining('Shop.both: it has @Prompt and @Tool'),
      expect.stringContaining('Shop.texts: it has @Completion and @Completion'),
    ]);
  });

  test('variables of a URI template that differ from the parameters', () => {
    @Toolset()
    class Shop {
      @Resource('orders://{orderId}', 'An order')
      order(id: string) {
        return id;
      }

      @Resource('orders://all', 'All orders')
      all(status: string) {
        return status;
      }

      @Resource('items://{id}', 'An item')
      item() {
        return '';
      }
    }
    expect(faultsOf(Shop)).toEqual([
      expect.stringContaining('Shop.order: orders://{orderId} has {orderId}'),
      expect.stringContaining('Shop.order(id): it is required, but orders://{orderId} has no {id}'),
      expect.stringContaining('Shop.all(status): it is required'),
      expect.stringContaining('Shop.item: items://{id} has {id}'),
    ]);
  });

  test.each(['orders://{id', 'orders://id}', 'orders://{}/{id}', '', 'orders', '{id}'])(
    'a resource whose URI is %j',
    (uri) => {
      @Toolset()
      class Shop {
        @Resource(uri, 'Orders')
        orders(id = '') {
          return id;
        }
      }
      expect(faultsOf(Shop)).toEqual([
        expect.stringContaining(`Shop.orders: ${JSON.stringify(uri)} is neither a URI nor a URI template`),
      ]);
    },
  );

  test('two resources with the same URI, and two templates that match the same URIs', () => {
    @Toolset()
    class Shop {
      @Resource('orders://all', 'All orders')
      all() {
        return '';
      }

      @Resource('orders://{id}', 'An order')
      order(id: string) {
        return id;
      }

      @Resource('orders://{id}{?full}', 'An order')
      whole(id: string, full: string) {
        return id + full;
      }
    }
    @Toolset()
    class Archive {
      @Resource('orders://all', 'All orders')
      old() {
        return '';
      }

      @Resource('orders://{key}', 'An order')
      oldOrder(key: string) {
        return key;
      }
    }
    expect(faultsOf(Shop, Archive)).toEqual([
      expect.stringMatching(/^Archive\.old: .*Shop\.all \[/),
      expect.stringMatching(/^Archive\.oldOrder: .*Shop\.order \[/),
    ]);
  });

  test('invalid options, with the names of the valid ones', () => {
    @Toolset()
    class Shop {
      @Resource('orders://all', { priority: 5, mimetype: 'text/html' } as never)
      all() {
        return '';
      }

      @Prompt({ timeout: 1, name: 'a b' } as never)
      ask() {
        return '';
      }
    }
    expect(faultsOf(Shop)).toEqual([
      'Shop.all: priority is 5 [priority: a number from 0 to 1]',
      expect.stringMatching(/mimetype is not an option of @Resource .*`mimeType`/),
      expect.stringMatching(/timeout is not an option of @Prompt/),
      expect.stringContaining('the prompt name "a b"'),
    ]);
  });

  test('completions of unknown arguments, duplicate completions, and completions without a text', () => {
    @Toolset()
    class Shop {
      @Prompt('A prompt')
      ask(id: string) {
        return id;
      }

      @Resource('orders://{id}', 'An order')
      order(id: string) {
        return id;
      }

      @Completion('asked', 'id')
      noPrompt(value: string) {
        return [value];
      }

      @Completion('ask', 'name')
      noArgument(value: string) {
        return [value];
      }

      @Completion('orders://{id}', 'name')
      noVariable(value: string) {
        return [value];
      }

      @Completion('ask', 'id')
      noText() {
        return [];
      }

      @Completion('ask', 'id')
      number(value: number, other: string) {
        return [value, other];
      }
    }
    expect(faultsOf(Shop)).toEqual([
      expect.stringContaining("Shop.noPrompt: it completes an argument of 'asked', but there is no prompt"),
      "Shop.noArgument: 'ask' has no argument 'name' [one of id]",
      "Shop.noVariable: 'orders://{id}' has no argument 'name' [one of id]",
      expect.stringContaining('Shop.noText: it has no parameter `value` of type string'),
      expect.stringContaining('Shop.number: it has no parameter `value` of type string'),
      "Shop.number(other): it is required, but 'ask' has no such argument [one of id]",
      expect.stringContaining('Shop.number: it completes the same argument as Shop.noText'),
    ]);
  });

  test('arguments of a prompt that cannot be sent as text', () => {
    class Address {
      @Param() city!: string;
    }
    @Toolset()
    class Shop {
      @Prompt('A prompt')
      ask(
        @Param({ items: () => String }) ids: string[],
        address: Address,
        @Param({ nullable: true }) other: Address,
      ) {
        return [ids, address, other];
      }
    }
    expect(faultsOf(Shop)).toEqual([
      expect.stringContaining('Shop.ask(ids): it is an object or a list'),
      expect.stringContaining('Shop.ask(address): it is an object or a list'),
      expect.stringContaining('Shop.ask(other): it is an object or a list'),
    ]);
  });

  test('two prompts with the same name', () => {
    @Toolset()
    class Shop {
      @Prompt('A prompt')
      ask() {
        return '';
      }

      @Prompt({ name: 'ask', description: 'A prompt' })
      askAgain() {
        return '';
      }
    }
    expect(faultsOf(Shop)).toEqual([expect.stringContaining('@Prompt({ name }) on one of them')]);
  });
});

enum Size {
  Small = 1,
  Large = 2,
}

class Wanted {
  @Param() id!: string;
  @Param({ required: false }) note?: string;
}

@Toolset()
class Shop {
  @Prompt('Takes every kind of argument that a text can be')
  ask(
    text: string,
    count: number,
    flag: boolean,
    due: Date,
    @Param({ enum: Size }) size: Size,
    @Param({ required: false, nullable: true, type: () => Number }) limit: number | null = null,
    @Context() context?: ToolContext,
  ) {
    return JSON.stringify([text, count, flag, due, size, limit, typeof context?.ask]);
  }

  @Prompt('Takes an object of arguments')
  plan(@Args() { id, note }: Wanted) {
    return `${id} ${note}`;
  }

  @Resource('orders://{id}{?full}', { description: 'An order', audience: ['user'], ttlMs: 5, priority: 0.5 })
  order(context: ToolContext, id: string, full: string, signal: AbortSignal, days = 7) {
    return `${id} ${full} ${days} ${typeof context.ask} ${signal.aborted}`;
  }

  @Resource('file:///{+path}', 'A file')
  file(path: string) {
    return path;
  }

  @Completion('orders://{id}{?full}', 'id')
  ids(value: string, @Param({ required: false }) full?: string) {
    return [`${value} ${full}`];
  }

  @Completion('plan', 'id')
  planIds(context: ToolContext, value: string) {
    return [value + typeof context.ask];
  }
}

async function connect() {
  const mcp = serve(Shop);
  const client = new Client({ name: 'a-client', version: '1' });
  const [own, others] = InMemoryTransport.createLinkedPair();
  mcp.connect(others);
  await client.connect(own);
  return { client, close: () => client.close().then(() => mcp.close()) };
}

test('valid prompts, resources and completions are served', async () => {
  const { client, close } = await connect();
  const args = { text: 'a', count: '1', flag: 'true', due: '2030-01-02T00:00:00.000Z', size: '2' };
  expect(await client.getPrompt({ name: 'ask', arguments: args })).toMatchObject({
    messages: [{ content: { text: '["a",1,true,"2030-01-02T00:00:00.000Z",2,null,"function"]' } }],
  });
  expect(await client.getPrompt({ name: 'plan', arguments: { id: 'a' } })).toMatchObject({
    messages: [{ content: { text: 'a undefined' } }],
  });
  expect(await client.readResource({ uri: 'orders://a?full=yes' })).toMatchObject({
    contents: [{ text: 'a yes 7 function false' }],
  });
  expect(await client.readResource({ uri: 'file:///a/b' })).toMatchObject({ contents: [{ text: 'a/b' }] });
  await close();
});

test('error messages about prompts call them prompts', async () => {
  const { client, close } = await connect();
  await expect(client.getPrompt({ name: 'zzz' })).rejects.toThrow('prompt not found: zzz');
  const own = new ToolRegistry().part('prompt').view({ deny: ['plan'] });
  expect((await own.execute('zzz', {})).forLLM).toBe('prompt not found: zzz');
  await expect(client.getPrompt({ name: 'plan' })).rejects.toThrow("Validation failed for prompt 'plan'");
  await close();
});
