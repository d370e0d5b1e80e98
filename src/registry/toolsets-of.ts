import type { ToolsetTitle } from '../contract/toolset-options.js';

/** A toolset that has a title, and those of the tools that belong to it. */
interface TitledToolset<Tool> {
  readonly title: ToolsetTitle;
  readonly tools: readonly Tool[];
}

/** The toolsets with titles that tools belong to, in the order of the tools. */
export function toolsetsOf<Tool extends { readonly toolset?: ToolsetTitle }>(
  tools: readonly Tool[],
): readonly TitledToolset<Tool>[] {
  const byText = new Map<string, { readonly title: ToolsetTitle; readonly tools: Tool[] }>();
  for (const tool of tools) {
    if (tool.toolset === undefined) continue;
    const text = titleText(tool.toolset);
    const known = byText.get(text) ?? { title: tool.toolset, tools: [] };
    known.tools.push(tool);
    byText.set(text, known);
  }
  return [...byText.values()];
}

/** A title on one line: `Shop: Orders and invoices`. */
export function titleText({ name, description }: ToolsetTitle): string {
  return description ? `${name}: ${description}` : name;
}
