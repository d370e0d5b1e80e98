const text = { type: 'string' };

/** The customer of W3. */
export interface Customer {
  readonly name: string;
  readonly email: string;
  readonly address: { readonly street: string; readonly city: string; readonly zip: string };
}

/** An item of W3. */
export interface Item {
  readonly sku: string;
  readonly quantity: number;
  readonly price: number;
  readonly note?: string;
}

/** {@link Customer} as JSON Schema, because interfaces do not exist at run time. */
export const customerSchema = {
  type: 'object',
  properties: {
    name: { ...text, minLength: 1 },
    email: { ...text, format: 'email' },
    address: {
      type: 'object',
      properties: { street: text, city: text, zip: text, country: { ...text, minLength: 2, maxLength: 2 } },
      required: ['street', 'city', 'zip', 'country'],
    },
  },
  required: ['name', 'email', 'address'],
};

/** The items as JSON Schema. */
export const itemsSchema = {
  type: 'array',
  minItems: 1,
  items: {
    type: 'object',
    properties: {
      sku: text,
      quantity: { type: 'integer', minimum: 1 },
      price: { type: 'number', minimum: 0 },
      note: text,
    },
    required: ['sku', 'quantity', 'price'],
  },
};
