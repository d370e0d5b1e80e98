// Changes a file of approvals: `remember` adds 30, `revoke` removes those with a name, `die` is killed with the lock.
import { writeFileSync } from 'node:fs';

const [module, file, what, name] = process.argv.slice(2);
const { Permissions } = await import(module);
const permissions = new Permissions({ file });
if (what === 'remember')
  for (let n = 0; n < 30; n += 1) permissions.remember({ command: `${name} ${n}` }, { session: 's' });
if (what === 'revoke')
  for (const { id, rule } of permissions.remembered())
    if (rule.command.startsWith(`${name} `) && !permissions.revoke(id)) process.exitCode = 1;
if (what === 'die') {
  const holder = JSON.stringify({
    pid: process.pid,
    host: (await import('node:os')).hostname(),
    token: name,
  });
  writeFileSync(`${file}.lock`, holder, { flag: 'wx' });
  writeFileSync(`${file}.lock.break`, holder, { flag: 'wx' });
  process.kill(process.pid, 'SIGKILL');
}
