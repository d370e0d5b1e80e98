import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type NodeRun, runNode } from '../processes/run-node.js';
import { ROOT } from '../structure/repository.js';

/** A project in a temporary folder with the build tools and this package. */
export interface BuiltProject extends Disposable {
  readonly folder: string;
  write(path: string, text: string): void;
  read(path: string): string;
  /** Runs a script of the project to its end. */
  run(script: string, ...args: readonly string[]): NodeRun;
}

const TOOLS = join(import.meta.dirname, 'node_modules');

/** Returns the path of a file of a build tool. */
export function toolFile(path: string): string {
  return join(TOOLS, path);
}

export function builtProject(files: Readonly<Record<string, string>>): BuiltProject {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'toolwright-plugins-')));
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  for (const name of readdirSync(TOOLS).filter((entry) => !entry.startsWith('.')))
    link(name, join(TOOLS, name));
  link('toolwright', ROOT);
  for (const [path, text] of Object.entries(files)) write(path, text);
  return {
    folder,
    write,
    read: (path) => readFileSync(join(folder, path), 'utf8'),
    run: (script, ...args) => runNode([script, ...args], { folder }),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };

  function link(name: string, target: string): void {
    mkdirSync(dirname(join(folder, 'node_modules', name)), { recursive: true });
    symlinkSync(target, join(folder, 'node_modules', name), 'junction');
  }
}
