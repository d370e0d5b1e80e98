/* Declares many tools in an empty process and makes their definitions, ours or the AI SDK's; milliseconds. */
const [, , whose, file] = process.argv;

console.log(JSON.stringify(await (whose === 'ours' ? measureOurs() : measureAi())));

async function measureOurs() {
  const { discoverTools, ToolRegistry } = await import('#toolwright');
  const clock = startClock();
  const { toolsets } = await import(file);
  const declared = clock();
  const found = discoverTools({ toolsets });
  const discovered = clock();
  const tools = new ToolRegistry().register(...found);
  const definitions = tools.toProviderDefs();
  const defined = clock();
  const isSame = tools.toProviderDefs() === definitions;
  return { declared, discovered, defined, again: clock(), isSame, count: definitions.length };
}

/** As `generateText` does it for each request: the JSON Schema of every tool. */
async function measureAi() {
  const { asSchema } = await import('ai');
  await import('zod');
  const clock = startClock();
  const { tools } = await import(file);
  const declared = clock();
  const schemas = () =>
    Promise.all(Object.values(tools).map(({ inputSchema }) => asSchema(inputSchema).jsonSchema));
  const definitions = await schemas();
  const defined = clock();
  const second = await schemas();
  return {
    declared,
    discovered: 0,
    defined,
    again: clock(),
    isSame: second[0] === definitions[0],
    count: definitions.length,
  };
}

/** Each reading gives the milliseconds since the one before. */
function startClock() {
  let since = performance.now();
  return () => {
    const now = performance.now();
    const passed = now - since;
    since = now;
    return passed;
  };
}
