// Opens one session again and again, beside others that do the same, and tells of any that has it at the same time.
import { readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const [module, root, rounds, others] = process.argv.slice(2);
const { AgentSessions } = await import(module);
const sessions = new AgentSessions(() => {}, join(root, 'sessions'));
const held = join(root, 'held');
/** Of no process. */
const GONE = '4194305';
let had = 0;
// All of them begin at once.
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
  // As if it had died. The file is replaced in one step: an empty lock would be free before this process has let go.
  if (round % 2 === 0) {
    writeFileSync(join(root, `gone-${process.pid}`), GONE);
    renameSync(join(root, `gone-${process.pid}`), join(sessions.placeOf('s'), 'lock'));
  } else close();
}
console.log(had);
