import { Tool, Toolset } from 'toolwright';
import type { Toolbox } from 'toolwright/agent';
import { calculateTool } from 'toolwright/builtin';
import { FileTools } from 'toolwright/toolbox/files';

@Toolset()
class Own {
  readonly #shop = 'mine';

  @Tool('Name the shop')
  shopName(): string {
    return this.#shop;
  }
}
declare const files: FileTools;

export const fine: readonly Toolbox[] = [
  'files',
  { shell: { environment: 'clean' } },
  ...[Own, new Own(), FileTools, files, calculateTool],
  [['web'], new Own()],
];

// @ts-expect-error: no toolbox has this name.
export const slip: Toolbox = { shel: {} };

// @ts-expect-error: no toolbox has this name either.
export const name: Toolbox = 'file';

declare const anyText: string;
// @ts-expect-error: a string is not always the name of a toolbox.
export const text: Toolbox = anyText;
