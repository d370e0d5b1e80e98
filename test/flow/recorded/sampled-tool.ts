import type { RegisteredTool } from 'toolwright';

/** A tool that answers with what it got, and arguments that are right for it. */
export interface SampledTool {
  readonly tool: RegisteredTool;
  readonly name: string;
  readonly right: readonly object[];
}
