import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inject, singleton } from 'tsyringe';
import { DATA_FOLDER } from './data-folder.js';
import { fileOfNote, nameForTitle, noteOfFile } from './note-name.js';
import { SAMPLE_NOTES } from './sample-notes.js';

/** A note: a Markdown file. */
export interface Note {
  readonly name: string;
  readonly title: string;
  readonly text: string;
}

/** A note to write. */
export interface NoteDraft {
  readonly title: string;
  readonly text: string;
  readonly tags: readonly string[];
  readonly author: string;
}

/** Notes as Markdown files in one folder. */
@singleton()
export class NoteFolder {
  readonly #folder: string;

  constructor(@inject(DATA_FOLDER) dataFolder: string) {
    this.#folder = join(dataFolder, 'notes');
    // If two assistants start together, the one that created the folder fills it.
    if (mkdirSync(this.#folder, { recursive: true }) === undefined) return;
    for (const [name, text] of Object.entries(SAMPLE_NOTES))
      writeFileSync(join(this.#folder, fileOfNote(name)), text);
  }

  /** The names of all notes, in alphabetical order. */
  names(): readonly string[] {
    // Symbolic links are skipped: they may lead out of the folder.
    const files = readdirSync(this.#folder, { withFileTypes: true }).filter((entry) => entry.isFile());
    return files.flatMap(({ name }) => noteOfFile(name) ?? []).sort();
  }

  /** Throws if there is no note with this name. */
  async read(name: string): Promise<Note> {
    const wanted = noteOfFile(fileOfNote(name));
    const found = this.names().find((one) => one === wanted || one === nameForTitle(name));
    if (found === undefined)
      throw new Error(`There is no note '${name}'. There are: ${this.names().join(', ')}.`);
    const text = await readFile(join(this.#folder, fileOfNote(found)), 'utf8');
    return { name: found, title: /^# (.+)/m.exec(text)?.[1] ?? found, text };
  }

  /** Throws if the title has no letters, or if a note with that name exists. */
  async add({ title, text, tags, author }: NoteDraft): Promise<Note> {
    const name = nameForTitle(title);
    const tagged = tags.length > 0 ? `\nTags: ${tags.join(', ')}\n` : '';
    const content = `# ${title}\n\n${text.trim()}\n${tagged}\nWritten by ${author}\n`;
    try {
      await writeFile(join(this.#folder, fileOfNote(name)), content, { flag: 'wx' });
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
      throw new Error(`There is a note '${name}' already.`, { cause: error });
    }
    return { name, title, text: content };
  }
}
