import type { RegisteredTool } from 'toolwright';

/** A tool that returns its arguments, with valid arguments for it. */
export interface SampledTool {
  readonly tool: RegisteredTool;
  readonly name: string;
  readonly right: readonly object[];
}
