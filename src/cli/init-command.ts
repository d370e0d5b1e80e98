import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Command, CommandSurroundings } from './command.js';
import { generateProject } from './generate-project.js';
import { type FileEdit, planInit } from './init/plan-init.js';
import { readProject } from './init/read-project.js';
import { unifiedDiff } from './unified-diff.js';

/** `toolwright init`: writes the lines that keep the generated file current in the project of the folder. */
export const initCommand: Command = {
  async run(args, surroundings) {
    parseArgs({ args: [...args], options: {} });
    const { folder, out } = surroundings;
    const project = await readProject(folder);
    const { edits, notes } = planInit(project);
    for (const edit of edits) {
      writeFileSync(join(folder, edit.path), restoreLineEnds(edit, folder));
      out(unifiedDiff(edit).replace(' (generated now)', ''));
    }
    if (edits.length === 0) out('nothing to write: this project is set up\n');
    for (const note of notes) out(`\n${note}\n`);
    await generateFirst(project.tsconfig, surroundings);
    return 0;
  },
};

/** Edits are made with the line ends that the tools of this package use. */
function restoreLineEnds({ path, after }: FileEdit, folder: string): string {
  const isWindows = readFileSync(join(folder, path), 'utf8').includes('\r\n');
  return isWindows ? after.replaceAll('\n', '\r\n') : after;
}

/** A program that imports the file must find one. */
async function generateFirst(tsconfig: string, { folder, out, error }: CommandSurroundings): Promise<void> {
  try {
    const warnings = await generateProject({ project: tsconfig }, folder);
    if (warnings !== '') error(`${warnings}\n`);
  } catch (fault) {
    out(`\nNothing is generated yet: ${(fault as Error).message.replace(/^toolwright: /, '')}\n`);
  }
}
