import type { ToolDefinition } from '../../contract/tool-definition.js';
import { type ToolEntry, WritableToolTable } from '../../registry/tool-table.js';

/** What the table asks of the tools that get into it. */
export interface ApplicationTable {
  /** Makes of a tool the one that is called in its place. */
  readonly adopt: (tool: ToolDefinition) => ToolDefinition;
  /** Hears of a tool that takes another one's place. */
  readonly onReplace: (before: ToolDefinition, now: ToolDefinition) => void;
}

/**
 * The table of an application's registry. Whatever gets into it, at any time and on any way (registered,
 * merged, made anew for each call), is adopted first; so it can leave it (by a view, in a list) in no other form.
 */
export class ApplicationToolTable extends WritableToolTable {
  readonly #application: ApplicationTable;

  constructor(application: ApplicationTable) {
    super();
    this.#application = application;
  }

  override set(name: string, { open, offered }: ToolEntry): void {
    const { adopt, onReplace } = this.#application;
    const before = this.get(name)?.offered;
    const adopted = adopt(offered);
    super.set(name, { open: () => adopt(open()), offered: adopted });
    if (before !== undefined && before !== adopted) onReplace(before, adopted);
  }
}
