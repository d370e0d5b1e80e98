import {
  type AsyncTool,
  type ContextualTool,
  type JsonSchema,
  Param,
  Tool,
  ToolContext,
  type ToolContextData,
  Toolset,
} from 'toolwright';
import { Tool as DeclaredTool } from 'toolwright/decorators';
import type { Equal, Expect } from './expect-type.js';

/** `Tool` is both the decorator and the type of the contract. */
@Toolset({ prefix: 'notes', scope: 'scoped' })
export class NoteTools {
  @Tool('Finds notes')
  find(@Param('Words') words: string, limit = 10, context?: ToolContext): string {
    return `${words} ${limit} ${context?.callId}`;
  }

  @DeclaredTool({
    description: 'Deletes a note',
    approval: (args) => args.id !== 'draft',
    annotations: { destructive: true },
  })
  delete(id: string): void {
    this.find(id);
  }
}

export const echo: Tool = {
  name: 'echo',
  description: 'Repeats a text',
  parameters: { type: 'object', properties: { text: { type: 'string' } } },
  execute: ({ text }: { text: string }, context) => `${context.callId}: ${text}`,
};

export type Claims = [
  Expect<Equal<typeof Tool, typeof DeclaredTool>>,
  Expect<Equal<Tool, DeclaredTool>>,
  Expect<Equal<Tool['parameters'], JsonSchema>>,
  Expect<Equal<Parameters<Tool['execute']>[1], ToolContext>>,
  Expect<Equal<ReturnType<Tool['execute']>, unknown>>,
  Expect<Equal<Parameters<ContextualTool['setContext']>, [channel: string, chatId: string]>>,
  Expect<Equal<Parameters<Parameters<AsyncTool['setCallback']>[0]>[0], ToolContext | undefined>>,
  Expect<Equal<ToolContext['data'], ToolContextData>>,
  Expect<Equal<ToolContext['data'][string], unknown>>,
  Expect<Equal<ToolContext['rawArguments'], unknown>>,
  Expect<Equal<ToolContext['signal'], AbortSignal>>,
];

declare const context: ToolContext;

/** Resolving a class returns an instance of it. */
export const resolved: Expect<Equal<typeof notes, NoteTools>> = true;
const notes = context.resolve(NoteTools);
