/*
 * The three workloads: valid inputs, results, and invalid arguments. The inputs come from a pool, so that engines
 * cannot optimize for a single object. All candidates receive the same inputs.
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

const invalidOrder = order(3);
invalidOrder.items[7].quantity = -1;

/* The function bodies of the tools, which all peers use; the decorated classes have the same bodies. */
const bodies = {
  add: ({ a, b }) => a + b,
  search: ({ query, mode, limit, tags }) => `${mode} ${limit} ${tags?.length ?? 0} ${query}`,
  create_order: ({ customer, items, labels }) =>
    `${items.length} items for ${customer.address.city} by ${labels.channel}`,
};

const workload = ({ id, tool, createInput, invalid }) => ({
  id,
  tool,
  inputs: Array.from({ length: POOL }, (_, index) => createInput(index)),
  invalid,
});

export const workloads = [
  workload({
    id: 'W1',
    tool: 'add',
    createInput: (index) => ({ a: index, b: 2 }),
    invalid: { a: 'x', b: 2 },
  }),
  workload({
    id: 'W2',
    tool: 'search',
    createInput: (index) => ({ query: `invoice ${index}`, mode: 'fuzzy', limit: 20, tags: ['open', 'late'] }),
    invalid: { query: '', mode: 'nowhere', limit: 99, tags: [] },
  }),
  workload({ id: 'W3', tool: 'create_order', createInput: order, invalid: invalidOrder }),
];

export function bodyOf(tool) {
  return bodies[tool];
}

/**
 * Throws if the answer of a candidate is wrong; returns whether it rejects invalid arguments. `read` of a candidate
 * returns the answer as text, or `undefined` for an error; an exception is an error, too.
 */
export async function verify(candidate, load) {
  const input = load.inputs[5];
  const answer = candidate.read(await candidate.call(candidate.encode(structuredClone(input))));
  if (answer !== String(bodies[load.tool](input)))
    throw new Error(`${candidate.name} returned ${JSON.stringify(answer)} for ${load.id}`);
  try {
    return (
      candidate.read(await candidate.call(candidate.encode(structuredClone(load.invalid)))) === undefined
    );
  } catch {
    return true;
  }
}
