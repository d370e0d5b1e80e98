import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import { basename, dirname, join, resolve } from 'node:path';
import { isWithin } from '../../toolbox/paths/folder-path.js';
import type { ImportEnding } from '../typegen/generate.js';
import { type Compiler, loadCompiler } from '../typegen/load-compiler.js';
import { type Command, type CommandEnvironment, onEnd } from './command.js';
import { generateAgain, readIfThere, readTarget } from './generate-command.js';
import { readInspectLine, refusePort } from './inspect-command.js';
import { modulePath } from './open-module.js';
import { packageFile } from './package-file.js';
import { type Watched, watchProject } from './watch-project.js';

/** A fixed port, so that an open page works after a restart. */
const PORT = '4747';

/**
 * `toolwright dev <module>`: `toolwright inspect`, restarted whenever a source of the folder changes, with the schemas
 * generated again before. The page shows the tools, the runs and a chat.
 */
export const command: Command = async (args, environment) => {
  const { name, values } = readInspectLine('dev', args);
  const { folder } = environment;
  const path = modulePath(name, folder);
  const { port = PORT, tests = 'test', recordings = tests } = values;
  // Tried here: if `inspect` failed, this command would wait until a file changes.
  const attempt = createServer().listen(Number(port), '127.0.0.1');
  await once(attempt, 'listening').catch(refusePort(port));
  await once(attempt.close(), 'close');
  const over = new AbortController();
  onEnd(environment, () => over.abort());
  // A wrong option is not repaired by a change of a file.
  const inspector = new InspectorProcess([...args, '--port', port], environment, () => over.abort());
  let compiler: Compiler | undefined;
  if (generatedFile(folder) !== undefined && existsSync(join(folder, 'tsconfig.json'))) {
    const loaded = await loadCompiler(folder);
    if (loaded.ok) compiler = loaded.compiler;
    else environment.error(`toolwright: the schemas will not be regenerated: ${loaded.problem}\n`);
  }
  // The inspector writes there.
  const written = [tests, recordings].map((one) => resolve(folder, one));
  try {
    await watchProject([folder, dirname(path)], {
      signal: over.signal,
      isSource: (file) => SOURCE.test(file),
      isIgnored: (one) =>
        basename(one) === 'node_modules' ||
        ((OUTPUT.test(basename(one)) || written.includes(one)) && !isWithin(path, one)),
      onChange() {
        const out = generatedFile(folder);
        let watched: Watched = { libraries: [] };
        // A project without the generated file stays without it.
        if (compiler !== undefined && out !== undefined) {
          // The ending of the imports as it is: `generate` may have been given another one.
          const written = /^import .* from '\.[^']*?(\.[jt]s)?';$/m.exec(
            readIfThere(join(folder, out)) ?? '',
          );
          const ending = written === null ? undefined : ((written[1] ?? '') as ImportEnding);
          const options = { ...readTarget({ out }, folder), ending, check: false, strict: false };
          watched = generateAgain(compiler, options, environment);
        }
        inspector.restart();
        return watched;
      },
    });
  } finally {
    compiler?.close();
    await inspector.end();
  }
  return inspector.exitCode;
};

const SOURCE = /(\.[cm]?[jt]sx?|(^|[/\\])tsconfig[^/\\]*\.json)$/;

/** Folders without sources, unless the module is in them. */
const OUTPUT = /^(\..*|dist)$/;

/** The generated file at the default path of `toolwright generate`. */
function generatedFile(folder: string): string | undefined {
  return ['src/toolwright.gen.ts', 'toolwright.gen.ts'].find((path) => existsSync(join(folder, path)));
}

/** A process that does not end within this time is killed. */
const END_WITHIN_MS = 3_000;

/** The process of `toolwright inspect`: at most one at a time. */
class InspectorProcess {
  exitCode = 0;
  readonly #start: () => ChildProcess;
  readonly #environment: CommandEnvironment;
  /** Called when the process refuses its options. */
  readonly #onMistake: () => void;
  #child: ChildProcess | undefined;
  #restarting: Promise<void> | undefined;
  #isOutdated = false;
  #isOver = false;

  constructor(args: readonly string[], environment: CommandEnvironment, onMistake: () => void) {
    this.#environment = environment;
    this.#onMistake = onMistake;
    const { TOOLWRIGHT_INSPECTOR_TOKEN: token = randomBytes(24).toString('base64url') } = process.env;
    const line = [packageFile('dist/src/dev/cli/main.js'), 'inspect', ...args];
    this.#start = () =>
      spawn(process.execPath, line, {
        cwd: environment.folder,
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
        env: { ...process.env, TOOLWRIGHT_INSPECTOR_TOKEN: token },
      });
  }

  /** A change during a restart leads to one more. */
  restart(): void {
    this.#isOutdated = true;
    this.#restarting ??= this.#restartAll().finally(() => {
      this.#restarting = undefined;
    });
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#restarting;
    await this.#stop();
  }

  async #restartAll(): Promise<void> {
    while (this.#isOutdated && !this.#isOver) {
      this.#isOutdated = false;
      await this.#stop();
      if (this.#isOver) return;
      const child = this.#start();
      this.#child = child;
      child.once('exit', (code) => {
        if (this.#child !== child) return;
        this.#child = undefined;
        if (code === 2) {
          this.exitCode = 2;
          this.#onMistake();
        } else if (!this.#isOver)
          this.#environment.error(
            'toolwright: the inspector has ended; it starts again when a source changes\n',
          );
      });
    }
  }

  async #stop(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined) return;
    const ended = once(child, 'exit');
    // Not a signal: Ctrl-C has sent one already, and a second one would cut off the end of the process.
    if (child.connected) child.disconnect();
    const limit = setTimeout(() => child.kill('SIGKILL'), END_WITHIN_MS);
    await ended;
    clearTimeout(limit);
  }
}
