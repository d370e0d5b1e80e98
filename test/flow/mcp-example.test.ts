import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { type ServedLibrary, serveLibrary } from '../../examples/mcp/serve-library.js';
import { signIn } from '../../examples/mcp/sign-in.js';
import { visitLibrary } from '../../examples/mcp/visit-library.js';

const MIDDLEMARCH = '978-0-14-144116-8';

describe('the library in examples/mcp', () => {
  let library: ServedLibrary;
  beforeEach(async () => {
    library = await serveLibrary(0);
  });
  afterEach(async () => {
    await library.close();
  });

  async function connectAs(account: string | undefined, answer?: 'accept' | 'decline'): Promise<Client> {
    const client = new Client(
      { name: 'a-client', version: '1.0.0' },
      answer === undefined ? {} : { capabilities: { elicitation: {} } },
    );
    if (answer !== undefined)
      client.setRequestHandler('elicitation/create', () => ({ action: answer, content: {} }));
    const headers: Record<string, string> =
      account === undefined ? {} : { authorization: `Bearer ${await signIn(library.url, { account })}` };
    await client.connect(new StreamableHTTPClientTransport(library.url, { requestInit: { headers } }));
    return client;
  }
  const borrow = (client: Client) =>
    client.callTool({ name: 'borrow_book', arguments: { isbn: MIDDLEMARCH } });

  test('the loop of a visitor finds a book', async () => {
    const answer = await visitLibrary({
      url: library.url,
      token: await signIn(library.url),
      approve: () => true,
      request: 'Search the books with the words Eliot',
    });
    expect(answer).toContain('Middlemarch');
  });

  test('a book is lent only to a signed-in reader who confirms', async () => {
    const [stranger, undecided, ada, grace] = [
      await connectAs(undefined, 'accept'),
      await connectAs('ada', 'decline'),
      await connectAs('ada', 'accept'),
      await connectAs('grace', 'accept'),
    ];
    await expect(borrow(stranger)).rejects.toThrow('Sign in to use this server');
    expect(await borrow(undecided)).toMatchObject({ isError: true });
    expect(await borrow(ada)).toMatchObject({ content: [{ text: 'Middlemarch is lent to ada.' }] });
    expect(await borrow(grace)).toMatchObject({
      isError: true,
      content: [{ text: 'Middlemarch is lent to somebody.' }],
    });
    for (const client of [stranger, undecided, ada, grace]) await client.close();
  });

  test('a book is shown with its view, without a sign-in', async () => {
    const client = await connectAs(undefined);
    const { contents } = await client.readResource({ uri: 'ui://library/book-card' });
    expect(contents).toMatchObject([
      { mimeType: 'text/html;profile=mcp-app', _meta: { ui: { prefersBorder: true } } },
    ]);
    const result = await client.callTool({ name: 'show_book', arguments: { isbn: MIDDLEMARCH } });
    expect(result.structuredContent).toMatchObject({ title: 'Middlemarch', author: 'George Eliot' });
    await client.close();
  });

  test('take_stock reports each book and returns the list', async () => {
    const client = await connectAs(undefined);
    const titles: unknown[] = [];
    const { content } = await client.callTool(
      { name: 'take_stock' },
      { onprogress: ({ message }) => void titles.push(message) },
    );
    expect(titles).toEqual(['Middlemarch', 'The Mill on the Floss', 'Pride and Prejudice', 'Persuasion']);
    expect(content).toMatchObject([
      { type: 'text', text: '4 books' },
      {
        type: 'resource',
        resource: { uri: 'file:///stock.csv', text: expect.stringContaining(MIDDLEMARCH) },
      },
    ]);
    await client.close();
  });
});
