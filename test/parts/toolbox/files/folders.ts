import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach } from '@jest/globals';
import { ToolRegistry, type ToolResult } from 'toolwright';
import { DiskFileSystem, type FileSystem, fileTools, MemoryFileSystem } from 'toolwright/toolbox/files';

/** Files by path. */
export type Files = Readonly<Record<string, string | Uint8Array>>;

const made: string[] = [];

afterEach(() => {
  for (const folder of made.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** A new folder with files, removed after the test. */
export function newFolder(files: Files = {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'toolbox-'));
  made.push(folder);
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
  return folder;
}

/** Every file of a folder as text; links are not followed. */
export function textsOf(folder: string, within = ''): Readonly<Record<string, string>> {
  const entries = readdirSync(join(folder, within), { withFileTypes: true });
  return Object.fromEntries(
    entries
      .sort((one, other) => (one.name < other.name ? -1 : 1))
      .flatMap((entry): [string, string][] => {
        const path = join(within, entry.name);
        if (entry.isDirectory()) return Object.entries(textsOf(folder, path));
        return entry.isFile() ? [[path, readFileSync(join(folder, path), 'utf8')]] : [];
      }),
  );
}

/** The tools over some files, and the current texts of these files. */
export interface Toolbox {
  readonly files: FileSystem;
  call(tool: string, args: object): Promise<ToolResult>;
  texts(): Readonly<Record<string, string>>;
}

/** File tools over a folder on disk. */
export function diskToolbox(folder: string): Toolbox {
  const files = new DiskFileSystem({ root: folder });
  return { files, call: caller(files), texts: () => textsOf(folder) };
}

/** Each kind of file system, created with the same files. */
export const TOOLBOXES: readonly (readonly [string, (files?: Files) => Toolbox])[] = [
  ['on disk', (files = {}) => diskToolbox(newFolder(files))],
  [
    'in memory',
    (content = {}) => {
      const files = new MemoryFileSystem(content);
      return { files, call: caller(files), texts: () => files.texts() };
    },
  ],
];

function caller(files: FileSystem): Toolbox['call'] {
  const tools = new ToolRegistry().register(...fileTools(files));
  return (tool, args) => tools.execute(tool, args);
}

/** The version in the result of a read. */
export function versionIn({ forLLM }: ToolResult): string {
  return /version ([0-9a-f]{12})/.exec(forLLM)?.[1] ?? '';
}
