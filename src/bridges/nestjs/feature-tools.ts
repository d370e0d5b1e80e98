import type { RegisteredTool } from '../../registry/tool-table.js';

/** The tools that a module brings without a class: what `forFeature` provides for the discovery to find. */
export class FeatureTools {
  readonly tools: readonly RegisteredTool[];

  constructor(tools: readonly RegisteredTool[]) {
    this.tools = tools;
  }
}
