import { serveLibrary } from './serve-library.js';
import { signIn } from './sign-in.js';
import { visitLibrary } from './visit-library.js';

const HELP = `node dist/examples/mcp/main.js serve [port]     the library over streamable HTTP (3000), and where its readers sign in (3001)
node dist/examples/mcp/main.js visit [request]  a library of its own, and a visitor who asks it something
`;

async function main([command, argument]: readonly string[]): Promise<number> {
  if (command === 'serve') {
    const { url } = await serveLibrary(Number(argument ?? 3000));
    console.log(`The library is at ${url.href}`);
    return 0;
  }
  if (command === 'visit') {
    const library = await serveLibrary(0);
    const request = argument ?? 'Search the books with the words Eliot';
    const { url } = library;
    console.log(await visitLibrary({ url, token: await signIn(url), approve: () => true, request }));
    await library.close();
    return 0;
  }
  process.stdout.write(HELP);
  return command === undefined ? 0 : 2;
}

process.exitCode = await main(process.argv.slice(2));
