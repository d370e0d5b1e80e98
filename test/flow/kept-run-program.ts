// Continues the run of a story, and kills itself at the given write to the store.
import { appendFileSync, readFileSync } from 'node:fs';
import { SqliteRunStore } from 'toolwright/stores';
import { Life, proceed, type Story, World } from './random-lives.js';

/** The arguments of the process. */
export interface KeptRunArguments {
  readonly file: string;
  /** A file with one line per effect: its name and its key. */
  readonly effects: string;
  readonly story: Story;
  readonly death?: Story['deaths'][number];
  readonly now: number;
}

/** Effects are stored outside of the process, and survive it. */
class SharedWorld extends World {
  readonly #file: string;

  constructor({ file, effects, now }: KeptRunArguments) {
    super((clock) => new SqliteRunStore({ path: file, now: clock }));
    this.now = now;
    this.#file = effects;
    for (const line of readFileSync(effects, 'utf8').split('\n').filter(Boolean)) {
      const [effect = '', key = ''] = line.split(' ');
      super.happen(effect, key);
    }
  }

  override happen(effect: string, key: string): void {
    super.happen(effect, key);
    appendFileSync(this.#file, `${effect} ${key}\n`);
  }
}

const given = JSON.parse(process.argv[2] ?? '') as KeptRunArguments;
const world = new SharedWorld(given);
const life = new Life(given.death, () => process.kill(process.pid, 'SIGKILL'));
await proceed(await world.store.read('r'), { story: given.story, world, life });
if (world.faults.length > 0) throw new Error(world.faults.join('; '));
