/* Measures declaring many tools and creating their definitions in an empty process, in milliseconds. */
const [, , framework, file] = process.argv;

console.log(JSON.stringify(await (framework === 'toolwright' ? measureToolwright() : measureAiSdk())));

async function measureToolwright() {
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

/** `generateText` creates the JSON Schema of every tool for each request. */
async function measureAiSdk() {
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

/** Returns a function that returns the milliseconds since its last call. */
function startClock() {
  let since = performance.now();
  return () => {
    const now = performance.now();
    const elapsed = now - since;
    since = now;
    return elapsed;
  };
}
