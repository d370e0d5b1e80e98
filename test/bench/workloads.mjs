/*
 * The three workloads: what is sent, what has to come back, and what has to be refused. Each candidate gets
 * the same inputs, out of a pool, so that no engine sees one object over and over.
 */
const POOL = 64;

const address = (index) => ({
  street: `${index} Mill Lane`,
  city: 'Leeds',
  zip: `LS${index}`,
  country: 'GB',
});

const item = (index) => ({ sku: `sku-${index}`, quantity: (index % 7) + 1, price: index * 1.5 });

const order = (index) => ({
  customer: { name: `Customer ${index}`, email: `c${index}@example.com`, address: address(index) },
  items: Array.from({ length: 20 }, (_, position) => item(position + index)),
  labels: { channel: 'web', campaign: `spring-${index}` },
});

const spoiled = order(3);
spoiled.items[7].quantity = -1;

/* What the tools answer: every peer's body is one of these, and ours do the same in a class. */
const bodies = {
  add: ({ a, b }) => a + b,
  search: ({ query, mode, limit, tags }) => `${mode} ${limit} ${tags?.length ?? 0} ${query}`,
  create_order: ({ customer, items, labels }) =>
    `${items.length} items for ${customer.address.city} by ${labels.channel}`,
};

const workload = ({ id, tool, make, bad }) => ({
  id,
  tool,
  inputs: Array.from({ length: POOL }, (_, index) => make(index)),
  bad,
});

/** W1, W2 and W3 of the issue. */
export const workloads = [
  workload({ id: 'W1', tool: 'add', make: (index) => ({ a: index, b: 2 }), bad: { a: 'x', b: 2 } }),
  workload({
    id: 'W2',
    tool: 'search',
    make: (index) => ({ query: `invoice ${index}`, mode: 'fuzzy', limit: 20, tags: ['open', 'late'] }),
    bad: { query: '', mode: 'nowhere', limit: 99, tags: [] },
  }),
  workload({ id: 'W3', tool: 'create_order', make: order, bad: spoiled }),
];

/** The body of a workload's tool. */
export function bodyOf(tool) {
  return bodies[tool];
}

/**
 * Whether a candidate answers right, and whether it refuses what is wrong. A candidate's `read` gives the
 * answer as text, or `undefined` where its result is an error; throwing is an error too.
 */
export async function verify(candidate, load) {
  const input = load.inputs[5];
  const answer = candidate.read(await candidate.call(candidate.encode(structuredClone(input))));
  if (answer !== String(bodies[load.tool](input)))
    throw new Error(`${candidate.name} answers ${load.id} with ${JSON.stringify(answer)}`);
  try {
    return candidate.read(await candidate.call(candidate.encode(structuredClone(load.bad)))) === undefined;
  } catch {
    return true;
  }
}
