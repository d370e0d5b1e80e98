import { HELP, readCommandLine } from './command-line.js';
import { runBoth } from './run-both.js';
import { runSatellite } from './run-satellite.js';
import { runServer } from './run-server.js';
import { UserFault } from './user-fault.js';

async function main(args: readonly string[]): Promise<void> {
  const command = readCommandLine(args);
  if (command.program === 'help') process.stdout.write(HELP);
  if (command.program === 'server') await runServer(command);
  if (command.program === 'satellite') await runSatellite(command);
  if (command.program === 'both') await runBoth(command);
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`satellite: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = error instanceof UserFault ? error.exitCode : 1;
}
