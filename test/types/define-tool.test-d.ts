import { type Static, Type } from '@sinclair/typebox';
import {
  type ArgumentsOf,
  defineTool,
  type JsonObject,
  type StandardSchema,
  type ToolContext,
  type ToolDefinition,
} from 'toolwright';
import { z } from 'zod';
import { claim, type Equal, type Expect } from './expect-type.js';

const described = { name: 'order', description: 'Places an order' } as const;

const zodOrder = z.object({
  sku: z.string(),
  count: z.number().int().default(1),
  due: z.string().transform((text) => new Date(text)),
  note: z.string().optional(),
});

const typeboxOrder = Type.Object({
  sku: Type.String(),
  tags: Type.Array(Type.String()),
  note: Type.Optional(Type.String()),
  size: Type.Union([Type.Literal('s'), Type.Literal('m')]),
});

declare const standardOrder: StandardSchema<{ count: string }, { count: number }>;

const jsonOrder = { type: 'object', properties: { sku: { type: 'string' } }, required: ['sku'] } as const;

defineTool({
  ...described,
  parameters: zodOrder,
  execute(args, context) {
    // The output of the schema, after defaults and transforms.
    claim<Expect<Equal<typeof args, { sku: string; count: number; due: Date; note?: string | undefined }>>>();
    claim<Expect<Equal<typeof context, ToolContext>>>();
  },
});

defineTool({
  ...described,
  parameters: typeboxOrder,
  execute(args) {
    claim<Expect<Equal<typeof args, Static<typeof typeboxOrder>>>>();
    claim<Expect<Equal<typeof args.size, 's' | 'm'>>>();
    claim<Expect<Equal<typeof args.note, string | undefined>>>();
  },
});

defineTool({
  ...described,
  parameters: standardOrder,
  execute: (args) => claim<Expect<Equal<typeof args, { count: number }>>>(),
});

defineTool({
  ...described,
  parameters: jsonOrder,
  execute(args) {
    claim<Expect<Equal<typeof args, JsonObject>>>();
    claim<Expect<Equal<typeof args.sku, unknown>>>();
  },
});

defineTool({ ...described, execute: (args) => claim<Expect<Equal<typeof args, JsonObject>>>() });

const clientTool = defineTool({ ...described, parameters: zodOrder });

export type Claims = [
  Expect<Equal<typeof clientTool, ToolDefinition>>,
  Expect<Equal<ArgumentsOf<typeof standardOrder>, { count: number }>>,
  Expect<Equal<ArgumentsOf<typeof jsonOrder>, JsonObject>>,
];
