import { fileURLToPath } from 'node:url';
import { openFleetProcess } from './fleet-process.js';
import { type Member, runFleet } from './run-fleet.js';
import { readPort, readSettings, SettingFault } from './settings.js';

const HELP = `node dist/examples/fleet/main.js          a web process and two workers
node dist/examples/fleet/main.js web 8080     one of its processes alone
node dist/examples/fleet/main.js worker 8081
`;

async function main([role, port]: readonly string[]): Promise<number> {
  if (role === undefined) return runAll();
  if (role === 'web' || role === 'worker') return runOne(role, Number(port ?? readPort(process.env)));
  process.stdout.write(HELP);
  return role === '--help' ? 0 : 2;
}

async function runAll(): Promise<number> {
  readSettings(process.env);
  const first = readPort(process.env);
  const members: Member[] = [
    { name: 'web', role: 'web', port: first },
    { name: 'worker 1', role: 'worker', port: first && first + 1 },
    { name: 'worker 2', role: 'worker', port: first && first + 2 },
  ];
  await runFleet(fileURLToPath(import.meta.url), members);
  return 0;
}

async function runOne(role: 'web' | 'worker', port: number): Promise<number> {
  const { url, close } = await openFleetProcess({ ...readSettings(process.env), role, port });
  console.log(`is at ${url}, process ${process.pid}`);
  await new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, resolve);
    // The parent process has died.
    process.once('disconnect', resolve);
  });
  await close();
  // An open IPC channel would keep this process alive.
  if (process.connected) process.disconnect();
  return 0;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof SettingFault)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
