import { Type } from '@sinclair/typebox';
import {
  type AgentToolResult,
  type AgentToolUpdateCallback,
  agentTool,
  type Content,
  type Message,
  type ToolDefinition,
  type ToolExecutionContext,
} from 'toolwright';
import { z } from 'zod';
import { claim, type Equal, type Expect } from './expect-type.js';

const described = { name: 'read', label: 'Read', description: 'Reads a file' } as const;

const read = agentTool({
  ...described,
  parameters: Type.Object({ path: Type.String(), limit: Type.Optional(Type.Number()) }),
  async execute(toolCallId, params, signal, onUpdate, context) {
    claim<Expect<Equal<typeof toolCallId, string>>>();
    claim<Expect<Equal<typeof params, { path: string; limit?: number }>>>();
    claim<Expect<Equal<typeof signal, AbortSignal | undefined>>>();
    claim<Expect<Equal<typeof context, ToolExecutionContext | undefined>>>();
    onUpdate?.({ content: [{ type: 'text', content: 'half' }], details: undefined });
    return { content: [{ type: 'text', content: params.path }], details: { bytes: 3 } };
  },
});

agentTool<z.ZodObject<{ path: z.ZodString }>, { readonly bytes: number }>({
  ...described,
  parameters: z.object({ path: z.string() }),
  async execute(_id, params, _signal, onUpdate) {
    claim<Expect<Equal<typeof params, { path: string }>>>();
    claim<Expect<Equal<typeof onUpdate, AgentToolUpdateCallback<{ readonly bytes: number }> | undefined>>>();
    return { content: [], details: { bytes: 1 } };
  },
});

export type Claims = [
  Expect<Equal<typeof read, ToolDefinition>>,
  Expect<Equal<AgentToolResult<number>['details'], number>>,
  Expect<Equal<AgentToolResult['details'], unknown>>,
  Expect<Equal<AgentToolResult['content'], Content>>,
  Expect<Equal<ToolExecutionContext['messages'], readonly Message[]>>,
];
