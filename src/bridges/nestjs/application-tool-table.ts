import type { ToolDefinition } from '../../contract/tool-definition.js';
import { type ToolEntry, WritableToolTable } from '../../registry/tool-table.js';

/** Makes of a tool the one that is called in its place. */
export type Adopt = (tool: ToolDefinition) => ToolDefinition;

/**
 * The table of an application's registry. Whatever gets into it, at any time and on any way (registered,
 * merged, made anew for each call), is adopted first; so it can leave it (by a view, in a list) in no other form.
 */
export class ApplicationToolTable extends WritableToolTable {
  readonly #adopt: Adopt;

  constructor(adopt: Adopt) {
    super();
    this.#adopt = adopt;
  }

  override set(name: string, { open, offered }: ToolEntry): void {
    super.set(name, { open: () => this.#adopt(open()), offered: this.#adopt(offered) });
  }
}
