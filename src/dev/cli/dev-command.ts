import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type Command, UserFault } from './command.js';
import { packageFile } from './package-manifest.js';

/** A fixed port, so that an open page works after a restart. */
const PORT = '4747';

/**
 * `toolwright dev <module>`: `toolwright inspect`, restarted whenever a loaded file changes. The page shows the tools,
 * the runs and a chat.
 */
export const devCommand: Command = {
  async run(args, { folder, signal }) {
    if (args[0] === undefined || args[0].startsWith('-'))
      throw new UserFault('dev takes one module: toolwright dev dist/tools.js');
    const port = args.includes('--port') ? [] : ['--port', PORT];
    const inspect = [packageFile('dist/src/dev/cli/main.js'), 'inspect', ...args, ...port];
    const child = spawn(process.execPath, ['--watch', '--watch-preserve-output', ...inspect], {
      cwd: folder,
      stdio: ['ignore', 'inherit', 'inherit'],
      env: {
        ...process.env,
        TOOLWRIGHT_INSPECTOR_TOKEN:
          process.env.TOOLWRIGHT_INSPECTOR_TOKEN ?? randomBytes(24).toString('base64url'),
      },
    });
    const end = () => void child.kill();
    signal?.addEventListener('abort', end);
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, end);
    const [code] = await once(child, 'exit');
    return typeof code === 'number' ? code : 0;
  },
};
