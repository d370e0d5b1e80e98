import type { JsonSchema } from './json-schema.js';

/** A tool as a model is offered it: `toolToSchema(tool)`. */
export interface ToolSchema {
  readonly type: 'function';
  readonly function: {
    readonly name: string;
    readonly description: string;
    readonly parameters: JsonSchema;
  };
}
