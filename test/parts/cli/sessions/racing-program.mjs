// Opens a session repeatedly, in competition with other processes, and fails if two have it open at the same time.
import { readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const [module, root, rounds, others] = process.argv.slice(2);
const { AgentSessions } = await import(module);
const sessions = new AgentSessions(() => {}, join(root, 'sessions'));
const held = join(root, 'held');
/** No process has this id. */
const GONE = '4194305';
let had = 0;
// All processes start at the same time.
writeFileSync(join(root, `ready-${process.pid}`), '');
while (readdirSync(root).filter((name) => name.startsWith('ready-')).length < Number(others)) {}
for (let round = 0; round < Number(rounds); round += 1) {
  let close;
  try {
    close = sessions.open('s', root);
  } catch (error) {
    if (!/is open in process \d+/.test(error.message)) throw error;
    continue;
  }
  writeFileSync(held, String(process.pid), { flag: 'wx' });
  had += 1;
  if (round % 3 === 0) sessions.note({ id: 's', folder: root, title: 'said', undone: [] });
  rmSync(held);
  // Simulates a crash. The file is replaced in one step: an empty lock would be free before this process closes it.
  if (round % 2 === 0) {
    writeFileSync(join(root, `gone-${process.pid}`), GONE);
    renameSync(join(root, `gone-${process.pid}`), join(sessions.placeOf('s'), 'lock'));
  } else close();
}
console.log(had);
